"""Softmax, its logarithm, and the logarithm of the sum of exponentials, a team of threads for each row.

Three passes, as on the processor: the maximum, the sum of ``e**(x - max)`` (rounding errors kept), the result. An
element is read for the last time by the thread that writes it, so `out` may be `x`.
"""

from cgraph.kernels.llvm.accumulate import Accumulator
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vexp import exp
from cgraph.kernels.llvm.vlog import log
from cgraph.kernels.softmax.emit import finite_or_zero
from cgraph.kernels.team.gpu_emit import BlockTeam, offsets
from cgraph.kernels.team.gpu_signature import THREADS


@block(THREADS)
def teams(k: GpuBuilder, kind: str, dtype: str, rank: int, team: int, across: bool) -> None:
    a, own = k.args(), BlockTeam(k, team, across)
    row = k.block() * own.teams + own.number
    there = offsets(k, a.axes, rank, 2, k.smaller(row, a.rows - 1))
    start, end = a.x + there[0], a.out + there[1]

    def x(at: Val) -> Val:
        return k.pointer(start + at * a.x_step, dtype).load()

    (most,) = own.reduced(Accumulator(k, "max", dtype), 0, a.length, lambda at: (x(at), None))
    if kind == "logsumexp":
        most = finite_or_zero(k, most)
    total = own.reduced(Accumulator(k, "sum", dtype), 0, a.length, lambda at: (exp(k, x(at) - most), None))[0]
    with k.if_(row < a.rows):
        if kind == "logsumexp":
            with k.if_(own.lane == 0):
                k.pointer(end, dtype).store(most + log(k, total))
            return
        last = 1.0 / total if kind == "softmax" else log(k, total)
        with k.loop(own.lane, a.length, own.size) as at:
            y = x(at) - most
            k.pointer(end + at * a.out_step, dtype).store(exp(k, y) * last if kind == "softmax" else y - last)
