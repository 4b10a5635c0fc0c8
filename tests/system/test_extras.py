"""The command that installs a package: by the smallest extra of the distribution that has the command, or by name."""

from types import SimpleNamespace

import pytest

from cgraph.system import extras
from cgraph.system.extras import extra_of, install_command, missing_package, normal

REQUIRES = [
    "numpy>=2", "h5py>=3.11; extra == 'h5'", "Pillow; extra == 'image'", "h5py; extra == 'files'",
    "pillow>=1 ; extra == 'files'", 'onnx; python_version > "3" and extra == "files"', "h5py; extra == 'dev'",
    "only_dev; extra == 'dev'", "only_dev; extra == 'bench'", "a; extra == 'bench'", "b; extra == 'bench'",
]  # fmt: skip


@pytest.mark.parametrize(("package", "extra"), [
    ("h5py", "h5"), ("Pillow", "image"), ("pillow", "image"), ("onnx", "files"), ("only-dev", "dev"),
    ("only.Dev", "dev"), ("a", "bench"), ("numpy", None), ("h5", None), ("h5py-more", None),
])  # fmt: skip
def test_the_extra_with_the_fewest_packages_has_it(package, extra):
    assert extra_of(package, REQUIRES) == extra and extra_of(package, []) is None


def script(value="cgraph.cli:program", name="the-library", requires=REQUIRES, has_dist=True):
    dist = SimpleNamespace(name=name, requires=requires) if has_dist else None
    return SimpleNamespace(value=value, dist=dist)


OTHER = script("other.cli:main", "other")


@pytest.mark.parametrize(("scripts", "package", "command"), [
    ([script()], "h5py", "pip install 'the-library[h5]'"), ([script()], "numpy", "pip install numpy"),
    ([OTHER, script()], "h5py", "pip install 'the-library[h5]'"), ([OTHER], "h5py", "pip install h5py"),
    ([script(has_dist=False), script(name="second")], "h5py", "pip install 'second[h5]'"),
    ([script(requires=None), script(name="second")], "h5py", "pip install h5py"), ([], "h5py", "pip install h5py"),
    ([script(), script(name="second")], "onnx", "pip install 'the-library[files]'"),
])  # fmt: skip
def test_the_distribution_is_that_of_the_command(monkeypatch, scripts, package, command):
    asked = []
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **of: asked.append(of) or scripts)
    assert install_command(package) == command
    assert asked == [{"group": "console_scripts", "name": extras.COMMAND}]
    assert str(missing_package(package, "Some files")) == f"Some files need the package {package}: {command}"


def test_names_are_compared_as_the_index_does():
    assert normal("A._-b") == normal("a-B") == "a-b" and normal("imageio_ffmpeg") == "imageio-ffmpeg"
