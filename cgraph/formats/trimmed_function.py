"""TrimmedFunction: a Function that trims outputs of dynamic length to their length in each run."""

from typing import Self

from cgraph.function import Function
from cgraph.running.trimming_runner import Trimming, Trims


class TrimmedFunction(Trimming, Function):
    """A Function whose calls return the first `length` elements along axes of dynamic length."""

    @classmethod
    def of(cls, function: Function, trims: Trims) -> Self:
        """Return the Function with trimmed outputs."""
        trimmed = cls.__new__(cls)
        trimmed.__dict__ |= {**function.__dict__, "trims": trims, "names": function.names[: len(trims.cases)]}
        return trimmed
