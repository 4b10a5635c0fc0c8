"""Scripts of users for type checkers: what a line reveals stands behind it, and ``# wrong`` behind what is."""

import re
from pathlib import Path
from types import FunctionType, ModuleType

import cgraph
import nn
from cgraph import array_api, numpy

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
README = "# mypy: allow-untyped-defs, allow-untyped-calls\n" + "\n".join(BLOCKS)

RIGHT = """
import numpy as np
import cgraph as cg
import nn

x, w = cg.Var((2, 3), name="x"), cg.Var((3, 4), name="w")
y = cg.sin(x) @ w + 1
loss = cg.mean(cg.square(y))
step = cg.compile([loss, y], x, updates={w: w - 0.1 * cg.gradient(loss, w)}, budget="2MiB", threads=2)
np.asarray(cg.load("folder")(np.ones((2, 3))))
reveal_type(cg.sin(x))  # Node
reveal_type(2 * y > x)  # Node
reveal_type(x == 1)  # Node
reveal_type(y.mean(axis=0).reshape(-1))  # Node
reveal_type(cg.top_k(x, 2))  # tuple[Node, Node]
reveal_type(cg.gradient(loss, [x, w]))  # list[Node]
reveal_type(step)  # Function
try:
    cg.formats.onnx.load("model.onnx")
except cg.ShapeError as error:
    print(error, cg.__version__)
"""

WRONG = """
import cgraph as cg
x = cg.Var((2, 3))
cg.sinn(x)  # wrong
cg.sin(x, x)  # wrong
cg.conv2d(x, x, strides=2)  # wrong
cg.compile(x, x, budgett=3)  # wrong
cg.compile(x, x, budget=[3])  # wrong
cg.sin(x).men()  # wrong
x = cg.Varr  # wrong
"""

NUMPY = """
import numpy as np
import cgraph as cg
x = cg.Var((2, 3))
reveal_type(np.sin(x))  # Node
reveal_type(np.where(x > 0, x, 1))  # Node
reveal_type(np.mean(x, axis=0))  # Node
reveal_type(np.ones(3) * x)  # Node
reveal_type(np.negative(np.sin(x) @ np.ones((3, 3))))  # Node
cg.compile([np.sin(x), cg.sin(x)], x, {x: np.sin(x)})
cg.gradient(np.square(x), [x], seed=np.sin(x))
cg.eval(np.sin(x))
"""

STANDARD = """
from cgraph import array_api as xp
import cgraph as cg
import cgraph.numpy as cnp
x = xp.asarray([1.0, 2.0], dtype=xp.float32)
x[0] = 2.0
x += 1
y = xp.sum(xp.sin(x.T) * 2 + x[0] @ -x)
print(float(y), xp.pi, xp.isdtype(x.dtype, "real floating"), xp.linalg.svd(y).S)
reveal_type(y)  # Array
reveal_type(1 - x == 2)  # Array
reveal_type(xp.linalg.solve(x, xp.fft.fft(x)))  # Array
w = cg.Var((3, 3))
reveal_type(cnp.linalg.eigh(w).eigenvalues)  # Node
reveal_type(cnp.linalg.inv(cnp.concatenate([w, w])))  # Node
xp.sinn(x)  # wrong
xp.linalg.norm(x)  # wrong
xp.sum(x, axes=0)  # wrong
x.tt  # wrong
"""


NAMED = {"cg": cgraph, "nn": nn, "cg.array_api": array_api, "cg.numpy": numpy}
NAMED |= {f"nn.{m.__name__[3:]}": m for m in (nn.layers, nn.optim, nn.losses, nn.metrics, nn.models)}


def every_name() -> str:
    """A script that names all that is public."""
    names = [f"    {text}.{name}," for text, module in NAMED.items() for name in public_names(module)]
    return "\n".join(
        ["from typing import Any", "import cgraph as cg", "import nn", "names: list[Any] = [", *names, "]\n"]
    )


def public_names(module: ModuleType) -> list[str]:
    """The names that a module says are its own; else its functions."""
    if hasattr(module, "__all__"):
        return sorted(set(module.__all__))
    return [name for name, x in vars(module).items() if isinstance(x, FunctionType) and not name.startswith("_")]


def wrong_lines(script: str) -> list[int]:
    """The lines of a script that must be errors, and no others."""
    return [i for i, line in enumerate(script.splitlines(), 1) if line.endswith("# wrong")]


def types_of(script: str) -> list[tuple[int, str]]:
    """What the comments of a script say that a type checker reveals, by line."""
    lines = enumerate(script.splitlines(), 1)
    return [(i, line.partition("  # ")[2]) for i, line in lines if line.startswith("reveal_type")]
