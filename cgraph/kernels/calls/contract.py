"""Calls of sums of products of strided views: any contraction, slow and right; and views made for it."""

from cgraph.kernels.calls.reduce import reduce_calls
from cgraph.kernels.expression import Program, Trace
from cgraph.kernels.kernel import Call, Pointer, View, contiguous


def product_sum_calls(
    out: View, x: View, y: View, axes: tuple[int, ...], scratch: Pointer | None, nbytes: int
) -> list[Call]:
    """``out = sum of x * y over axes``, for views of one shape; they may repeat or share elements.

    Operands
        scratch: `nbytes` bytes, as `cgraph.kernels.calls.reduce.scratch_nbytes` says
    """
    room = contiguous(scratch, (nbytes,), "u1") if scratch else None
    return reduce_calls("sum", product_program(x.dtype), out, x, y, axes=axes, scratch=room)


def product_program(dtype: str) -> Program:
    m = Trace()
    return m.program(m.load(0, dtype) * m.load(1, dtype))


def split_axis(x: View, axis: int, groups: int) -> View:
    """An axis as groups and what is in one."""
    n, step = x.shape[axis] // groups, x.strides[axis]
    shape = (*x.shape[:axis], groups, n, *x.shape[axis + 1 :])
    return View(x.at, shape, (*x.strides[:axis], n * step, step, *x.strides[axis + 1 :]), x.dtype)


def reordered(x: View, order: tuple[int, ...]) -> View:
    """The view with its axes in another order."""
    return View(x.at, tuple(x.shape[i] for i in order), tuple(x.strides[i] for i in order), x.dtype)


def repeated(x: View, axis: int, *lengths: int) -> View:
    """New axes from `axis` on, along which the view repeats."""
    shape = (*x.shape[:axis], *lengths, *x.shape[axis:])
    return View(x.at, shape, (*x.strides[:axis], *(0 for _ in lengths), *x.strides[axis:]), x.dtype)
