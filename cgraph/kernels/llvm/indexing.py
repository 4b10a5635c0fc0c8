"""Helpers of kernels that read or write at indices."""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val


def set_error(k: Builder, outside: Val, error: Val) -> None:
    """Set the word at `error`, if there is one, if an index is outside."""
    with k.if_(outside & (error != 0), likely=False):
        k.pointer(error, "i8").store(1)


def combine(k: Builder, how: str, x: Val, y: Val) -> Val:
    """Return ``x how y``; min and max are NaN when either is NaN."""
    if how in ("add", "mul"):
        return k.binary(how, x, y)
    first = x < y if how == "min" else x > y
    return k.select(first | k.is_nan(x) if x.is_float else first, x, y)
