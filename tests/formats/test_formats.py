"""Formats are found by name, and cost nothing until then; loading a model needs little beside its file."""

import re
import subprocess
import sys

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats import FORMATS, darknet, deep_compression, keras_h5, npz, safetensors, torch_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.darknet.parameters import StoredParameters
from cgraph.formats.onnx import save

HEAVY = "h5py onnx google.protobuf numba scipy PIL matplotlib rich cgraph.formats.onnx cgraph.formats.darknet".split()


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_found_by_name(name):
    assert getattr(cg.formats, name).__name__ == f"cgraph.formats.{name}"


def test_another_format_is_an_error_that_names_those_there_are():
    with pytest.raises(AttributeError, match="onnx"):
        cg.formats.word  # noqa: B018


def test_import_of_cgraph_loads_no_format_and_nothing_heavy():
    code = f"import cgraph, sys; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


PEAK = """
import os, sys
from cgraph.formats import onnx
from onnx import checker

def peak():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))

before = peak()
model = onnx.load(sys.argv[1])
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_loading_peaks_at_little_more_than_the_file(tmp_path):
    x = cg.Var((1, 2048), name="x")
    y = x
    for i in range(2):
        y = cg.relu(y @ cg.Const(np.full((2048, 2048), i, "float32"), name=f"weights{i}"))
    path = tmp_path / "net.onnx"
    save(path, y, [x])
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 1.1 * path.stat().st_size


READERS = {
    "npz": npz.read_npz,
    "npy": npz.read_npy,
    "safetensors": safetensors.read_safetensors,
    "torch": torch_file.read_torch,
    "keras": keras_h5.read_keras,
    "deep compression": lambda path: deep_compression.read_deep_compression(path, [(1, 1, 1, 1)]),
    "darknet": darknet.load,
    "weights of darknet": lambda path: StoredParameters(path, Allowance(0)),
}


@pytest.mark.parametrize("reader", READERS)
def test_what_is_wrong_with_a_file_is_told_after_its_path(reader, tmp_path):
    if reader == "keras":
        pytest.importorskip("h5py")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "é nonsense").write_bytes(b"\xff none of them")
    for name in ("absent", "folder", "empty", "é nonsense"):
        for path in (tmp_path / name, str(tmp_path / name)):
            with pytest.raises(FormatError, match=f"^{re.escape(str(path))}:? .") as caught:
                READERS[reader](path)
            assert str(caught.value).count(str(path)) in (1, 2), "and the system may name it again"
