"""Multiply-adds on registers alone: the machine's peak rate, as a reference for other kernels."""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.bytes import GROUP, as_vector, dots
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import fold

CHAINS = 12  # independent sums, more than the latency of a multiply-add


@final
def multiply_add(k: Builder, dtype: str) -> None:
    """Each task: ``CHAINS * 4`` vector multiply-adds."""
    lanes = k.target.lanes_of(dtype)
    a = k.args()
    x = a.x.load(lanes=lanes)
    first, last = k.tasks()
    with fold(k, first, last, [x] * CHAINS) as s:
        sums = s.values
        for _ in range(4):
            sums = [k.fma(x, x, y) for y in sums]
        s.next = sums
    for i, y in enumerate(s.values):
        a.x.store(y, i * lanes)


@final
def add_products(k: Builder) -> None:
    """Each task: ``CHAINS * 4`` vectors of sums of four products of bytes."""
    lanes = k.target.lanes
    a = k.args()
    x = a.x.load(lanes=lanes)
    weights = as_vector(k, x, "i1", GROUP * lanes)
    first, last = k.tasks()
    with fold(k, first, last, [x] * CHAINS) as s:
        sums = s.values
        for _ in range(4):
            sums = [dots(k, [y], [x], [weights])[0] for y in sums]
        s.next = sums
    for i, y in enumerate(s.values):
        a.x.store(y, i * lanes)
