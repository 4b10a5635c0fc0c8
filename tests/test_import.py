"""`import cgraph` loads nothing heavy: those packages are imported when they are first needed."""

import subprocess
import sys

HEAVY = "numba scipy llvmlite h5py onnx onnxruntime PIL matplotlib rich safetensors distributed torch".split()


def test_import_loads_no_heavy_package():
    code = f"import sys, cgraph; print([m for m in {HEAVY} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_public_name_is_there():
    code = "import cgraph; [getattr(cgraph, name) for name in cgraph.__all__]; cgraph.conv2d, cgraph.compile"
    subprocess.run([sys.executable, "-c", code], check=True)
