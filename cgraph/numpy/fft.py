"""``np.fft``: what needs no complex numbers, which there are none of."""

from typing import Any

import numpy as np

from cgraph.ir.graph import Node
from cgraph.numpy.table import of
from cgraph.ops.join import roll
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import axes_of

__all__ = ["fftshift", "ifftshift"]


@of(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Node:
    """The frequency 0 moved to the middle along axes, all by default."""
    return shifted(x, axes, 1)


@of(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Node:
    """The inverse of `fftshift`."""
    return shifted(x, axes, -1)


def shifted(x: Any, axes: Any, way: int) -> Node:
    x = as_node(x)
    found = axes_of(axes, x.ndim)
    return roll(x, [way * (x.shape[a] // 2) for a in found], found)
