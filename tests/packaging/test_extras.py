"""A package that is not installed: the error says which one, and the command that installs it, from the metadata."""

import re
import sys

import numpy as np
import pytest

import cgraph as cg
import nn
from cgraph.dist.blocks import dask_part
from cgraph.errors import UnavailableError
from cgraph.formats.onnx.onnx_messages import messages
from cgraph.formats.pictures import open_picture
from cgraph.running.full_match import full_match
from cgraph.system import extras
from nn.history import History
from nn.models.mask_rcnn.tools import frames, precision
from tests.packaging.test_requirements import PROJECT

LINES = [
    f"{row}; extra == '{extra}'" for extra, rows in PROJECT["optional-dependencies"].items() for row in rows
]  # as metadata has them
HISTORY = History(np.ones(2), np.ones(2), np.zeros(0), np.zeros(0))


def save_onnx(folder):
    x = cg.Var((2,))
    cg.formats.onnx.save(folder / "m.onnx", x + 1, [x])


def load_h5(folder):
    (folder / "m.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    cg.load(folder / "m.h5")


def load_onnx(folder):
    (folder / "m.onnx").write_bytes(b"\x08\x08\x3a\x00")
    cg.load(folder / "m.onnx")


def open_image(folder):
    with open_picture(folder / "x.png"):
        pass


CALLS = {
    "onnx": (save_onnx, "onnx"), "onnx to read": (load_onnx, "onnx"), "h5py": (load_h5, "h5"),
    "Pillow": (open_image, "image"), "matplotlib": (lambda folder: HISTORY.plot(folder / "x.png"), "plot"),
    "tensorboardX": (nn.TensorBoard, "tensorboard"),
    "google-re2": (lambda folder: full_match("[b-y]*"), "regex"),
    "distributed": (lambda folder: dask_part("distributed"), "dist"),
    "imageio-ffmpeg": (lambda folder: frames.write_film(folder / "x.mp4", 1, [None]), "video"),
    "pycocotools": (lambda folder: precision.precision([], [], 1), "examples"),
}  # fmt: skip
MODULES = {"Pillow": "PIL", "google-re2": "re2", "imageio-ffmpeg": "imageio_ffmpeg", "pycocotools": "pycocotools.coco"}


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_package_is_named_with_the_command_that_installs_it(name, tmp_path, monkeypatch):
    package = name.split()[0]
    call, extra = CALLS[name]
    module = MODULES.get(package, package)
    for loaded in [x for x in sys.modules if x == module or x.startswith(f"{module}.")]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.setitem(sys.modules, module, None)
    messages.cache_clear()  # else an earlier test's module of messages is still there
    with pytest.raises(UnavailableError) as caught:
        call(tmp_path)
    assert f"need the package {package}: {extras.install_command(package)}" in str(caught.value)
    assert extras.extra_of(package, LINES) == extra


def test_every_package_of_an_extra_for_users_is_in_the_command():
    for extra in ("onnx", "h5", "image", "plot", "rich", "tensorboard", "completion", "regex", "dist", "video"):
        for row in PROJECT["optional-dependencies"][extra]:
            assert extras.extra_of(re.match(r"[\w-]+", row)[0], LINES) == extra, row
    assert extras.extra_of("numpy", LINES) is None


class Script:
    value = "cgraph.cli:program"

    class dist:
        name = PROJECT["name"]
        requires = LINES


class OfAnother(Script):
    value = "graphs:main"

    class dist:
        name = "graphs"
        requires = LINES


class WithoutMetadata(Script):
    dist = None


def test_the_command_has_the_name_of_the_distribution(monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [Script])
    assert extras.install_command("h5py") == f"pip install '{PROJECT['name']}[h5]'"
    assert extras.install_command("graphviz") == "pip install graphviz"
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [OfAnother, WithoutMetadata, Script])
    assert extras.install_command("h5py") == f"pip install '{PROJECT['name']}[h5]'"
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [OfAnother])
    assert extras.install_command("h5py") == "pip install h5py", "a command of this name of another distribution"
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    assert extras.install_command("h5py") == "pip install h5py", "sources without metadata"


def test_the_distribution_is_not_called_as_packages_of_others_and_refers_to_itself_by_its_name():
    assert PROJECT["name"] not in ("cgraph", "nn")
    own = {row.partition("[")[0] for row in PROJECT["optional-dependencies"]["dev"] if "[" in row}
    assert own == {PROJECT["name"]} and nn.__name__ == "nn"


@pytest.mark.parametrize(("lines", "extra"), [
    (["a; extra == 'dev'", "a; extra == 'x'", "b; extra == 'x'"], "x"), (["a; extra == 'dev'"], "dev"),
    (["a; extra == 'x'", "b; extra == 'x'", "a>=2; extra == 'y'"], "y"), (["a", "b; extra == 'x'"], None),
    (["A_b.c[d]>=1; python_version > '3' and extra == \"x\""], "x"), (["aa; extra == 'x'"], None),
])  # fmt: skip
def test_the_smallest_extra_with_a_package_is_named_and_one_that_holds_others_last(lines, extra):
    package = "a-B_c" if lines[0].startswith("A") else "a"
    assert extras.extra_of(package, lines) == extra
