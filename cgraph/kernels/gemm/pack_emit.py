"""Panels of matrices for the register tile: ``[panel, k, width]``.

`width` rows of `a`, or columns of `b`, are "lines" here: they are `line` elements apart, and neighbours along k are
`step` elements apart. Lines beyond the last repeat it; their sums are never stored.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import divmod_of, transpose
from cgraph.kernels.llvm.values import Ptr


@final
def along_k(k: Builder, dtype: str, width: int) -> None:
    """Emit lines that are contiguous along k: squares are transposed in registers. Task: one panel."""
    lanes = k.target.lanes_of(dtype)
    with each_panel(k, dtype, width) as (a, first, x, out):
        last = a.lines - first - 1
        starts = [x + k.smaller(last, i) * a.line for i in range(-(-width // lanes) * lanes)]
        # a store of a whole vector reaches into the next steps, which are written later; the last are left to the loop
        beyond = -(-(len(starts) - width) // width)
        whole = k.larger(a.k - beyond, 0)
        whole = whole - whole % lanes
        with k.loop(0, whole, lanes) as i:
            squares = [
                transpose(k, [(start + i).load(lanes=lanes) for start in starts[g : g + lanes]])
                for g in range(0, width, lanes)
            ]
            for step in range(lanes):
                for g, square in enumerate(squares):
                    (out + i * width).store(square[step], step * width + g * lanes)
        with k.loop(whole, a.k) as i:
            for j in range(width):
                (out + i * width).store((starts[j] + i).load(), j)


@final
def along_lines(k: Builder, dtype: str, width: int) -> None:
    """Emit lines that are contiguous: rows of vectors, the last panel under a mask. Task: one panel."""
    lanes = k.target.lanes_of(dtype)
    with each_panel(k, dtype, width) as (a, first, x, out), k.if_else(first + width <= a.lines) as (whole, cut):
        with whole, k.loop(0, a.k) as i:
            copy_lines(k, x + i * a.step, out + i * width, width, lanes)
        with cut, k.loop(0, a.k) as i, k.loop(0, width) as j:
            inside = k.smaller(a.lines - first - 1, j)
            out.store((x + (i * a.step + inside)).load(), i * width + j)


def copy_lines(k: Builder, x: Ptr, out: Ptr, width: int, lanes: int) -> None:
    """Copy `width` neighbours by vectors of a power of two, of which the last may overlap the one before."""
    size = min(lanes, 1 << (width.bit_length() - 1))
    for j in dict.fromkeys((*range(0, width - size + 1, size), width - size)):
        out.store(x.load(j, size), j)


@final
def any_stride(k: Builder, dtype: str, width: int) -> None:
    """Emit lines of any strides, element by element. Task: one panel."""
    with each_panel(k, dtype, width) as (a, first, x, out), k.loop(0, width) as j:
        start = x + k.smaller(a.lines - first - 1, j) * a.line
        with k.loop(0, a.k) as i:
            out.store((start + i * a.step).load(), i * width + j)


@contextmanager
def each_panel(k: Builder, dtype: str, width: int) -> Iterator[tuple]:
    """Yield for each task the arguments, the panel's first line, its first element and its address."""
    a = k.args()
    with k.task_loop() as task:
        batch, panel = divmod_of(task, a.panels)
        start = panel * width
        x = a.x + (batch * a.x_batch + start * a.line)
        yield a, start, x, a.out + (batch * a.o_batch + panel * a.k * width)
