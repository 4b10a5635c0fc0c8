"""Calls without nodes: outside a traced function NumPy itself computes them, so that `cgraph.numpy` replaces NumPy.

The modules of this package build nodes whatever their operands are, for the library. The functions that users see in
``cgraph.numpy`` first check whether a node is among the operands.
"""

from collections.abc import Callable, Iterable, Set
from difflib import get_close_matches
from functools import cache, wraps
from inspect import Parameter, signature
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from cgraph.ir.graph import OPS
from cgraph.ir.tracing import TRACE
from cgraph.numpy.creation import has_node

MEMORY = frozenset(["copy", "device", "like", "order", "overwrite_input", "subok"])
"""Keywords about allocation or memory layout, which a node does not have."""
OF_UFUNCS = ("accumulate", "at", "outer", "reduce", "reduceat")


@cache
def parameters_of(function: Callable) -> Set[str]:
    return signature(function).parameters.keys()


@cache
def has_keywords(function: Callable) -> bool:
    """Return True for a function that takes any keyword."""
    return any(p.kind is Parameter.VAR_KEYWORD for p in signature(function).parameters.values())


def with_plain_calls(ours: Callable, numpys: Callable, place: str) -> Callable:
    """Return a function that calls NumPy's outside a trace if no operand is a node, otherwise ours.

    Parameters
        place: its name within `cgraph.numpy`, such as ``linalg.inv``
    """

    @wraps(ours)
    def called(*args: Any, **kwargs: Any) -> Any:
        if TRACE.get() is None and not any(map(has_node, (*args, *kwargs.values()))):
            return numpys(*args, **kwargs)
        if kwargs:
            takes = parameters_of(ours)
            kwargs = {name: value for name, value in kwargs.items() if name in takes or name not in MEMORY}
            if not kwargs.keys() <= takes and not has_keywords(ours):
                return numpys(*args, **kwargs)  # which finds our function, carries out `out`, or names the way out
        return ours(*args, **kwargs)

    called.__module__, called.__qualname__ = "cgraph.numpy", place
    if isinstance(numpys, np.ufunc):
        called.__dict__.update({name: getattr(numpys, name) for name in OF_UFUNCS})
    return called


def functions(names: dict[str, Any], numpys: Any, prefix: str = "") -> dict[str, Callable]:
    """Return those of these names that are public functions, with plain calls."""
    windows = np.lib.stride_tricks.sliding_window_view
    return {
        name: with_plain_calls(value, getattr(numpys, name, windows), prefix + name)
        for name, value in names.items()
        if isinstance(value, FunctionType) and not name.startswith("_")
    }


def namespace(module: ModuleType, numpys: Any) -> ModuleType:
    """Return a module of functions with plain calls; other names are NumPy's, such as ``linalg.LinAlgError``."""
    short = module.__name__.rpartition(".")[2]
    result = ModuleType(module.__name__, module.__doc__)
    public = {name: getattr(module, name) for name in module.__all__}
    vars(result).update(functions(public, numpys, f"{short}."), __all__=module.__all__, __file__=module.__file__)
    vars(result)["__getattr__"] = lambda name: attribute(name, numpys, module.__name__, module.__all__)
    return result


def attribute(name: str, numpys: Any, module: str, names: Iterable[str]) -> Any:
    """Return what NumPy has under a name. AttributeError that names the way out if it has nothing.

    Functions of NumPy find ours for nodes, or refuse nodes with a way out.
    """
    if name.startswith("_"):
        raise AttributeError(f"{module} has no attribute {name!r}")
    try:
        return getattr(numpys, name)
    except AttributeError as error:
        near = get_close_matches(name, [*names, *dir(numpys)], 1)
        if "removed" in str(error):
            remedy = str(error)
        elif name in OPS:
            remedy = f"use cg.{name}, which takes nodes"
        elif near:
            remedy = f"the nearest is {module}.{near[0]}"
        else:
            remedy = f"NumPy has none either; see dir({module})"
    raise AttributeError(f"{module} has no attribute {name!r}; {remedy}")
