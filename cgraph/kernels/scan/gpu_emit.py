"""Cumulative sums, products, minima and maxima in blocks of threads.

``along``: a block processes a line, as many elements at a time as it has threads, and combines them by doubling in
shared memory (Hillis and Steele 1986); the prefix of earlier elements is combined last, so the order depends only on
indices. An element is read before it is written, so `out` may be `x`.
"""

from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.indexing import combine
from cgraph.kernels.scan.gpu_signature import THREADS
from cgraph.kernels.team.gpu_emit import offsets, scan_block


@block(THREADS)
def along(k: GpuBuilder, dtype: str, how: str, rank: int) -> None:
    a, lane = k.args(), k.thread()
    to, source = (at + o for at, o in zip((a.out, a.x), offsets(k, a.axes, rank, 2, k.block())))
    rooms = [k.shared(dtype, THREADS) for _ in range(2)]
    before, prefix = k.slot(k.const(0, dtype)), k.slot(k.const(0, dtype))
    with k.loop(0, a.n, THREADS) as first:
        at = first + lane
        with k.if_(at < a.n):
            prefix.value = k.pointer(source + at * a.x_n, dtype).load()
        last = scan_block(k, rooms, prefix, lambda x, y: combine(k, how, x, y))
        here = k.select(first == 0, prefix.value, combine(k, how, before.value, prefix.value))
        with k.if_(at < a.n):
            k.pointer(to + at * a.out_n, dtype).store(here)
        before.value = k.select(first == 0, last, combine(k, how, before.value, last))
        k.barrier()


@block(THREADS)
def across(k: GpuBuilder, dtype: str, how: str, rank: int) -> None:
    a, line = k.args(), k.task()
    with k.if_(line < a.lines):
        to, source = (at + o for at, o in zip((a.out, a.x), offsets(k, a.axes, rank, 2, line)))
        value = k.slot(k.pointer(source, dtype).load())
        k.pointer(to, dtype).store(value.value)
        with k.loop(1, a.n) as at:
            value.value = combine(k, how, value.value, k.pointer(source + at * a.x_n, dtype).load())
            k.pointer(to + at * a.out_n, dtype).store(value.value)
