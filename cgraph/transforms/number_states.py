"""Python numbers that loops pass from round to round, and that the branches of a choice return.

A state that begins as a Python number promotes as one. If a round returns an array's dtype or another kind of number
for it, as ``total + x[i]`` does for ``total = 0``, the state has that dtype from the start, and the loop is built once
more. A Python number that a round or a branch returns beside an array has the array's dtype if that holds it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.transforms.tracer import Tracer
from cgraph.transforms.weak import SAMPLES, is_weak

Kind = Any  # of a value: the type of a Python number, or the dtype of an array


class NumberStates:
    """Kinds that the values of one loop or choice must have. Mutable: each build may find others.

    Builds end: a value becomes at most int, float, complex and an array's dtype, in this order.

    Fields
        kinds: by the path of a value, the kind that it must have; other values keep theirs
        is_settled: the present build found no other kind
    """

    def __init__(self) -> None:
        self.kinds: dict[tuple, Kind] = {}
        self.is_settled = False

    def first(self, trace: Any, values: Any) -> Any:
        """Return an initial state, or the results of the first branch, in the kinds found so far."""
        return map_paths(lambda x, at: convert(trace, x, self.kinds[at]) if at in self.kinds else x, values, ())

    def following(self, trace: Any, values: Any, kinds: Any, path: tuple = ()) -> Any:
        """Return the next state, or the results of the other branch, in the kinds of the values before.

        A value that decides about the kind of the one before is replaced, and the next build has its kind.
        """
        if isinstance(kinds, tuple | list) and isinstance(values, tuple | list) and len(kinds) == len(values):
            members = [self.following(trace, x, kind, (*path, i)) for i, (x, kind) in enumerate(zip(values, kinds))]
            return type(values)(*members) if hasattr(values, "_fields") else tuple(members)
        if isinstance(kinds, dict) and isinstance(values, dict) and kinds.keys() == values.keys():
            return {key: self.following(trace, x, kinds[key], (*path, key)) for key, x in values.items()}
        old, new = kinds, kind_of(values)
        if not is_kind(old) or new is None or old == new or np.shape(values) != ():
            return values
        common = common_kind(old, new)
        if common == old and isinstance(new, type):
            return convert(trace, values, old)
        if not isinstance(old, type):
            return values
        self.kinds[path], self.is_settled = common, False
        return SAMPLES[old]


def kinds_of(values: Any) -> Any:
    """Return the kind of each value in nested tuples, lists and dicts."""
    return map_paths(lambda x, _: kind_of(x), values, ())


def types_in(kinds: Any) -> Any:
    """Return the types of Python numbers in nested kinds, and None for arrays."""
    return map_paths(lambda kind, _: kind if isinstance(kind, type) else None, kinds, ())


def map_paths(change: Callable[[Any, tuple], Any], values: Any, path: tuple) -> Any:
    """Return nested tuples, lists and dicts with each value changed, given its path."""
    if isinstance(values, tuple | list):
        members = [map_paths(change, x, (*path, i)) for i, x in enumerate(values)]
        return type(values)(*members) if hasattr(values, "_fields") else type(values)(members)
    if isinstance(values, dict):
        return {key: map_paths(change, x, (*path, key)) for key, x in values.items()}
    return change(values, path)


def kind_of(x: Any) -> Kind | None:
    """Return the kind of a number or an array; None for anything else."""
    if is_weak(x):
        return x.weak if isinstance(x, Tracer) else type(x)
    return getattr(x, "dtype", None)


def common_kind(old: Kind, new: Kind) -> Kind:
    """Return the kind of both: the wider type of two Python numbers, else the dtype to which they promote."""
    if not (isinstance(old, type) and isinstance(new, type)):
        return np.result_type(*(SAMPLES[kind] if isinstance(kind, type) else kind for kind in (old, new)))
    return next(kind for kind in reversed(SAMPLES) if kind in (old, new))


def is_kind(x: Any) -> bool:
    return isinstance(x, type | np.dtype)


def convert(trace: Any, x: Any, kind: Kind) -> Tracer:
    """Return a number in another kind."""
    weak = kind if isinstance(kind, type) else None
    return trace.number(x, np.asarray(SAMPLES[weak]).dtype if weak else kind, weak)
