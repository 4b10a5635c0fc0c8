"""Importers of Resize and Upsample: a weighted sum of a few elements along each axis, at constant indices."""

from collections.abc import Callable, Sequence
from math import floor
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic.value import Array, Ragged
from cgraph.formats.onnx.operators.open_resize import open_resize
from cgraph.ir.graph import Node
from cgraph.ops.resize import weighted_rows
from cgraph.ops.shape import axis_of
from cgraph.record import Record

COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")


class Axis(Record):
    """The resizing of one axis.

    Fields
        n, m: elements before and after
        scale: m / n, or the given scale
        start, end: the region of interest, from 0 to 1
    """

    n: int
    m: int
    scale: float
    start: float = 0.0
    end: float = 1.0

    def places(self, mode: str, dtype: str = "float64") -> np.ndarray:
        """Return the coordinate of each result in the operand, computed in `dtype`. Source: ONNX operator Resize."""
        i, scale = np.arange(self.m, dtype=dtype), np.dtype(dtype).type(self.scale)
        if mode == "align_corners":
            last = self.n * scale - 1
            return i * (self.n - 1) / last if self.m > 1 else i * 0
        if mode == "asymmetric":
            return i / scale
        if mode == "tf_crop_and_resize":
            if self.m == 1:
                return np.full(1, 0.5 * (self.start + self.end) * (self.n - 1))
            return self.start * (self.n - 1) + i * (self.end - self.start) * (self.n - 1) / (self.m - 1)
        if mode == "pytorch_half_pixel" and self.m == 1:
            return i * 0
        if mode not in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
            raise FormatError(f"coordinates {mode!r} are not supported. Use half_pixel, align_corners or asymmetric")
        shift = 0.0
        if mode == "half_pixel_symmetric":
            shift = self.n / 2 * (1 - self.m / (self.n * scale))
        return shift + (i + 0.5) / scale - 0.5


def nearest(places: np.ndarray, mode: str) -> np.ndarray:
    """Return the nearest index, by ONNX's rounding modes."""
    ways: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "round_prefer_floor": lambda v: np.ceil(v - 0.5),
        "round_prefer_ceil": lambda v: np.floor(v + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    if mode not in ways:
        raise FormatError(
            f"nearest_mode {mode!r} is not supported. Use floor, ceil, round_prefer_floor or round_prefer_ceil"
        )
    return ways[mode](places).astype(np.int64)


def triangle(distance: np.ndarray, _: float) -> np.ndarray:
    return np.clip(1 - np.abs(distance), 0, 1)


def cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """Source: Keys 1981, Cubic convolution interpolation."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def taps(c: Context, axis: Axis, places: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices and weights of the taps of each result: both ``[m, taps]``."""
    if mode == "nearest":
        index = nearest(places, c.attribute("nearest_mode", "round_prefer_floor"))[:, None]
        return np.clip(index, 0, axis.n - 1), np.ones(index.shape)
    weight, reach = {"linear": (triangle, 1), "cubic": (cubic, 2)}[mode]
    scale = min(axis.scale, 1.0) if c.attribute("antialias", 0) else 1.0
    first = floor(-reach / scale) + 1
    steps = np.arange(first, 2 * reach - first) if scale < 1 else np.arange(1 - reach, reach + 1)
    index = np.floor(places).astype(np.int64)[:, None] + steps
    weights = weight((index - places[:, None]) * scale, c.attribute("cubic_coeff_a", -0.75))
    if c.attribute("exclude_outside", 0):
        weights = np.where((index >= 0) & (index < axis.n), weights, 0)
    if scale < 1 or c.attribute("exclude_outside", 0):
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(index, 0, axis.n - 1), weights


def resized_axis(x: Node, axis: int, index: np.ndarray, weights: np.ndarray) -> Node:
    """Return the weighted sum of taps along an axis."""
    if index.shape[1] == 1:
        return cg.take(x, index[:, 0], axis)
    if not x.size or not len(index):
        return cg.zeros((*x.shape[:axis], len(index), *x.shape[axis + 1 :]), x.dtype)
    return weighted_rows(x, axis, index, weights)


@operator("Resize")
def resize(c: Context) -> Array:
    """Import Resize; opset 10 has scales as operand 1, later opsets a region, scales and sizes."""
    if c.opset >= 11 and (isinstance(c.value(0), Ragged) or c.is_open(2, 3)):
        return open_resize(c)
    if c.opset < 11:
        return resize_image(c, c[0], c.constant(1).tolist(), None, None, "asymmetric", "floor")
    return resize_image(c, c[0], scales_of(c), c.ints(3) or None, c, None, None)


def scales_of(c: Context) -> list[float] | None:
    scales = [] if c.value(2) is None else c.constant(2).tolist()
    return scales or None


@operator("Upsample")
def upsample(c: Context) -> Node:
    scales = c.constant(1).tolist() if c.opset >= 9 else c.required("scales")
    return resize_image(c, c[0], scales, None, None, "asymmetric", "floor")


def resize_image(c: Context, x: Node, scales: Any, sizes: Any, region: Any, coordinates: Any, rounding: Any) -> Node:
    """Resize one axis after another."""
    mode = c.attribute("mode", "nearest")
    if mode not in ("nearest", "linear", "cubic"):
        raise FormatError(f"mode {mode!r} is not supported. Use nearest, linear or cubic")
    coordinates = coordinates or c.attribute("coordinate_transformation_mode", "half_pixel")
    axes = [axis_of(a, x.ndim) for a in c.attribute("axes", range(x.ndim))]
    changed_axes = changes(c, x, axes, scales, sizes, coordinates)
    c.spend(sum(128 * axis.m for axis in changed_axes if axis.m != axis.n))
    whole = resize_by_op(c, x, dict(zip(axes, changed_axes)), mode, coordinates, rounding)
    if whole is not None:
        return whole
    reach = max([4, *(4 / axis.scale for axis in changed_axes if c.attribute("antialias", 0))])
    c.spend(nbytes=64 * reach * sum(axis.m for axis in changed_axes), nodes=4 * reach * len(changed_axes))
    outside = []
    dtype = x.dtype
    y = x if dtype.kind == "f" or mode == "nearest" else cg.astype(x, "float32")
    for a, axis in zip(axes, changed_axes, strict=True):
        places = axis.places(coordinates, "float32" if mode == "nearest" else "float64")
        if rounding:
            index = np.clip(nearest(places, rounding), 0, axis.n - 1)[:, None] if mode == "nearest" else None
            pair = (index, np.ones(index.shape)) if index is not None else taps(c, axis, places, mode)
        else:
            pair = taps(c, axis, places, mode)
        if axis.m != axis.n or not np.array_equal(places, np.arange(axis.n)):
            y = resized_axis(y, a, *pair)
        if coordinates == "tf_crop_and_resize":
            lost = (places < 0) | (places > axis.n - 1)
            outside.append(lost.reshape(-1, *[1] * (x.ndim - 1 - a)))
    for lost in outside:
        value = np.asarray(c.attribute("extrapolation_value", 0.0), y.dtype)
        y = cg.where(lost, value, y) if lost.any() else y
    return y if y.dtype == dtype else cg.astype(cg.rint(y), dtype)


def resize_by_op(c: Context, x: Node, axes: dict[int, Axis], mode: str, coordinates: str, rounding: Any) -> Node | None:
    """Resize float images by the library's own op if it computes the same; else return None."""
    plain = x.ndim > 2 and x.dtype.kind == "f" and mode in ("nearest", "linear") and coordinates in COORDINATES
    if not plain or c.attribute("antialias", 0) or c.attribute("exclude_outside", 0):
        return None
    if any(axes[a].m != axes[a].n or axes[a].scale != 1 for a in (0, 1) if a in axes):
        return None
    lengths = [axes.get(a, Axis(x.shape[a], x.shape[a], 1.0)) for a in range(2, x.ndim)]
    if not all(a.n and a.m for a in lengths):
        return None
    way = rounding or c.attribute("nearest_mode", "round_prefer_floor")
    if mode == "nearest" and any(depends_on_rounding(a, coordinates, way) for a in lengths):
        return None
    scales = [a.scale for a in lengths]
    return cg.resize(x, [a.m for a in lengths], mode, coordinates, way, scales)


def depends_on_rounding(axis: Axis, coordinates: str, rounding: str) -> bool:
    """Return whether coordinates in float32, as in onnxruntime, have other nearest elements than those in float64.

    The ends of an axis are aligned for whole lengths only.
    """
    if coordinates == "align_corners" and axis.n * axis.scale != axis.m:
        return True
    wide, narrow = (axis.places(coordinates, dtype) for dtype in ("float64", "float32"))
    return not np.array_equal(nearest(wide, rounding), nearest(narrow, rounding))


def changes(c: Context, x: Node, axes: Sequence[int], scales: Any, sizes: Any, coordinates: str) -> list[Axis]:
    """Return the resizing of each axis, from scales or sizes.

    The product of a length and a scale is rounded to float32 before it is cut: 10 elements become 23 by the nearest
    float32 to 2.3, which is below it.
    """
    region = [0.0] * len(axes) + [1.0] * len(axes)
    if coordinates == "tf_crop_and_resize" and c.value(1) is not None:
        region = c.constant(1).tolist()
    starts, ends = region[: len(axes)], region[len(axes) :]
    lengths = [x.shape[a] for a in axes]
    if sizes is not None:
        policy = c.attribute("keep_aspect_ratio_policy", "stretch")
        if any(min(m, n) < 1 and m != n for m, n in zip(sizes, lengths, strict=True)):
            raise FormatError(f"{lengths} elements cannot become {sizes}: give sizes above 0, of axes with elements")
        factors = [m / n if n else 1.0 for m, n in zip(sizes, lengths)]
        if policy != "stretch":
            common = min(factors) if policy == "not_larger" else max(factors)
            sizes, factors = [floor(common * n + 0.5) for n in lengths], [common] * len(axes)
        return [Axis(*v) for v in zip(lengths, sizes, factors, starts, ends)]
    if scales is None:
        raise FormatError("neither scales nor sizes are given: give one of them")
    if any(s <= 0 for s in scales):
        raise FormatError(f"scales are {scales}; they must be above 0")
    if coordinates == "tf_crop_and_resize":
        parts = [np.float32(e) - np.float32(s) for s, e in zip(starts, ends)]
        targets = [floor(np.float32(f) * part * n) for n, f, part in zip(lengths, scales, parts, strict=True)]
    else:
        targets = [floor(np.float32(n) * np.float32(f)) for n, f in zip(lengths, scales, strict=True)]
    return [Axis(*v) for v in zip(lengths, targets, scales, starts, ends)]
