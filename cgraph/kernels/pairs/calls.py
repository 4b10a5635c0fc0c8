"""Calls that round floats to bfloat16, for kernels that multiply pairs (`cgraph.kernels.pairs.emit`)."""

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.expression import Trace
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.calls import copy_calls, fill_calls, part
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import Target
from cgraph.record import replace


def pair_calls(target: Target, out: View, x: View) -> list[Call]:
    """Round `x` to bfloat16; `out` is 0 after the elements of `x` along the last axis."""
    m = Trace()
    program = m.program(m.cast(m.load(0, x.dtype), BFLOAT16.code))
    inside, rest = split_last(out, x.shape[-1])
    return [*pointwise_calls(target, program, inside, x), *fill_calls(target, rest, 0)]


def padded_copy_calls(target: Target, out: View, x: View) -> list[Call]:
    """Copy bfloat16 numbers; `out` is 0 after the elements of `x` along the last axis."""
    inside, rest = split_last(out, x.shape[-1])
    return [*copy_calls(target, inside, x), *fill_calls(target, rest, 0)]


def split_last(out: View, count: int) -> tuple[View, View]:
    """Return the first `count` elements along the last axis, and the bits of the others."""
    axis = len(out.shape) - 1
    return part(out, axis, 0, count), part(replace(out, dtype=BFLOAT16.unsigned), axis, count, out.shape[-1] - count)
