"""An import, and a run whose kernels are in the cache, load no module that they do not need."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cgraph

HEAVY = "numba scipy h5py onnx onnxruntime PIL matplotlib rich distributed torch numpy.f2py numpy.testing".split()
LATE = "numpy.ma numpy.random ssl tempfile threadpoolctl cgraph.formats cgraph.view".split()  # each takes milliseconds

RUN = """
import numpy as np, cgraph as cg, nn
x = cg.Var((2, 8), name="x")
cg.compile(cg.relu(cg.exp(x) @ np.ones((8, 4), "float32")), x)(np.ones((2, 8), "float32"))
net = nn.Sequential(nn.Input((3, 8, 8)), nn.Conv2d(3, 16, 3), nn.BatchNorm(16), nn.Activation("relu"), nn.MaxPool2d(2))
nn.compile(nn.initialise(net, "zeros"), batch=1)(np.ones((1, 3, 8, 8), "float32"))
"""

TRACED = """
import numpy as np, cgraph as cg
x = np.ones((2, 8), "float32")
cg.jit(lambda x: np.exp(x) @ np.ones((8, 4), "float32"))(x)
cg.grad(lambda x: np.sum(np.tanh(x)))(x)
cg.vmap(lambda x: np.sum(x * 2))(x)
"""


def loaded(code: str, names: list[str], **environment: str) -> str:
    """Which of the modules `names` a process has after `code`."""
    code += f"\nimport sys; print([m for m in {names} if m in sys.modules])"
    return output(code, **environment)


def output(code: str, **environment: str) -> str:
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | environment)
    return run.stdout.strip()


@pytest.mark.parametrize("package", ["cgraph", "nn"])
def test_an_import_loads_what_a_run_needs_and_nothing_heavy(package):
    assert loaded(f"import {package}", [*HEAVY, *LATE, "llvmlite"]) == "[]"


@pytest.mark.parametrize("run", [RUN, TRACED], ids=["compile", "jit"])
def test_a_run_whose_kernels_are_in_the_cache_loads_no_more(run, tmp_path):
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    loaded(run, [], **cache)
    emitters = [f"cgraph.kernels.llvm.{name}" for name in ("build", "compile", "pointwise", "conv")]
    assert loaded(run, [*HEAVY, *LATE, *emitters], **cache) == "[]"


def test_no_class_of_an_import_is_a_frozen_dataclass():
    """Frozen values are Records: docs/decisions/0008."""
    code = "import nn, sys; from dataclasses import is_dataclass"
    code += "; modules = [m for name, m in sys.modules.items() if name.startswith(('cgraph', 'nn'))]"
    code += "; classes = {x for m in modules for x in vars(m).values() if isinstance(x, type) and is_dataclass(x)}"
    code += "; print([x for x in classes if x.__dataclass_params__.frozen])"
    assert output(code) == "[]"


@pytest.mark.parametrize("order", ["cgraph.__all__", "reversed(cgraph.__all__)"])
def test_every_public_name_is_there(order):
    """Whichever comes first, each is bound to what has its name, and functions are what the stub writes as such."""
    code = "import cgraph, inspect, json; values = [(x, getattr(cgraph, x)) for x in ORDER]; "
    code += "print(json.dumps({x: [inspect.isroutine(v), isinstance(v, type), inspect.ismodule(v), "
    code += "getattr(v, '__name__', '').rpartition('.')[2]] for x, v in values}))"
    kinds = json.loads(output(code.replace("ORDER", order)))
    assert set(kinds) == set(cgraph.__all__) and set(cgraph.PICTURES) <= set(kinds)
    stub = ast.parse(Path(cgraph.__file__).with_suffix(".pyi").read_text())
    functions = {x.name for x in stub.body if isinstance(x, ast.FunctionDef)}
    assert functions and all(kinds[name] == [True, False, False, name] for name in functions), kinds
    others = {name: kind for name, kind in kinds.items() if name not in functions}
    assert {name for name, kind in others.items() if not any(kind[:3])} == {"OPS", "__version__"}


def test_the_package_alone_loads_only_its_slots_and_its_hook_for_errors():
    loaded = output("import cgraph, sys; print([m for m in sys.modules if m.startswith(('cgraph.', 'numpy'))])")
    assert loaded == "['cgraph.slots', 'cgraph.collector', 'cgraph.tracebacks']"


def test_every_public_name_is_listed():
    assert set(cgraph.__all__) <= set(dir(cgraph))


def test_a_node_has_its_operators_and_methods_whatever_was_named_first():
    assert output("from cgraph import Const; print((Const([1.0, 2.0]) + 1).eval(), Const(3).item())") == "[2. 3.] 3"


def test_a_name_that_is_not_there_is_refused_by_name():
    with pytest.raises(AttributeError, match="cgraph has no attribute 'conv2b'"):
        _ = cgraph.conv2b
    assert not hasattr(cgraph, "__wrapped__")


BY_NAME = {"cgraph/ir/graph.py", "cgraph/transforms/trace.py", "cgraph/cli/warmup.py"}  # operators, a file's names


def test_ops_reach_one_another_by_import():
    """Only operators, and what reads names from users or files, look an op up by name."""
    root = Path(__file__).parents[1]
    files = (path for path in root.glob("cgraph/**/*.py") if "formats" not in path.parts)
    asking = {str(path.relative_to(root)) for path in files if "OPS[" in path.read_text()}
    assert asking == BY_NAME
