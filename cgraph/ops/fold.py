"""Sums of windows: the adjoint of taking windows along an axis."""

from typing import Any

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ops.join import stack
from cgraph.ops.leaf import Const
from cgraph.ops.pad import pad
from cgraph.ops.shape import broadcast_to, reshape


def fold_axis(x: Node, left: int, lengths: tuple[int, int], stride: int, dilation: int) -> Node:
    """Add the elements of windows along one axis: ``[n, c, elements, …, windows, …]`` becomes ``[n, c, …, length, …]``.

    Element a of window i is added at ``i * stride + a * dilation - before``. Those whose places have one remainder by
    the stride are sums of shifted slices.

    Parameters
        left: number of axes, from this one on, whose elements are not added yet
        lengths: of the axis, and of the padding before it
    """
    length, before = lengths
    axis, steps = x.ndim - left, [divmod(a * dilation, stride) for a in range(x.shape[2])]
    first, last = before // stride, -(-(before + length) // stride)  # of the windows that begin inside
    more = max(steps[-1][0] - first, 0)
    widths = [(0, 0)] * x.ndim
    widths[axis] = (more, max(last - x.shape[axis], 0))
    rows, middle = pad(x, widths), (slice(None),) * (axis - 3)
    phases: list[Any] = [None] * stride
    for a, (step, phase) in enumerate(steps):
        part = rows[:, :, a, *middle, first + more - step : last + more - step]
        phases[phase] = part if phases[phase] is None else phases[phase] + part
    shape = next(part.shape for part in phases if part is not None)
    zero = broadcast_to(Const(np.zeros((), x.dtype)), shape)
    whole = stack([zero if part is None else part for part in phases], axis)
    whole = reshape(whole, (*shape[: axis - 1], (last - first) * stride, *shape[axis:]))
    return whole[:, :, *middle, before - first * stride : before - first * stride + length]
