"""CutFunction: a Function some of whose outputs have a length that is known only when run, and are cut to it then."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from cgraph.errors import FormatError, InputError
from cgraph.function import Function

Cuts = Sequence[Mapping[int, int]]


class TrimmedFunction(Function):
    """A Function whose calls return the first elements along axes of open length, as many as were counted.

    Its graph's outputs are those of the model, at their greatest length, then counts, then what must hold.

    Fields
        cuts: per output of the model, which output of the graph counts the elements along an axis
        texts: what is said where one of the last outputs does not hold
    """

    cuts: Cuts
    texts: Sequence[str]

    @classmethod
    def of(cls, function: Function, cuts: Cuts, texts: Sequence[str]) -> Self:
        """The same Function, with what is cut of its outputs."""
        trimmed = cls.__new__(cls)
        trimmed.__dict__ |= {**function.__dict__, "cuts": cuts, "texts": texts}
        return trimmed

    def _rooms(self, out: Sequence[np.ndarray] | None) -> None:
        """Refused: nobody knows how large the arrays must be."""
        if out is not None:
            raise InputError("out takes no arrays for results whose length is known only when they are there")

    def _run(self, inputs: Any, out: Sequence[np.ndarray] | None, copy: bool) -> Any:
        """A run. InputError when something that was to hold does not."""
        results = super()._run(inputs, out, copy)
        first = len(results) - len(self.texts)
        for holds, text in zip(results[first:], self.texts):
            if not holds.item():
                raise InputError(text)
        return [self._cut(x, {a: results[i].item() for a, i in cut.items()}) for x, cut in zip(results, self.cuts)]

    def _cut(self, x: Any, counts: Mapping[int, int]) -> Any:
        """The first elements along some axes."""
        for axis, count in counts.items():
            if not 0 <= count <= x.shape[axis]:
                raise InputError(f"{count} elements along axis {axis} of a result that has room for {x.shape[axis]}")
        return x[tuple(slice(counts.get(axis)) for axis in range(x.ndim))] if counts else x

    def save(self, folder: str | os.PathLike, **_: Any) -> None:
        """Refused: a saved function returns arrays of one shape."""
        raise FormatError("a function whose results have a length that is known only when run is not saved")

    def __reduce__(self) -> tuple:
        raise FormatError("a function whose results have a length that is known only when run is not pickled")
