"""Normalisation of rows by their own mean and variance, a team of threads for each row."""

from collections.abc import Callable

from cgraph.kernels.llvm.accumulate import Reduction
from cgraph.kernels.llvm.gpu.team import Team
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.signatures.gpu.team import THREADS


@block(THREADS)
def teams(k: GpuBuilder, dtype: str, scales: str, team: int) -> None:
    """The variance is taken in a second pass about the mean. `out` may be `x`."""
    a, own = k.args(), Team(k, team)
    row = k.block() * own.teams + own.number
    size = a.segments * a.length
    start = k.smaller(row, a.rows - 1) * size
    x, out, count = a.x + start, a.out + start, k.cast(size, dtype)

    def mean_of(f: Callable[[Val], Val]) -> Val:
        return own.reduced(Reduction(k, "sum", dtype), 0, size, lambda at: (f(x.load(at)), None))[0] / count

    mean = mean_of(lambda v: v)
    variance = mean_of(lambda v: (v - mean) * (v - mean))
    inverse = 1.0 / k.intrinsic("sqrt", variance + k.cast(a.epsilon, dtype))
    first = (row % a.groups) * a.segments
    with k.if_(row < a.rows), k.loop(own.lane, size, own.size) as at:
        y = x.load(at) - mean
        if scales == "none":
            y = y * inverse
        elif scales == "element":
            y = y * inverse * a.scale.load(at) + a.shift.load(at)
        else:
            channel = first + k.cast(k.cast(at, "u4") // k.cast(a.length, "u4"), "i8")
            y = y * (inverse * a.scale.load(channel)) + a.shift.load(channel)
        out.store(y, at)
