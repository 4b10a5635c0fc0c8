"""Calls of the standard: lazy by `cgraph.numpy`, or eager by NumPy on values.

The lazy way is tried first. NumPy computes functions whose result's shape depends on values, and calls that the lazy
function refuses; COUNTS counts both.
"""

from collections import Counter
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from cgraph.array_api.array import Array
from cgraph.errors import CgraphError
from cgraph.ir.graph import Node

COUNTS: Counter[tuple[str, str]] = Counter()
"""Number of calls of each function, ``lazy`` or ``eager``."""


def wrap(x: Any, count: int) -> Any:
    """Return nodes and NumPy's values as Arrays, in tuples, lists and named tuples too."""
    if isinstance(x, Node):
        return Array(x, None, count)
    if isinstance(x, np.ndarray | np.generic):
        return Array(None, np.asarray(x))
    if isinstance(x, tuple | list):
        parts = [wrap(v, count) for v in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return x


def unwrap(x: Any, of: Callable[[Array], Any]) -> Any:
    """Return nodes or values of Arrays, in tuples and lists too."""
    if isinstance(x, Array):
        return of(x)
    return type(x)(unwrap(v, of) for v in x) if type(x) in (tuple, list) else x


def node_of(x: Array) -> Node:
    return x.node


def value_of(x: Array) -> np.ndarray:
    return x.value


def arrays_in(x: Any) -> list[Array]:
    if isinstance(x, Array):
        return [x]
    return [a for v in x for a in arrays_in(v)] if isinstance(x, tuple | list) else []


def is_complex(x: Any) -> bool:
    """Return True for a complex number, dtype or Array, and for tuples and lists with one."""
    if isinstance(x, tuple | list):
        return any(map(is_complex, x))
    if isinstance(x, Array | np.dtype):
        return (x.dtype if isinstance(x, Array) else x).kind == "c"
    return isinstance(x, complex) or x in (np.complex64, np.complex128)


def call_lazily_or_eagerly(
    name: str, lazy: Callable | None, eager: Callable, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """Call the lazy function if there is one and it does not refuse, otherwise the eager one."""
    arguments = (*args, *kwargs.values())
    if lazy is not None:
        count = 1 + sum(x.count for x in arrays_in(arguments))
        try:
            answer = wrap(lazy(*unwrap(args, node_of), **unwrap_values(kwargs, node_of)), count)
        except CgraphError:
            pass
        else:
            COUNTS[name, "lazy"] += 1
            return answer
    return call_eagerly(name, eager, args, kwargs)


def call_eagerly(name: str, eager: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call NumPy's function on values, at once."""
    COUNTS[name, "eager"] += 1
    with np.errstate(all="ignore"):
        return wrap(eager(*unwrap(args, value_of), **unwrap_values(kwargs, value_of)), 1)


def unwrap_values(kwargs: dict[str, Any], of: Callable[[Array], Any]) -> dict[str, Any]:
    return {k: unwrap(v, of) for k, v in kwargs.items()}


def function(name: str, text: str, lazy: Callable | None, eager: Callable, prepare: Callable | None = None) -> Callable:
    """Return the standard's function of this signature, as ``x, /, *, axis=None``; `prepare` changes its arguments
    first."""
    signature = signature_of(text)
    only_positions = all(p.kind is Parameter.POSITIONAL_ONLY for p in signature.parameters.values())
    plain = len(signature.parameters) if only_positions else None  # calls with as many arguments need no binding

    def called(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) == plain:
            return call_lazily_or_eagerly(name, lazy, eager, prepare(*args) if prepare is not None else args, kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        positional = prepare(*bound.args) if prepare is not None else bound.args
        return call_lazily_or_eagerly(name, lazy, eager, positional, bound.kwargs)

    called.__name__ = called.__qualname__ = name
    called.__signature__ = signature  # type: ignore[attr-defined]
    called.__doc__ = f"`{name}` of the Python array API standard."
    return called


DEFAULTS = {"None": None, "False": False, "True": True, "0": 0, "1": 1, "-1": -1, "2": 2, "0.0": 0.0, "'xy'": "xy"}
DEFAULTS |= {"'left'": "left", "'reduced'": "reduced", "'backward'": "backward", "'fro'": "fro"}


def signature_of(text: str) -> Signature:
    """Return the signature from a text in Python's syntax, without types."""
    parts = [p.strip() for p in text.split(",")]
    slash = parts.index("/") if "/" in parts else 0
    kinds: list[Parameter] = []
    kind: Any = Parameter.POSITIONAL_OR_KEYWORD
    for i, part in enumerate(parts):
        if part == "*":
            kind = Parameter.KEYWORD_ONLY
        elif part != "/":
            name, _, default = part.partition("=")
            own = Parameter.POSITIONAL_ONLY if i < slash else kind
            kinds.append(Parameter(name, own, default=DEFAULTS[default] if default else Parameter.empty))
    return Signature(kinds)
