"""The wheel and the sdist with all dependencies, in empty environments: whether they run, and their size.

python -m benchmarks.install [PYTHON ...]      by default python3.11 to python3.14 of the PATH; needs a package index
"""

import subprocess
import sys
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from tests.packaging.test_distributions import PACKAGES, ROOT, USE

VERSIONS = tuple(f"python3.{minor}" for minor in range(11, 15))


def main(pythons: list[str]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for kind in ("wheel", "sdist"):
            ran([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(root / kind)], ROOT)
        for python in pythons:
            for kind in ("wheel", "sdist"):
                (made,) = (root / kind).iterdir()
                print(installed(python, made, root / f"{Path(python).name}-{kind}"), flush=True)


def installed(python: str, made: Path, place: Path) -> str:
    """Return one line: the installed file and Python, its megabytes, and those of all packages together."""
    ran([python, "-m", "venv", str(place)], ROOT)
    own = str(place / "bin" / "python")
    ran([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(made)], place)
    files = ran([own, "-c", USE], place).split()
    site = Path(files[0]).parents[1]
    ours = sum(nbytes(site / package) for package in PACKAGES)
    name = ran([own, "--version"], place).strip()
    command = ran([str(place / "bin" / "cgraph"), "--version"], place).strip()
    return f"{name}: {command} of {made.name} runs; {ours / 1e6:.1f} MB of {nbytes(site) / 1e6:.0f} MB in all"


def nbytes(folder: Path) -> int:
    """Return the bytes of the files in a folder, without Python's byte code."""
    return sum(x.stat().st_size for x in folder.rglob("*") if x.is_file() and x.suffix != ".pyc")


def ran(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[:4])} …: {done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1:] or [found for version in VERSIONS if (found := which(version))])
