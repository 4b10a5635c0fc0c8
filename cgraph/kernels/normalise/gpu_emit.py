"""Normalisation of rows by their own mean and variance, a team of threads for each row; and across channels."""

from collections.abc import Callable

from cgraph.kernels.llvm.accumulate import Accumulator
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.normalise.emit import Response
from cgraph.kernels.team.gpu_emit import BlockTeam
from cgraph.kernels.team.gpu_signature import ELEMENTS, THREADS


@block(THREADS)
def teams(k: GpuBuilder, dtype: str, scales: str, team: int) -> None:
    """The variance is taken in a second pass about the mean. `out` may be `x`."""
    a, own = k.args(), BlockTeam(k, team)
    row = k.block() * own.teams + own.number
    size = a.segments * a.length
    start = k.smaller(row, a.rows - 1) * size
    x, out, count = a.x + start, a.out + start, k.cast(size, dtype)

    def mean_of(f: Callable[[Val], Val]) -> Val:
        return own.reduced(Accumulator(k, "sum", dtype), 0, size, lambda at: (f(x.load(at)), None))[0] / count

    mean = k.const(0.0, dtype) if scales == "root" else mean_of(lambda v: v)
    variance = mean_of(lambda v: (v - mean) * (v - mean))
    inverse = 1.0 / k.intrinsic("sqrt", variance + k.cast(a.epsilon, dtype))
    first = (row % a.groups) * a.segments
    with k.if_(row < a.rows), k.loop(own.lane, size, own.size) as at:
        y = x.load(at) - mean
        if scales == "none":
            y = y * inverse
        elif scales == "root":
            y = y * inverse * a.scale.load(at)
        elif scales == "element":
            y = y * inverse * a.scale.load(at) + a.shift.load(at)
        else:
            channel = first + k.cast(k.cast(at, "u4") // k.cast(a.length, "u4"), "i8")
            y = y * (inverse * a.scale.load(channel)) + a.shift.load(channel)
        out.store(y, at)


@block(ELEMENTS)
def channels(k: GpuBuilder, dtype: str, root: bool) -> None:
    """As `cgraph.kernels.normalise.emit.channels`; a thread: one element."""
    a = k.args()
    alpha, beta, bias = (k.cast(x, dtype) for x in (a.alpha, a.beta, a.bias))
    response = Response(k, dtype, alpha, beta, bias, root)
    with k.if_(k.task() < a.count):
        image, channel, at = k.digits(k.task(), a.channels, a.positions)
        x, out = (k.pointer(p, dtype) + at for p in (a.x, a.out))
        x, out = x.plus_bytes(image * a.x_image), out.plus_bytes(image * a.out_image + channel * a.out_channel)
        window = k.larger(channel - a.before, 0), k.smaller(channel + a.after + 1, a.channels)
        out.store(response.of(x.plus_bytes(channel * a.x_channel).load(), x, a.x_channel, window))
