"""Ufunc methods reduce, accumulate and reduceat, and the dtypes that a ufunc call requests."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from cgraph.errors import NoMeaningError, ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy import reductions
from cgraph.numpy.folds import by_halves, by_steps
from cgraph.ops.join import stack
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import axis_of

REDUCED: dict[Any, Callable] = {
    np.add: reductions.sum,
    np.logical_and: reductions.all,
    np.logical_or: reductions.any,
    np.maximum: reductions.max,
    np.minimum: reductions.min,
    np.multiply: reductions.prod,
}
"""Ufuncs whose ``reduce`` has a function."""
ACCUMULATED: dict[Any, Callable] = {np.add: reductions.cumsum, np.multiply: reductions.cumprod}
"""Ufuncs whose ``accumulate`` has a function."""
GROUPED: dict[Any, Any] = {
    np.bitwise_and: -1, np.bitwise_or: 0, np.bitwise_xor: 0, np.fmax: None, np.fmin: None, np.gcd: 0, np.hypot: 0.0,
    np.lcm: None, np.logaddexp: -np.inf, np.logaddexp2: -np.inf, np.logical_and: True, np.logical_or: False,
    np.logical_xor: False, np.maximum: None, np.minimum: None,
}  # fmt: skip
"""Associative ufuncs, with their result for no elements; None if there is none."""


def reduce(
    ufunc: np.ufunc, ours: Callable, x: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False,
    initial: Any = None, where: Any = True,
) -> Node:  # fmt: skip
    """Compute ``ufunc.reduce``: an op's own reduction, or pairs of pairs if the order does not matter."""
    said = {"dtype": dtype} if dtype is not None else {}
    said |= {} if initial is None or initial is np._NoValue else {"initial": initial}  # type: ignore[attr-defined]
    said |= {} if where is True else {"where": where}
    function = REDUCED.get(ufunc)
    if function is None and ufunc not in GROUPED:
        raise NoMeaningError(
            f"the result of {ufunc.__name__}.reduce depends on the order; use x[0] with np.sum or np.prod of x[1:]"
        )
    for name in said:
        if function is None or name not in signature(function).parameters:
            raise NoMeaningError(f"reduce takes no {name}= of nodes; use np.where, or x.astype(dtype), before it")
    if function is not None:
        return function(x, axis, keepdims=keepdims, **said)
    return by_halves(ours, as_node(x), axis, keepdims, GROUPED[ufunc])


def accumulate(ufunc: np.ufunc, ours: Callable, x: Any, axis: int = 0, dtype: Any = None) -> Node:
    """Compute ``ufunc.accumulate``: running sums and products, or steps of 1, 2, 4, ... if the order does not
    matter."""
    x = as_node(x)
    if ufunc in ACCUMULATED:
        return ACCUMULATED[ufunc](x, axis, dtype)
    if ufunc not in GROUPED:
        raise NoMeaningError(
            f"the result of {ufunc.__name__}.accumulate depends on the order; use np.cumsum or np.cumprod"
        )
    return by_steps(ours, x if dtype is None else x.astype(dtype), axis_of(axis, x.ndim))


def reduceat(ufunc: np.ufunc, ours: Callable, x: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Node:
    """Compute ``ufunc.reduceat`` of constant indices: one reduction for each part."""
    if isinstance(indices, Node):
        raise NoMeaningError(f"indices {indices.spec} have no value yet; use constants, or np.cumsum and np.take")
    x = as_node(x)
    axis = axis_of(axis, x.ndim)
    places = np.asarray(indices).tolist()
    if outside := [i for i in places if not 0 <= i < x.shape[axis]]:
        raise ShapeError(f"index {outside[0]} is outside axis {axis} of {x.spec}. Pass indices below {x.shape[axis]}")
    parts = []
    for first, last in zip(places, [*places[1:], x.shape[axis]]):
        part = x[(*[slice(None)] * axis, slice(first, last if last > first else first + 1))]
        parts.append(reduce(ufunc, ours, part, axis, dtype))
    return stack(parts, axis)


METHODS: dict[str, Any] = {"accumulate": accumulate, "reduce": reduce, "reduceat": reduceat}

UFUNC_KEYWORDS = ("dtype", "casting", "signature", "sig")


def signature_of_dtype(ufunc: np.ufunc, rule: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `ufunc.resolve_dtypes`: a dtype as a signature that leaves the operands open."""
    keywords = {"casting": rule["casting"]} if "casting" in rule else {}
    asked = rule.get("signature", rule.get("sig"))
    if rule.get("dtype") is not None:
        asked = (None,) * ufunc.nin + (np.dtype(rule["dtype"]),) * ufunc.nout
    return keywords if asked is None else keywords | {"signature": tuple(asked)}
