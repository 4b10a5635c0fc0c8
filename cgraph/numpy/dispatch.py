"""Dispatch of NumPy's functions, ufuncs and ndarray methods on nodes, by function object.

Arguments are bound by NumPy's own signature. Arguments equal to its defaults, or that only concern the memory layout,
are dropped; others that the function here does not take are refused. Only a call with a foreign type that overrides
NumPy's functions, too, is left to NumPy.
"""

from collections.abc import Callable
from functools import cache, partial
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np

import cgraph.numpy  # noqa: F401 - fills the table
from cgraph.errors import NoMeaningError
from cgraph.ir.graph import OPS, Node, locate
from cgraph.ir.origin import user_line
from cgraph.numpy import methods
from cgraph.numpy.plain import MEMORY
from cgraph.numpy.refused import ELSE, IN_PLACE, MASKED, REFUSED, SCIPY_NAMES
from cgraph.numpy.table import FUNCTIONS
from cgraph.numpy.ufuncs import METHODS, UFUNC_KEYWORDS, signature_of_dtype
from cgraph.ops.leaf import as_node


def refuse(function: Any, why: str) -> Any:
    """Raise NoMeaningError with NumPy's name of the function and the user's line."""
    raise locate(NoMeaningError(), f"{name_of(function)} at {user_line()}: {why}")


def name_of(function: Any) -> str:
    """Return the name that users write, such as ``np.fft.fft`` or ``np.add``."""
    module = getattr(function, "__module__", "numpy")
    if not hasattr(function, "__module__") and not hasattr(np, function.__name__):
        return str(function.__name__)  # a ufunc of another package
    module = {"numpy.lib.scimath": "np.emath"}.get(module, module.replace("numpy", "np", 1))
    return f"{module}.{function.__name__}"


@cache
def parameters_of(function: Callable) -> dict[str, Parameter]:
    return dict(signature_of(function).parameters)


@cache
def signature_of(function: Callable) -> Signature:
    return signature(function)


# -- functions --------------------------------------------------------------------------------------------------------


def call_function(function: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
    """Call our counterpart of a NumPy function. NoMeaningError if there is none."""
    if any(not issubclass(t, Node | np.ndarray) for t in types):
        return NotImplemented
    ours = FUNCTIONS.get(function)
    if ours is None:
        return refuse(function, REFUSED.get(function, ELSE))
    positional, named = bind(function, ours, args, kwargs)
    return ours(*positional, **named)


def bind(function: Callable, ours: Callable, args: tuple, kwargs: dict) -> tuple[list[Any], dict[str, Any]]:
    """Return NumPy's required arguments by position, and by name those that differ from their defaults."""
    arguments = signature_of(function).bind(*args, **kwargs).arguments
    takes = parameters_of(ours)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, parameter in parameters_of(function).items():
        if name not in arguments:
            continue
        value = arguments[name]
        if parameter.kind is Parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is Parameter.VAR_KEYWORD:
            named.update(value)
        elif parameter.default is Parameter.empty or parameter.kind is Parameter.POSITIONAL_ONLY:
            positional.append(value)
        elif name == "out" and value is not None:
            refuse(function, IN_PLACE)
        elif not says_nothing(name, value, parameter.default, takes):
            named[name] = value
    if not any(p.kind is Parameter.VAR_KEYWORD for p in takes.values()):
        refuse_unknown(function, named, takes)
    return positional, named


def says_nothing(name: str, value: Any, default: Any, takes: dict[str, Parameter]) -> bool:
    """Return True if the value is NumPy's default, or belongs to a keyword without meaning for nodes."""
    if value is default or (name in MEMORY and name not in takes):
        return True
    return isinstance(value, bool | int | str | float) and type(value) is type(default) and value == default


def refuse_unknown(function: Any, named: dict[str, Any], takes: dict[str, Parameter]) -> None:
    for name in named:
        if name not in takes:
            refuse(function, f"{name}= means nothing for nodes; use {', '.join(takes)}")


# -- ufuncs -----------------------------------------------------------------------------------------------------------


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict) -> Any:
    """Call our counterpart of a ufunc or of one of its methods. NoMeaningError if there is none."""
    if any(map(is_foreign, inputs)):
        return NotImplemented
    ours = FUNCTIONS.get(ufunc)
    if ours is None:
        return refuse(ufunc, REFUSED.get(ufunc) or else_of(ufunc))
    if any(x is not None for x in kwargs.pop("out", ())):
        return refuse(ufunc, IN_PLACE)
    if method == "__call__":
        return cast_call(ufunc, ours, inputs, kwargs) if kwargs else ours(*inputs)
    if method == "outer":
        return outer(ufunc, ours, *inputs, **kwargs)
    if method not in METHODS or ufunc.nin != 2 or ufunc.signature is not None:
        return refuse(
            ufunc, f"{method} changes its operand, or is not of it; use cg.scatter(x, positions, values, 'add')"
        )
    try:
        return METHODS[method](ufunc, ours, *inputs, **kwargs)
    except NoMeaningError as error:
        return refuse(ufunc, str(error))


def else_of(ufunc: np.ufunc) -> str:
    """Return advice for a ufunc of another package, such as SciPy's: the op of its name if there is one."""
    name = SCIPY_NAMES.get(ufunc.__name__, ufunc.__name__)
    return f"use cg.{name}, which takes nodes" if name in OPS else ELSE


def is_foreign(x: Any) -> bool:
    """Return True for an operand of another type that overrides ufuncs."""
    if isinstance(x, Node | np.ndarray | np.generic | int | float | list | tuple):
        return False
    return getattr(type(x), "__array_ufunc__", None) is not None


def cast_call(ufunc: np.ufunc, ours: Callable, inputs: tuple, kwargs: dict) -> Any:
    """Call with keywords: cast the operands to the dtypes that NumPy's own rule selects for `dtype`."""
    if kwargs.pop("where", True) is not True:
        return refuse(ufunc, MASKED.format(ufunc.__name__))
    rule = {k: kwargs.pop(k) for k in UFUNC_KEYWORDS if k in kwargs}
    named = {k: v for k, v in kwargs.items() if k not in MEMORY}
    refuse_unknown(ufunc, named, parameters_of(ours))
    if not rule:
        return ours(*inputs, **named)
    open_kinds = tuple(kind_of(x) for x in inputs) + (None,) * ufunc.nout
    kinds = ufunc.resolve_dtypes(open_kinds, **signature_of_dtype(ufunc, rule))  # type: ignore[arg-type]
    results = ours(*(as_node(x, kind).astype(kind) for x, kind in zip(inputs, kinds)), **named)
    if ufunc.nout == 1:
        return results.astype(kinds[-1])
    return tuple(x.astype(kind) for x, kind in zip(results, kinds[ufunc.nin :]))


def kind_of(x: Any) -> Any:
    """Return an operand as NumPy's dtype rule takes it: the Python type of a number, otherwise a dtype."""
    if type(x) in (int, float, complex):
        return type(x)
    return x.dtype if isinstance(x, Node) else np.asarray(x).dtype


def outer(ufunc: np.ufunc, ours: Callable, x: Any, y: Any, **kwargs: Any) -> Any:
    """Compute ``ufunc.outer``: every element of x with every element of y."""
    x, y = as_node(x), as_node(y)
    return cast_call(ufunc, ours, (x.reshape((*x.shape, *[1] * y.ndim)), y), kwargs)


# -- methods and attributes -------------------------------------------------------------------------------------------


def attribute(node: Node, name: str) -> Any:
    """Return a method or attribute of an ndarray.

    Raises
        NoMeaningError: nodes do not have it; also an AttributeError, so that `hasattr` returns False
    """
    if name in methods.ATTRIBUTES:
        return methods.ATTRIBUTES[name](node)
    if name in methods.METHODS:
        return partial(methods.METHODS[name], node)
    reason = methods.REFUSED.get(name) or methods.OF_OTHERS.get(name)
    if reason is not None:
        raise NoMeaningError(f"{node.name} at {node.where} has no {name}: {reason}")
    raise AttributeError(f"a node has no attribute {name!r}")


def names() -> list[str]:
    """Return the names of the methods and attributes of an ndarray that nodes have."""
    return [*methods.ATTRIBUTES, *methods.METHODS]
