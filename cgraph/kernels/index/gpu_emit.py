"""Reading and writing at computed indices, in blocks of threads.

Updates of one element are done in their order: by one thread that goes through all indices, or, if these are sorted, by
the thread at the first of equal ones. So no thread waits, and sums have the CPU's bits.
"""

from cgraph.kernels.index.emit import coordinates, resolve_index
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.indexing import combine, set_error
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.team.gpu_emit import compact, own_element
from cgraph.kernels.team.gpu_signature import ELEMENTS, THREADS


@block(ELEMENTS)
def gather(k: GpuBuilder, itemsize: int, index: str, rank: int) -> None:
    """Copy elements of `x` to `out`: each lies ``index * stride`` bytes from the start of `x`."""
    a, dtype = k.args(), f"u{itemsize}"
    with own_element(k, a, rank, "out", "x", "indices") as (_, (out, x, indices)):
        at, outside = resolve_index(k, k.pointer(indices, index).load(), a.extent)
        set_error(k, outside, a.error)
        at = k.smaller(k.larger(at, 0), a.extent - 1)
        k.pointer(out, dtype).store(k.pointer(x + at * a.stride, dtype).load())


@block(ELEMENTS)
def scatter(k: GpuBuilder, dtype: str, index: str, how: str, rank: int) -> None:
    """Compute ``out[index] how= updates``, one index after the other."""
    a = k.args()
    with own_element(k, a, rank, "out", "updates", "indices") as (_, (out, updates, indices)), k.loop(0, a.n) as j:
        at, outside = resolve_index(k, k.pointer(indices + j * a.indices_n, index).load(), a.extent)
        set_error(k, outside, a.error)
        with k.if_(~outside):
            place, update = k.pointer(out + at * a.stride, dtype), k.pointer(updates + j * a.updates_n, dtype).load()
            place.store(update if how == "set" else combine(k, how, place.load(), update))


@block(ELEMENTS)
def places(k: GpuBuilder, index: str, rank: int) -> None:
    """Emit indices counted from the start; those outside come last when they are sorted."""
    a = k.args()
    with own_element(k, a, rank, "out", "indices") as (_, (out, indices)):
        at, outside = resolve_index(k, k.pointer(indices, index).load(), a.extent)
        set_error(k, outside, a.error)
        k.pointer(out, "i4").store(k.cast(k.select(outside, a.extent, at), "i4"))


@block(ELEMENTS)
def segments(k: GpuBuilder, dtype: str, how: str, rank: int) -> None:
    """Emit ``out[index] how= updates``: the thread at the first of equal indices does all updates of that element."""
    a = k.args()
    with own_element(k, a, rank, "out", "updates", "lines") as (thread, (out, updates, here)):
        _, j, _ = k.digits(thread, a.n, a.columns)
        line, order = k.pointer(here, "i4"), k.pointer(here - a.lines + a.order, "i4")
        at = line.load()
        is_first = (j == 0) | (line.load(k.select(j > 0, k.const(-1, "i8"), 0)) != at)
        with k.if_(is_first & (k.cast(at, "i8") < a.extent)):
            place = k.pointer(out + k.cast(at, "i8") * a.stride, dtype)
            value, next_ = k.slot(place.load()), k.slot(0, "i8")
            with k.loop_while() as w:
                update = k.pointer(updates + k.cast(order.load(next_.value), "i8") * a.updates_n, dtype).load()
                value.value = update if how == "set" else combine(k, how, value.value, update)
                next_.value = next_.value + 1
                w.until(j + next_.value >= a.n)
                w.until(line.load(next_.value) != at)
            place.store(value.value)


@block(ELEMENTS)
def triangle(k: GpuBuilder, itemsize: int, upper: bool, rank: int) -> None:
    """Set elements below the diagonal `diagonal`, or above it, to zero."""
    a, dtype = k.args(), f"u{itemsize}"
    with own_element(k, a, rank, "out", "x") as (at, (out, x)):
        _, row, column = k.digits(at, a.height, a.width)
        beyond = column - row - a.diagonal
        is_inside = beyond >= 0 if upper else beyond <= 0
        k.pointer(out, dtype).store(k.select(is_inside, k.pointer(x, dtype).load(), k.const(0, dtype)))


@block(THREADS)
def nonzero(k: GpuBuilder, dtype: str) -> None:
    """Emit the task of `cgraph.kernels.index.emit.nonzero`."""
    a = k.args()

    def put(i: Val, number: Val) -> None:
        with k.if_(number < a.most):
            coordinates(k, a, i, number)

    count = compact(k, a.size, lambda i: a.x.load(i) != 0, put)
    with k.if_(k.thread() == 0):
        a.count.store(count)
