"""Copies of transposed operands into results, for kernels that compute in place and read other orders slowly."""

from collections.abc import Sequence

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import Target
from cgraph.record import replace

LEAST_NBYTES = 1 << 16  # a smaller operand is read in any order in less time than another call takes


def in_order(
    target: Target, out: View, x: View, others: Sequence[View] = (), least: int = LEAST_NBYTES
) -> tuple[list[Call], View]:
    """Return calls that copy a transposed operand to `out`, and `out` in its place; no calls and `x` otherwise.

    The values are the same. Reading a transposed operand in the order of `out` takes two to ten times as long as a
    copy, since neighbours are on different cache lines.

    Parameters
        others: the other operands; nothing is copied over one
        least: bytes from which on an operand is copied
    """
    has_lines = target.lanes > 1 and not target.has_blocks
    is_copied = has_lines and x.itemsize == out.itemsize and out.size * out.itemsize >= least
    if not is_copied or not is_transposed(out, x) or any(begins_in(out, y) for y in others):
        return [], x
    return copy_calls(target, out, x), replace(out, dtype=x.dtype)


def operands_in_order(target: Target, out: View, xs: tuple[View, ...]) -> tuple[list[Call], tuple[View, ...]]:
    """Return calls that copy the first large transposed operand to `out`, and the operands to compute from."""
    for i, x in enumerate(xs):
        calls, ordered = in_order(target, out, x, (*xs[:i], *xs[i + 1 :]))
        if calls:
            return calls, (*xs[:i], ordered, *xs[i + 1 :])
    return [], xs


def is_transposed(out: View, x: View) -> bool:
    """Return True if elements that are neighbours in `out` are not in `x`, of the same shape, where others are."""
    axes = [axis for axis, n in enumerate(out.shape) if n > 1]
    if x.shape != out.shape or not axes or not all(x.strides[axis] for axis in axes):
        return False
    last = min(axes, key=lambda axis: abs(out.strides[axis]))
    return abs(x.strides[last]) > min(abs(x.strides[axis]) for axis in axes)


def begins_in(out: View, x: View) -> bool:
    """Return True if a view begins among the bytes of `out`."""
    distance = x.at.offset - out.at.offset
    return x.at.base is out.at.base and 0 <= distance < max(out.size * out.itemsize, 1)
