"""Views of windows and of groups of channels, and a program over them."""

from math import prod

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.kernels.expression import Program, Trace
from cgraph.kernels.kernel import Pointer, View, contiguous

PLACE = np.dtype("int32")


def select_matches(dtype: str) -> Program:
    """Return a program: operand 0 where the indices in operands 1 and 2 are equal, else 0."""
    m = Trace()
    code = code_of(PLACE)
    return m.program(m.where(m.eq(m.load(1, code), m.load(2, code)), m.load(0, dtype), m.const(0, dtype)))


def window_places(window: tuple[int, ...]) -> View:
    """Return the index of each element of a window, in C order."""
    numbers = np.arange(prod(window), dtype=PLACE)
    return contiguous(Pointer(numbers), window, code_of(PLACE))


def split_axis(x: View, axis: int, groups: int) -> View:
    """Return the view with an axis split into groups and their elements."""
    n, step = x.shape[axis] // groups, x.strides[axis]
    shape = (*x.shape[:axis], groups, n, *x.shape[axis + 1 :])
    return View(x.at, shape, (*x.strides[:axis], n * step, step, *x.strides[axis + 1 :]), x.dtype)


def reorder_axes(x: View, order: tuple[int, ...]) -> View:
    """Return the view with its axes in another order."""
    return View(x.at, tuple(x.shape[i] for i in order), tuple(x.strides[i] for i in order), x.dtype)


def repeat_axes(x: View, axis: int, *lengths: int) -> View:
    """Return the view with new axes from `axis` on, along which it repeats."""
    shape = (*x.shape[:axis], *lengths, *x.shape[axis:])
    return View(x.at, shape, (*x.strides[:axis], *(0 for _ in lengths), *x.strides[axis:]), x.dtype)
