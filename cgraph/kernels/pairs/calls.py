"""Calls that round floats to bfloat16, for kernels that multiply pairs (`cgraph.kernels.pairs.emit`)."""

from cgraph.kernels.expression import Trace
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.calls import fill_calls, part
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import Target
from cgraph.record import replace

HALF = "V2"


def pair_calls(target: Target, out: View, x: View) -> list[Call]:
    """``out = x`` rounded to bfloat16, and 0 after the elements of `x` along the last axis."""
    count, axis, m = x.shape[-1], len(x.shape) - 1, Trace()
    program = m.program(m.cast(m.load(0, x.dtype), HALF))
    calls = pointwise_calls(target, program, part(out, axis, 0, count), x)
    rest = part(replace(out, dtype="u2"), axis, count, out.shape[-1] - count)
    return [*calls, *fill_calls(target, rest, 0)]
