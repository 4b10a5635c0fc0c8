"""Several pointwise ops in one: one loop, one kernel, no bytes for what lies between."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgraph.ops.family import Pointwise

Body = tuple[tuple[Pointwise, tuple[int, ...]], ...]


@dataclass(frozen=True)
class FusedPointwise(Pointwise):
    """The last of a list of pointwise ops.

    Fields
        count: operands
        body: per op, the op and the positions of its operands: first the operands 0…count-1, then earlier results
    """

    count: int
    body: Body

    @property
    def name(self) -> str:
        names = list(dict.fromkeys(op.name for op, _ in self.body))
        return "+".join(names[:4]) + ("+…" if len(names) > 4 else "")

    def _walk(self, xs: tuple, one: Callable[[Pointwise, tuple], Any]) -> Any:
        values = list(xs)
        for op, places in self.body:
            values.append(one(op, tuple(values[i] for i in places)))
        return values[-1]

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        return self._walk(dtypes, lambda op, xs: op.dtype(*xs))

    def meaning(self, *xs):
        return self._walk(xs, lambda op, values: op.meaning(*values))

    def scalar(self, m, *xs):
        return self._walk(xs, lambda op, values: op.scalar(m, *values))
