"""Names that `cgraph` does not have: an error that says where they are."""

from collections.abc import Hashable, Iterable
from difflib import get_close_matches

import numpy as np

from cgraph.numpy.table import FUNCTIONS

ELSEWHERE = {
    "Tensor": "cg.Var and cg.Const make nodes",
    "Variable": "use cg.Var",
    "array": "use cg.Const(values) for a constant, cg.Var(array) for a variable",
    "asarray": "use cg.Const(values) for a constant, cg.Var(array) for a variable",
    "constant": "use cg.Const",
    "fori_loop": "use cg.fori",
    "function": "use cg.jit(function), or cg.compile(outputs, inputs)",
    "jacfwd": "use cg.jacobian",
    "jacrev": "use cg.jacobian",
    "lax": "use cg.scan, cg.fori, cg.while_loop, cg.cond",
    "mul": "use cg.multiply, or *",
    "onnx": "use cg.load(file), or cg.formats.onnx",
    "random": "use cg.random_normal(key, shape) and the like, with a key of cg.random_key(seed)",
    "switch": "use cg.cond inside cg.cond",
    "tensor": "use cg.Const(values) for a constant, cg.Var(array) for a variable",
    "variable": "use cg.Var",
    "vjp": "use cg.pullback, or cg.grad of the product with the vector (docs/jit.md)",
}
"""Names of other libraries, and what to use instead."""


def missing_name(name: str, names: Iterable[str]) -> AttributeError:
    """Return the error for a name that the package does not have.

    Parameters
        names: those that it has
    """
    numpys = getattr(np, name, None)
    plain = {x.lower(): x for x in names}
    near = [plain[name.lower()]] if name.lower() in plain else get_close_matches(name, list(names), 1)
    if name in ELSEWHERE:
        remedy = ELSEWHERE[name]
    elif isinstance(numpys, Hashable) and numpys in FUNCTIONS:
        remedy = f"use np.{name} or cg.numpy.{name}, which take nodes"
    elif near:
        remedy = f"the nearest is cg.{near[0]}"
    else:
        remedy = "see dir(cgraph)"
    return AttributeError(f"cgraph has no attribute {name!r}; {remedy}")
