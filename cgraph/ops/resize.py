"""Resizing along axes by nearest element or linear interpolation, with ONNX's coordinates.

Float images have an op of their own; all other operands use takes and weighted sums.
"""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.cut import RowTable, index_array
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec, shape_of
from cgraph.ir.work import Work
from cgraph.kernels.resize.calls import (
    COORDINATES,
    ROUNDINGS,
    Strip,
    linear_calls,
    nearest,
    nearest_calls,
    neighbours,
    positions,
    rounded_positions,
    weighted_calls,
)
from cgraph.kernels.target import Target
from cgraph.kernels.views.image_views import Images
from cgraph.ops.average_pool import avg_pool2d
from cgraph.ops.family import float_dtype
from cgraph.ops.leaf import Const, ConstOp, as_node
from cgraph.ops.linear import matmul
from cgraph.ops.shape import Transpose, expand_dims, reshape, swapaxes, transpose
from cgraph.ops.take import check_inside, take


class Resize(Op):
    """Float images ``[n, c, h, w]`` with other numbers of rows and columns.

    Each pixel is the nearest one, or a mean of four neighbours: ``out = rows @ x @ columns.T`` with constant matrices
    `rows` ``[p, h]`` and `columns` ``[q, w]``.

    Fields
        shape, mode, coordinates, rounding, scales: as in `resize`
    Source
        ONNX operator Resize
    """

    shape: tuple[int, int]
    mode: str
    coordinates: str
    rounding: str
    scales: tuple[float, float]

    def infer(self, x: Spec) -> Spec:
        if x.dtype.kind != "f" or x.ndim != 4:
            raise DTypeError(f"Resize needs float images [n, c, h, w], not {x}; use cg.resize for other operands")
        return Spec((*x.shape[:2], *self.shape), x.dtype)

    def matrix(self, axis: int, size: int) -> np.ndarray:
        """Return the weight of each of `size` elements in each result along axis 0 or 1: ``[count, size]``."""
        count, scale = self.shape[axis], self.scales[axis]
        weights = np.zeros((count, size))
        every = np.arange(count)
        if self.mode == "nearest":
            weights[every, nearest(size, count, scale, self.coordinates, self.rounding)] = 1
            return weights
        pair, weight = neighbours(size, count, scale, self.coordinates)
        np.add.at(weights, (every, pair[:, 0]), 1 - weight)
        np.add.at(weights, (every, pair[:, 1]), weight)
        return weights

    def rows_read(self, size: int) -> RowTable:
        """Return, for each row of the result, the rows that it reads of images of `size` rows."""
        count, scale = self.shape[0], self.scales[0]
        if self.mode == "nearest":
            low = high = nearest(size, count, scale, self.coordinates, self.rounding)
        else:
            low, high = neighbours(size, count, scale, self.coordinates)[0].T
        return index_array(low), index_array(high + 1)

    def meaning(self, x):
        y = x.astype(np.float64)
        for axis, (size, count, scale) in enumerate(zip(x.shape[2:], self.shape, self.scales), 2):
            if self.mode == "nearest":
                y = y.take(nearest(size, count, scale, self.coordinates, self.rounding), axis)
                continue
            pair, weight = neighbours(size, count, scale, self.coordinates)
            weight = weight.reshape(-1, *[1] * (x.ndim - axis - 1))
            y = y.take(pair[:, 0], axis) * (1 - weight) + y.take(pair[:, 1], axis) * weight
        return y.astype(x.dtype)

    def repeats(self, size: tuple[int, ...]) -> bool:
        """Return True if every pixel of images of this size becomes a rectangle of equal pixels."""
        exact = all(m % n == 0 and scale == m // n for m, n, scale in zip(self.shape, size, self.scales))
        return exact and (self.mode, self.coordinates, self.rounding) == ("nearest", "asymmetric", "floor")

    def calls(self, target: Target, out: Images, x: Images, strip: Strip | None = None) -> list:
        """Return the calls, for channel-blocked or plain images, whole or a strip of them."""
        if self.mode == "nearest":
            return list(nearest_calls(target, out, x, self.coordinates, self.rounding, self.scales, strip).calls)
        return list(linear_calls(target, out, x, self.coordinates, self.scales, strip).calls)

    def work(self, target: Target, x: Spec) -> Work:
        return Work(partial(self.calls, target), strided=True)

    def grad(self, node, g):
        x = node.operands[0]
        if self.repeats(x.shape[2:]):
            window = self.shape[0] // x.shape[2], self.shape[1] // x.shape[3]
            return (avg_pool2d(g, window) * float(prod(window)),)
        rows, columns = (Const(self.matrix(i, n).astype(g.dtype)) for i, n in enumerate(x.shape[2:]))
        return (matmul(matmul(swapaxes(rows, 0, 1), g), columns),)


LEAST_WIDTH = 16  # of rows that are worth a copy of one channel; below it those of all channels are turned together


class WeightedRows(Op):
    """Rows that are weighted sums of neighbours: ``out[:, i] = sum over t of weights[i, t] * x[:, first[i] + t]``.

    Operands
        x: float32 or float64 ``[planes, n, width]``
        first, weights: constants, int64 ``[m]`` and of the dtype of `x` ``[m, taps]``; all rows that they name exist
    """

    def infer(self, x: Spec, first: Spec, weights: Spec) -> Spec:
        if x.dtype not in (np.float32, np.float64) or first.dtype != np.int64 or weights.dtype != x.dtype:
            raise DTypeError(f"x {x}, first {first}, weights {weights}; use float32 or float64, and int64 for first")
        if x.ndim != 3 or first.ndim != 1 or weights.ndim != 2 or first.shape[0] != weights.shape[0]:
            raise ShapeError(f"x {x}, first {first}, weights {weights}; use [planes, n, width], [m] and [m, taps]")
        return Spec((x.shape[0], first.shape[0], x.shape[2]), x.dtype)

    def meaning(self, x, first, weights):
        check_inside(first + weights.shape[1] - 1, x.shape[1])
        return sum(weights[:, t, None] * x[:, first + t] for t in range(weights.shape[1]))

    def row_rule(self, x: Spec, first: Spec, weights: Spec) -> RowRule:
        return RowRule((0,), lambda planes: self)

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(weighted_calls)

    def grad(self, node, g):
        return matmul(swapaxes(Const(matrix_of(node)), 0, 1), g), None, None


def matrix_of(node: Node) -> np.ndarray:
    """Return the weight of each row in each result of a `WeightedRows`: ``[m, n]``."""
    x, first, weights = node.operands
    assert isinstance(first.op, ConstOp) and isinstance(weights.op, ConstOp)
    places = first.op.array[:, None] + np.arange(weights.shape[1])
    matrix = np.zeros((len(places), x.shape[1]), x.dtype)
    np.add.at(matrix, (np.arange(len(places))[:, None], places), weights.op.array)
    return matrix


def weighted_rows(x: Node, axis: int, index: np.ndarray, weights: np.ndarray) -> Node:
    """Return weighted sums of elements along an axis.

    Rows of the last axis are turned to columns and back, so that kernels add whole rows; those of a transposed value
    whose rows are long before the transpose are added there.

    Parameters
        index, weights: the places and the weights of the elements of each result, ``[m, taps]``; places may repeat
    """
    if isinstance(x.op, Transpose):
        (inner,), place = x.operands, x.op.axes[axis]
        if place < x.ndim - 1 and prod(inner.shape[place + 1 :]) >= LEAST_WIDTH:
            return transpose(weighted_rows(inner, place, index, weights), x.op.axes)
    m, n = len(index), x.shape[axis]
    first, merged = merge_places(index, weights, n)
    tables = Const(first), Const(merged.astype(x.dtype))
    shape = *x.shape[:axis], m, *x.shape[axis + 1 :]
    if axis < x.ndim - 1:
        planes = reshape(x, (prod(x.shape[:axis]), n, prod(x.shape[axis + 1 :])))
        return reshape(apply(WeightedRows(), planes, *tables), shape)
    width = prod(x.shape[1:-1]) if x.ndim < 3 or x.shape[-2] < LEAST_WIDTH else x.shape[-2]
    columns = swapaxes(reshape(x, (-1, width, n)), 1, 2)
    return reshape(swapaxes(apply(WeightedRows(), columns, *tables), 1, 2), shape)


def merge_places(index: np.ndarray, weights: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first place of each result and the weights of equally many places from it on, each place once."""
    low = np.where(weights != 0, index, n - 1).min(1)
    taps = int((np.where(weights != 0, index, low[:, None]) - low[:, None]).max()) + 1
    first = np.minimum(low, n - taps)
    merged = np.zeros((len(index), taps))
    places = np.clip(index - first[:, None], 0, taps - 1)  # those outside have no weight
    np.add.at(merged, (np.arange(len(index))[:, None], places), weights)
    return first.astype(np.int64), merged


@public
def resize(
    x: Any,
    shape: Any,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    scales: Sequence[float] | None = None,
) -> Node:
    """Resize ``[n, c, ...]`` along the axes after the first two.

    Parameters
        shape: the new lengths
        mode: ``nearest``, or ``linear`` (bilinear for two axes)
        coordinates: placement of results among the elements: ``half_pixel``, ``pytorch_half_pixel``, ``asymmetric`` or
            ``align_corners``
        rounding: for ``nearest``: ``round_prefer_floor``, ``round_prefer_ceil``, ``floor`` or ``ceil``
        scales: results per element for each axis; by default the ratio of the lengths
    Raises
        ShapeError: an unknown mode, or lengths that do not fit
    Source
        ONNX operator Resize
    """
    x, shape = as_node(x), shape_of(shape)
    check_resize(x, shape, mode, coordinates, rounding)
    if mode == "linear":
        x = x.astype(float_dtype(x.dtype))
    ratios = tuple(scales or (count / n for count, n in zip(shape, x.shape[2:])))
    if shape == x.shape[2:] and all(ratio == 1 for ratio in ratios):
        return x
    if x.dtype.kind == "f":
        return resize_floats(x, shape, (mode, coordinates, rounding), ratios)
    for axis, count in enumerate(shape, 2):
        scale = ratios[axis - 2]
        if count == x.shape[axis] and scale == 1:
            continue
        at = positions(count, x.shape[axis], coordinates, scale)
        x = take_nearest(x, axis, at, rounding) if mode == "nearest" else interpolate(x, axis, at)
    return x


def resize_floats(x: Node, shape: tuple[int, ...], how: tuple[str, str, str], ratios: tuple[float, ...]) -> Node:
    """Resize the last two axes as rows and columns of images, then each axis before them as rows.

    Parameters
        how: mode, coordinates and rounding
    """
    if x.ndim == 3:
        return reshape(resize_floats(expand_dims(x, 2), (1, *shape), how, (1.0, *ratios)), (*x.shape[:2], *shape))
    lead = x.shape[:-2]
    y = reshape(resize_images(x, len(lead), shape[-2:], how, ratios[-2:]), (*lead, *shape[-2:]))
    for i in range(len(shape) - 3, -1, -1):
        lead, rest = y.shape[: i + 2], y.shape[i + 3 :]
        rows = resize_images(y, len(lead), (shape[i], prod(rest)), how, (ratios[i], 1.0))
        y = reshape(rows, (*lead, shape[i], *rest))
    return y


def resize_images(x: Node, axis: int, shape: tuple, how: tuple[str, str, str], ratios: tuple) -> Node:
    """Resize images whose rows are one axis and whose columns are all axes after it."""
    images = reshape(x, (x.shape[0], prod(x.shape[1:axis]), x.shape[axis], prod(x.shape[axis + 1 :])))
    if images.shape[2:] == shape and all(ratio == 1 for ratio in ratios):
        return images
    return apply(Resize(shape, *how, ratios), images)


def check_resize(x: Node, shape: tuple[int, ...], mode: str, coordinates: str, rounding: str) -> None:
    """Raise ShapeError for an unknown mode, and for lengths that do not fit."""
    if mode not in ("nearest", "linear") or coordinates not in COORDINATES or rounding not in ROUNDINGS:
        raise ShapeError(
            f"mode={mode!r}, coordinates={coordinates!r} or rounding={rounding!r} is unknown; use nearest or linear, "
            f"{', '.join(COORDINATES)}, and {', '.join(ROUNDINGS)}"
        )
    if len(shape) != x.ndim - 2 or any(n < 1 for n in (*shape, *x.shape[2:])):
        raise ShapeError(
            f"shape={list(shape)} does not fit {x.name} {x.spec}; pass a length >= 1 for each axis after two"
        )


def take_nearest(x: Node, axis: int, at: np.ndarray, rounding: str) -> Node:
    """Take the elements nearest to positions along an axis."""
    return take(x, np.clip(rounded_positions(at, rounding), 0, x.shape[axis] - 1), axis)


def interpolate(x: Node, axis: int, at: np.ndarray) -> Node:
    """Interpolate linearly between two neighbours along an axis."""
    last = x.shape[axis] - 1
    at = np.clip(at, 0, last)
    low = np.floor(at).astype(np.int64)
    weights = (at - low).astype(x.dtype).reshape(-1, *[1] * (x.ndim - axis - 1))
    return take(x, low, axis) * (1 - weights) + take(x, np.minimum(low + 1, last), axis) * weights
