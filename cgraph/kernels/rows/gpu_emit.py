"""Rows at a position that is data, in blocks of threads."""

from collections.abc import Iterator
from contextlib import contextmanager

from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.team.gpu_signature import ELEMENTS


@block(ELEMENTS)
def set(k: GpuBuilder, itemsize: int) -> None:
    """Rows of y into x."""
    with own_item(k, itemsize) as (inside, x, y), k.if_(inside):
        x.store(y.load())


@block(ELEMENTS)
def take(k: GpuBuilder, itemsize: int) -> None:
    """Rows of x into y."""
    with own_item(k, itemsize) as (inside, x, y):
        item = k.slot(0, x.dtype)
        with k.if_(inside):
            item.value = x.load()
        y.store(item.value)


@contextmanager
def own_item(k: GpuBuilder, itemsize: int) -> Iterator[tuple[Val, Ptr, Ptr]]:
    """Yield whether this thread's item of y lies in a row of x, and its two addresses; skip threads without an item."""
    a, dtype = k.args(), f"u{itemsize}"
    with k.if_(k.task() < a.count):
        group, block_, row, item = k.digits(k.task(), a.blocks, a.m, a.items)
        place, number = a.start.load(group * a.start_step) + row, group * a.blocks + block_
        x, y = k.pointer(a.x, dtype), k.pointer(a.y, dtype)
        inside = (place >= 0) & (place < a.n)
        yield inside, x + ((number * a.n + place) * a.items + item), y + ((number * a.m + row) * a.items + item)
