"""What the repository holds: sources, and nothing that a command has built."""

import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
TOP = {
    ".ci",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "benchmarks",
    "cgraph",
    "docs",
    "examples",
    "hatch_build.py",
    "nn",
    "pyproject.toml",
    "tests",
}
KINDS = set(".c .css .h .html .ipynb .js .jsonl .ld .md .py .pyi .safetensors .sh .svg .toml .txt .typed .yml".split())
WITHOUT_KIND = {".gitignore", "LICENSE", "Makefile", ".ci/run"}


@pytest.fixture(scope="module")
def tracked():
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("not a git checkout, or git is missing")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"git refuses to list the files: {done.stderr.strip()}")
    return [name for name in done.stdout.split("\0") if name]


def test_the_top_folder_holds_what_is_listed(tracked):
    assert {PurePosixPath(name).parts[0] for name in tracked} == TOP


def test_every_file_is_of_a_kind_that_people_write(tracked):
    strange = [name for name in tracked if name not in WITHOUT_KIND and PurePosixPath(name).suffix not in KINDS]
    assert not strange


def test_every_folder_of_tests_is_searched(pytestconfig):
    """Pytest passes over folders named build, dist or venv, unless it is told otherwise."""
    passed_over = pytestconfig.getini("norecursedirs")
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    names = {name for folder in folders for name in folder.relative_to(ROOT).parts}
    assert {"dist", "formats"} <= names
    assert [name for name in names if any(fnmatch(name, pattern) for pattern in passed_over)] == []
