"""Rows at a position that is data, written or read; rows outside are skipped, or read as zeros."""

from collections.abc import Iterator
from contextlib import contextmanager

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.flow import each_task
from cgraph.kernels.llvm.values import Ptr, Val


def set(k: Builder) -> None:
    """Write rows of y into x. Task: one row."""
    with each_row(k) as (inside, x, y, nbytes), k.if_(inside):
        k.copy_bytes(x, y, nbytes)


def take(k: Builder) -> None:
    """Read rows of x into y. Task: one row."""
    with each_row(k) as (inside, x, y, nbytes), k.if_else(inside) as (there, outside):
        with there:
            k.copy_bytes(y, x, nbytes)
        with outside, k.loop(0, nbytes) as i:
            y.store(k.const(0, "u1"), i)


@contextmanager
def each_row(k: Builder) -> Iterator[tuple[Val, Ptr, Ptr, Val]]:
    """Yield whether a row of y lies inside x, its addresses in both, and its bytes."""
    a = k.args()
    with each_task(k, a.blocks, a.m) as (group, block, row):
        place = a.start.load(group * a.start_step) + row
        number = group * a.blocks + block
        inside = (place >= 0) & (place < a.n)
        yield inside, a.x + (number * a.n + place) * a.nbytes, a.y + (number * a.m + row) * a.nbytes, a.nbytes
