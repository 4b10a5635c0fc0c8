"""Resizing along axes: nearest element or linear interpolation, with ONNX's coordinates; takes and weighted sums."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import OPS, Node, public
from cgraph.ir.spec import shape_of
from cgraph.kernels.calls.resize import COORDINATES, ROUNDINGS, positions, rounded_positions
from cgraph.ops.family import float_dtype, plain
from cgraph.ops.leaf import as_node
from cgraph.ops.take import take


@public
def resize(
    x: Any,
    shape: Any,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    scales: Sequence[float] | None = None,
) -> Node:
    """``[n, c, ...]`` with other lengths of the axes after the first two.

    Parameters
        shape: the new lengths
        mode: ``nearest``, or ``linear`` (bilinear for two axes)
        coordinates: where results lie among the elements: ``half_pixel``, ``pytorch_half_pixel``, ``asymmetric`` or
            ``align_corners``
        rounding: of ``nearest``: ``round_prefer_floor``, ``round_prefer_ceil``, ``floor`` or ``ceil``
        scales: results per element for each axis; by default the ratio of the lengths
    Raises
        ShapeError: an unknown mode, or lengths that do not fit
    Source
        ONNX operator Resize
    """
    x, shape = as_node(plain(x)), shape_of(shape)
    if mode not in ("nearest", "linear") or coordinates not in COORDINATES or rounding not in ROUNDINGS:
        raise ShapeError(f"resize: mode {mode!r}, coordinates {coordinates!r} and rounding {rounding!r} do not exist")
    if len(shape) != x.ndim - 2 or any(n < 1 for n in (*shape, *x.shape[2:])):
        raise ShapeError(f"resize: {x.name} {x.spec} has no {len(shape)} axes to become {list(shape)}")
    if mode == "linear":
        x = OPS["astype"](x, float_dtype(x.dtype))
    for axis, count in enumerate(shape, 2):
        scale = scales[axis - 2] if scales else count / x.shape[axis]
        if count == x.shape[axis] and scale == 1:
            continue
        at = positions(count, x.shape[axis], coordinates, scale)
        x = nearest(x, axis, at, rounding) if mode == "nearest" else linear(x, axis, at)
    return x


def nearest(x: Node, axis: int, at: np.ndarray, rounding: str) -> Node:
    """The elements nearest to positions along an axis."""
    return take(x, np.clip(rounded_positions(at, rounding), 0, x.shape[axis] - 1), axis)


def linear(x: Node, axis: int, at: np.ndarray) -> Node:
    """Means of two neighbours along an axis, by distance."""
    last = x.shape[axis] - 1
    at = np.clip(at, 0, last)
    low = np.floor(at).astype(np.int64)
    weights = (at - low).astype(x.dtype).reshape(-1, *[1] * (x.ndim - axis - 1))
    return take(x, low, axis) * (1 - weights) + take(x, np.minimum(low + 1, last), axis) * weights
