"""TrimmedFunction: a Function that trims outputs of dynamic length to their length in each run."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from cgraph.errors import FormatError, InputError
from cgraph.function import Function
from cgraph.running.results import Results

Cuts = Sequence[Mapping[int, int]]


class TrimmedFunction(Function):
    """A Function whose calls return the first `length` elements along axes of dynamic length.

    The outputs of its graph are those of the model at their maximum length, then the lengths, then the conditions.

    Fields
        cuts: for each output of the model, the index of the graph output that holds the length, by axis
        texts: messages of the conditions, for an InputError
    """

    cuts: Cuts
    texts: Sequence[str]

    @classmethod
    def of(cls, function: Function, cuts: Cuts, texts: Sequence[str]) -> Self:
        """Return the Function with trimmed outputs."""
        trimmed = cls.__new__(cls)
        trimmed.__dict__ |= {**function.__dict__, "cuts": cuts, "texts": texts, "names": function.names[: len(cuts)]}
        return trimmed

    def _rooms(self, out: Sequence[np.ndarray] | None) -> None:
        """Refuse `out`: the lengths are unknown before the run."""
        if out is not None:
            raise InputError("out= is not supported for results of dynamic length. Call the function without out=")

    def run_each(self, *_: Any) -> None:
        """Refuse: the lengths are unknown before the run is over."""
        raise InputError("run_each is not supported for results of dynamic length. Call the function")

    def _run(self, inputs: Any, out: Sequence[np.ndarray] | None, copy: bool) -> Any:
        """Run the function. InputError if a condition does not hold."""
        results = super()._run(inputs, out, copy)
        first = len(results) - len(self.texts)
        for holds, text in zip(results[first:], self.texts):
            if not holds.item():
                raise InputError(text)
        cuts = [self._cut(x, {a: results[i].item() for a, i in cut.items()}) for x, cut in zip(results, self.cuts)]
        return Results(cuts, self.names)

    def _cut(self, x: Any, counts: Mapping[int, int]) -> Any:
        """Return the first elements along some axes."""
        for axis, count in counts.items():
            if not 0 <= count <= x.shape[axis]:
                raise InputError(
                    f"{count} elements along axis {axis} of a result whose maximum is {x.shape[axis]}. Raise maximum="
                )
        return x[tuple(slice(counts.get(axis)) for axis in range(x.ndim))] if counts else x

    def save(self, folder: str | os.PathLike, **_: Any) -> None:
        """Refuse: a saved function returns arrays of fixed shape."""
        raise FormatError(
            "a function whose results have a length that is known only at run time is not saved. Load with shapes= "
            "that fix it"
        )

    def __reduce__(self) -> tuple:
        raise FormatError(
            "a function whose results have a length that is known only at run time is not pickled. Load with shapes= "
            "that fix it"
        )
