"""Modules that are imported when one of their functions is first called."""

import subprocess
import sys

import pytest

from cgraph.late import LateModule


def test_a_module_is_imported_at_the_first_call():
    code = """
import sys
from cgraph.late import LateModule
module = LateModule("wave")
function = module.open
assert "wave" not in sys.modules
try:
    function("", mode="nothing")
except sys.modules["wave"].Error as error:
    print(error)
assert module.open is function
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "mode must be 'r', 'rb', 'w', or 'wb'\n"


def test_errors_of_late_modules():
    with pytest.raises(AttributeError, match="^__wrapped__$"):
        LateModule("math").__getattr__("__wrapped__")
    with pytest.raises(AttributeError, match="no attribute 'no_function'"):
        LateModule("math").no_function(1)
    with pytest.raises(ModuleNotFoundError, match="no_module"):
        LateModule("no_module").sqrt(1)


def test_a_compile_for_the_cpu_loads_no_module_for_gpus_and_no_operator_of_onnx():
    code = """
import sys
import cgraph as cg
x = cg.Var((4, 4), "f4")
cg.compile([x @ x, cg.softmax(x)], x)
print([x for x in sys.modules if x.startswith("cgraph") and (x.endswith(".gpu_calls") or ".onnx" in x)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
