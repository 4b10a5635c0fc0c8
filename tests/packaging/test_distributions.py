"""What is published: a wheel with both packages and nothing else, an sdist that gives the same wheel."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import cgraph
from tests.packaging.test_requirements import FOR_USERS, module_of
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
PACKAGES = ("cgraph", "nn")
DATA = {
    "cgraph/py.typed",
    "nn/py.typed",
    "cgraph/view/web/page.html",
    "cgraph/view/web/page.css",
    "cgraph/view/web/page.js",
    "nn/models/mask_rcnn/shapes.safetensors",
    "cgraph/kernels/prebuilt/lists/avx512.txt",
}
TABLE = ".kernels"  # suffix of the files that a build makes

USE = """
import sys
import numpy as np
import cgraph as cg
import nn
from nn.models.mask_rcnn.shapes import mask_rcnn_shapes

x = cg.Var((2, 3), name="x")
function = cg.compile(cg.sum(np.exp(x) @ np.ones((3, 4), "float32")), x)
assert function(np.zeros((2, 3), "float32")) == 24
assert "<svg" in cg.function_svg(function) and "<script" in cg.page_html(function)
assert mask_rcnn_shapes().variables()
print(cg.__file__, nn.__file__, sep="\\n")
"""

pytestmark = pytest.mark.slow


def built(kind: str, root: Path, folder: Path, kernels: str = "none") -> Path:
    """The distribution of a source folder, built without a network, with tables for these processors."""
    try:
        version("hatchling")
    except PackageNotFoundError:
        pytest.skip("the package hatchling, which builds distributions, is not installed")
    ran([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)], root, CGRAPH_KERNELS=kernels)
    (found,) = folder.iterdir()
    return found


def ran(command: list[str], folder: Path, **environment: str) -> str:
    """What a command prints."""
    env = os.environ | environment
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return built("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The wheel alone in a folder; what it depends on is there already."""
    folder = tmp_path_factory.mktemp("installed")
    pip = "-m pip install --quiet --disable-pip-version-check --no-index --no-deps --target".split()
    ran([sys.executable, *pip, str(folder), str(wheel)], folder.parent)
    return folder


def shipped(root: Path) -> set[str]:
    """Every file of the packages of a source folder."""
    files = (path for package in PACKAGES for path in (root / package).rglob("*") if path.is_file())
    names = (path.relative_to(root) for path in files if "__pycache__" not in path.parts)
    return {name.as_posix() for name in names if name.suffix != TABLE}


def metadata_folder() -> str:
    return f"cgraph_engine-{cgraph.__version__}.dist-info"


def test_a_wheel_holds_both_packages_their_data_the_licence_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    about = {name for name in names if name.startswith(f"{metadata_folder()}/")}
    assert names - about == shipped(ROOT) >= DATA
    assert f"{metadata_folder()}/licenses/LICENSE" in about


def test_pages_say_how_large_an_installed_wheel_is(wheel):
    """A part that makes it grow changes the figure on both pages."""
    size = f"{sum(x.file_size for x in zipfile.ZipFile(wheel).infolist()) / 1e6:.1f} MB"
    assert f"{size} there" in (ROOT / "docs" / "status.md").read_text(encoding="utf-8")
    assert f"{size} from `pip`" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_wheel_says_its_version_and_licence(wheel):
    text = zipfile.ZipFile(wheel).read(f"{metadata_folder()}/METADATA").decode()
    metadata = Parser().parsestr(text)
    assert (metadata["Version"], metadata["License-Expression"]) == (cgraph.__version__, "MIT")


def test_an_sdist_gives_the_same_wheel(sdist, wheel, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    root = tmp_path / f"cgraph_engine-{cgraph.__version__}"
    assert shipped(root) == shipped(ROOT)
    assert {path.name for path in root.iterdir()} == {
        *PACKAGES, ".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "hatch_build.py",
        "pyproject.toml",
    }  # fmt: skip
    again = built("wheel", root, tmp_path / "again")
    assert contents(again) == contents(wheel)


def contents(wheel: Path) -> dict[str, bytes]:
    archive = zipfile.ZipFile(wheel)
    return {name: archive.read(name) for name in archive.namelist()}


def test_an_installed_wheel_computes_draws_and_finds_its_data(installed, tmp_path):
    files = ran([sys.executable, "-c", USE], tmp_path, PYTHONPATH=str(installed)).split()
    assert [Path(file).parents[1] for file in files] == [installed, installed]


FIRST_RUN = """
import sys
import numpy as np
import cgraph as cg
from cgraph.kernels.store import store

x = cg.Var((1, 32, 14, 14), name="x")
weights = np.ones((32, 32, 3, 3), "float32")
function = cg.compile(cg.relu(cg.conv2d(x, weights, pad=1)), x, threads=1)
function(np.ones(x.shape, "float32"))
print(store().built, store().hits, store().misses, "llvmlite.binding" in sys.modules)
"""


def test_the_first_run_of_a_built_wheel_compiles_nothing(tmp_path):
    """A wheel with the kernels of this processor, in a process with an empty cache."""
    source, folder = tmp_path / "source", tmp_path / "installed"
    source.mkdir()
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", f"*{TABLE}"))
    for name in ("hatch_build.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    wheel = built("wheel", source, tmp_path / "wheel", "host")
    names = set(zipfile.ZipFile(wheel).namelist())
    if not any(name.endswith(TABLE) for name in names):
        pytest.skip("no kernels are listed for this processor")
    pip = "-m pip install --quiet --disable-pip-version-check --no-index --no-deps --target".split()
    ran([sys.executable, *pip, str(folder), str(wheel)], tmp_path)
    found = ran(
        [sys.executable, "-c", FIRST_RUN], tmp_path, PYTHONPATH=str(folder), XDG_CACHE_HOME=str(tmp_path / "cache")
    )
    from_package, *others = found.split()
    assert int(from_package) > 3 and others == ["0", "0", "False"]


def test_a_build_for_unknown_processors_is_refused(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"CGRAPH_KERNELS": "some"}, capture_output=True, text=True
    )
    assert done.returncode and "CGRAPH_KERNELS is 'some'. Use all, host or none" in done.stderr


def test_an_installed_wheel_brings_the_command(installed, tmp_path):
    said = ran([sys.executable, str(installed / "bin" / "cgraph"), "--version"], tmp_path, PYTHONPATH=str(installed))
    assert said == f"cgraph {cgraph.__version__}\n"


def test_everything_but_the_extras_works_without_them(installed, tmp_path):
    """In an environment without any of the packages that extras install."""
    hidden = {module_of(row) for extra in FOR_USERS for row in FOR_USERS[extra]} - {"cgraph", "cgraph-engine"}
    assert {"onnx", "ml_dtypes", "PIL"} <= hidden
    code = f"import sys; sys.modules.update(dict.fromkeys({sorted(hidden)})){USE}"
    code += "import cgraph.cli, cgraph.formats\n"
    code += "for name in cgraph.formats.FORMATS: getattr(cgraph.formats, name)\n"
    code += "cgraph.cli.parser_of(cgraph.cli.COMMANDS); sys.exit(cgraph.cli.main(['info']))"
    assert "threads" in ran([sys.executable, "-c", code], tmp_path, PYTHONPATH=str(installed))


def python_at_hand(minor: int) -> str:
    """A Python 3 of this minor version. Skips where there is none."""
    homes = Path("~/.pyenv/versions").expanduser().glob(f"3.{minor}.*/bin")
    for found in [shutil.which(f"python3.{minor}"), *(str(home / "python3") for home in homes)]:
        if found and not subprocess.run([found, "-m", "pip", "--version"], capture_output=True).returncode:
            return found
    pytest.skip(f"no Python 3.{minor} with pip is at hand")


@pytest.mark.parametrize("minor", range(11, 16))
def test_the_wheel_fits_every_python_at_hand(minor, wheel, tmp_path):
    """Its files compile there and the package says its version; what it depends on: `benchmarks/install.py`."""
    python, folder = python_at_hand(minor), tmp_path / "installed"
    pip = "-m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile --target".split()
    ran([python, *pip, str(folder), str(wheel)], tmp_path)
    ran([python, "-W", "error", "-m", "compileall", "-q", "-j", "0", str(folder)], tmp_path)
    code = "import cgraph, sys; print(cgraph.__version__, *sys.version_info[:2])"
    assert ran([python, "-c", code], tmp_path, PYTHONPATH=str(folder)).split() == [cgraph.__version__, "3", str(minor)]


def test_an_older_python_is_refused(wheel, tmp_path):
    python = python_at_hand(10)
    pip = "-m pip install --quiet --disable-pip-version-check --no-index --no-deps --target".split()
    done = subprocess.run([python, *pip, str(tmp_path / "no"), str(wheel)], capture_output=True, text=True)
    assert done.returncode and "requires a different Python" in done.stderr
