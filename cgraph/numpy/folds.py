"""Reductions and scans of any associative ufunc, in a logarithmic number of steps.

n elements take log2(n) nodes, each of which combines whole halves. Rounding differs from NumPy's, which combines one
element at a time.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node
from cgraph.ops.join import concat
from cgraph.ops.leaf import as_node
from cgraph.ops.reduce import Axis, keepdims_shape
from cgraph.ops.shape import axes_of, broadcast_to, reshape


def by_halves(join: Callable, x: Node, axis: Axis, keepdims: bool, neutral: Any) -> Node:
    """Reduce along the axes: combine the first half with the second, repeatedly, until one element is left."""
    axes, x = axes_of(axis, x.ndim), x.astype(join(x, x).dtype)
    shape = keepdims_shape(x.shape, axes) if keepdims else tuple(n for i, n in enumerate(x.shape) if i not in axes)
    for a in axes:
        if x.shape[a] == 0:
            if neutral is None:
                raise ShapeError(f"{x.name} {x.spec} has no element along axis {a}; reduce another axis")
            return broadcast_to(as_node(np.asarray(neutral).astype(x.dtype)), shape)
        lead = (slice(None),) * a
        while x.shape[a] > 1:
            half = x.shape[a] // 2
            joined = join(x[(*lead, slice(None, half))], x[(*lead, slice(half, 2 * half))])
            x = concat([joined, x[(*lead, slice(2 * half, None))]], a) if x.shape[a] % 2 else joined
    return reshape(x, shape)


def by_steps(join: Callable, x: Node, axis: int) -> Node:
    """Combine each element with all before it: with those 1, 2, 4, ... positions before."""
    lead, step, x = (slice(None),) * axis, 1, x.astype(join(x, x).dtype)
    while step < x.shape[axis]:
        joined = join(x[(*lead, slice(None, -step))], x[(*lead, slice(step, None))])
        x = concat([x[(*lead, slice(None, step))], joined], axis)
        step *= 2
    return x
