"""Calls that round floats to bfloat16, for kernels that multiply pairs (`cgraph.kernels.pairs.emit`)."""

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.expression import Trace
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.calls import fill_calls, part
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import Target
from cgraph.record import replace


def pair_calls(target: Target, out: View, x: View) -> list[Call]:
    """Round `x` to bfloat16; `out` is 0 after the elements of `x` along the last axis."""
    count, axis, m = x.shape[-1], len(x.shape) - 1, Trace()
    program = m.program(m.cast(m.load(0, x.dtype), BFLOAT16.code))
    calls = pointwise_calls(target, program, part(out, axis, 0, count), x)
    rest = part(replace(out, dtype=BFLOAT16.unsigned), axis, count, out.shape[-1] - count)
    return [*calls, *fill_calls(target, rest, 0)]
