"""Pointwise kernels on a GPU: neighbouring threads compute neighbouring elements.

``flat``: 16 bytes of the widest array for each thread; unaligned arrays go element by element. ``walk``: any strides.
The same thread reads an element and then writes it, so the result may lie in an operand's bytes.
"""

from collections.abc import Callable
from functools import partial

from cgraph.kernels.expression import Program
from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.llvm.values import Ptr, Val, nbytes_of
from cgraph.kernels.llvm.vmath import evaluate
from cgraph.kernels.pointwise.emit import operand_dtypes
from cgraph.kernels.pointwise.gpu_signature import THREADS
from cgraph.kernels.team.gpu_emit import offsets

Read = Callable[[int, int], Val]  # of an element of the thread and an operand's number


@block(THREADS)
def flat(k: GpuBuilder, program: Program, access: str, wide: int) -> None:
    """Compute `wide` elements per thread; the remainder at the end goes one by one."""
    a = k.args()
    dtypes = [*operand_dtypes(program, len(access) - 1), program[-1][1]]
    addresses = [(a.arrays + i).load() for i in range(len(access))]
    *xs, out = (k.pointer(at, d) for at, d in zip(addresses, dtypes))
    first, fits = k.task() * wide, k.const(1, "b1")
    for at, d, how in zip(addresses, dtypes, access):
        fits = fits & (at % (wide * nbytes_of(d)) == 0) if how == "v" else fits
    with k.if_else(fits & (first + wide <= a.count)) as (whole, rest):
        with whole:
            read = reader(k, xs, access, first, wide)
            store_side_by_side(k, out, first, [value(k, program, partial(read, j)) for j in range(wide)])
        with rest, k.loop(first, k.smaller(first + wide, a.count)) as at:
            out.store(value(k, program, partial(reader(k, xs, access, at, 1), 0)), at)


@block(THREADS)
def walk(k: GpuBuilder, program: Program, results: tuple[int, ...], dtypes: tuple[str, ...], rank: int) -> None:
    a, at, count = k.args(), k.task(), len(dtypes)
    with k.if_(at < a.count):
        there = offsets(k, a.axes, rank, count, at)
        places = [k.pointer((a.arrays + i).load() + there[i], d) for i, d in enumerate(dtypes)]
        values = evaluate(k, program, lambda i: places[i].load(), 0)
        for out, i in zip(places[count - len(results) :], results):
            out.store(values[i])


def value(k: GpuBuilder, program: Program, load: Callable[[int], Val]) -> Val:
    """The program's result for one element."""
    return evaluate(k, program, load, 0)[-1]


def reader(k: GpuBuilder, xs: list[Ptr], access: str, first: Val, wide: int) -> Read:
    """Return a function that reads all elements of a thread at once."""
    elements = []
    for x, how in zip(xs, access):
        if how == "s" or wide == 1:
            elements.append([x.load(0 if how == "s" else first)] * wide)
        else:
            vector = x.load(first, wide, align=wide * nbytes_of(x.dtype))
            elements.append([k.lane(vector, j) for j in range(wide)])
    return lambda j, i: elements[i][j]


def store_side_by_side(k: GpuBuilder, out: Ptr, first: Val, values: list[Val]) -> None:
    """Store a thread's elements in one access."""
    if len(values) == 1:
        out.store(values[0], first)
        return
    dtype = "u1" if out.dtype == "b1" else out.dtype
    vector = k.vector([k.cast(x, dtype) for x in values])
    out.as_dtype(dtype).store(vector, first, align=len(values) * nbytes_of(dtype))
