"""Importers of operators that interpolate images: GridSample, AffineGrid, regions, DeformConv."""

from collections.abc import Sequence
from itertools import product
from math import ceil, prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic_ops.operators import samples
from cgraph.formats.onnx.operators.conv import add_bias
from cgraph.ir.graph import Node


def gather_pixels(flat: Node, index: Node) -> Node:
    """Gather elements of images ``[n, c, pixels]`` at indices ``[n, p]``: ``[n, c, p]``."""
    shape = (*flat.shape[:2], index.shape[1])
    return cg.take_along_axis(flat, cg.broadcast_to(cg.expand_dims(index, 1), shape), 2)


def pixel(flat: Node, sizes: Sequence[int], at: Sequence[Node], zero_outside: bool) -> Node:
    """Return pixels ``[n, c, p]`` at integer positions ``at[i]`` ``[n, p]`` per axis; outside, 0 or the edge.

    A position that is NaN is outside.
    """
    index: Any = 0
    inside: Any = None
    for n, place in zip(sizes, at):
        index = index * n + nearest_inside(place, n)
        within = cg.logical_and(place >= 0, place < n)
        inside = within if inside is None else cg.logical_and(inside, within)
    values = gather_pixels(flat, cg.astype(index, "int64"))
    return cg.where(cg.expand_dims(inside, 1), values, cg.zeros_like(values)) if zero_outside else values


def nearest_inside(place: Node, n: int) -> Node:
    """Return the positions clipped to an axis of n elements; 0 for NaN, so that it can be an index."""
    return cg.where(place > 0, cg.minimum(place, float(n - 1)), 0.0)


def reflect(x: Node, n: int, corners: bool) -> Node:
    """Reflect positions outside at the border: at the centres of the outermost pixels, or at their edges."""
    low, span = (0.0, float(n - 1)) if corners else (-0.5, float(n))
    if span == 0:
        return cg.zeros_like(x)
    away = cg.remainder(x - low, 2 * span)
    return cg.minimum(away, 2 * span - away) + low


@operator("GridSample", "com.microsoft.GridSample")
@samples(0, 1)
def grid_sample(c: Context) -> Node:
    """Import GridSample: the image ``[n, c, ...]`` at positions ``[n, ..., axes]`` in [-1, 1], last axis first.

    Positions that are not finite are the first edge, -1, as in onnxruntime.
    """
    x, grid = c[0], c[1]
    mode = c.attribute("mode", "linear").removeprefix("bi")
    padding, corners = c.attribute("padding_mode", "zeros"), bool(c.attribute("align_corners", 0))
    if mode not in ("linear", "nearest", "cubic") or padding not in ("zeros", "border", "reflection"):
        raise FormatError(
            f"mode {mode!r} with padding {padding!r} is not supported. Use linear, nearest or cubic with zeros, "
            "border or reflection"
        )
    sizes = x.shape[2:]
    flat = cg.reshape(x, (*x.shape[:2], prod(sizes)))
    points = cg.reshape(grid, (grid.shape[0], prod(grid.shape[1:-1]), len(sizes)))
    at = []
    for i, n in enumerate(sizes):
        g = points[..., len(sizes) - 1 - i]
        g = cg.where(cg.isfinite(g), g, -1.0)
        at.append((g + 1.0) * ((n - 1) / 2) if corners else ((g + 1.0) * n - 1.0) / 2.0)
    if mode != "cubic":
        at = [apply_padding_mode(v, n, padding, corners) for v, n in zip(at, sizes)]
    taps = [axis_taps(v, mode) for v in at]
    total: Any = None
    for choice in product(*taps):
        places = [
            apply_padding_mode(p, n, padding, corners) if mode == "cubic" else p for (p, _), n in zip(choice, sizes)
        ]
        part = pixel(flat, sizes, places, padding == "zeros")
        for _, weight in choice:
            part = part if weight is None else part * cg.expand_dims(weight, 1)
        total = part if total is None else total + part
    return cg.reshape(total, (*x.shape[:2], *grid.shape[1:-1]))


def apply_padding_mode(at: Node, n: int, padding: str, corners: bool) -> Node:
    """Apply a padding mode to positions; they stay outside for zeros."""
    if padding == "zeros":
        return at
    return cg.clip(reflect(at, n, corners) if padding == "reflection" else at, 0.0, float(n - 1))


def axis_taps(at: Node, mode: str) -> list[tuple[Node, Any]]:
    """Return integer positions along an axis and their weights."""
    if mode == "nearest":
        return [(cg.rint(at), None)]
    low = cg.floor(at)
    t = at - low
    if mode == "linear":
        return [(low, 1.0 - t), (low + 1.0, t)]
    return [(low + float(k), cubic_weight(cg.abs(t - float(k)), k in (0, 1))) for k in (-1, 0, 1, 2)]


def cubic_weight(d: Node, near: bool, a: float = -0.75) -> Node:
    """Source: Keys 1981, Cubic convolution interpolation."""
    if near:
        return ((a + 2) * d - (a + 3)) * d * d + 1.0
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


@operator("AffineGrid")
def affine_grid(c: Context) -> Node:
    """Import AffineGrid: the positions in [-1, 1] of all pixels, transformed by an affine map per sample."""
    theta, size = c[0], c.ints(1)
    axes = size[2:]
    if len(axes) not in (2, 3) or min(axes) < 0:
        raise FormatError(f"the size {size[:8]} is not supported. Give [n, c, h, w] or [n, c, d, h, w]")
    c.spend(64 * (prod(axes) + sum(axes)))
    lines = []
    for n in axes:
        step = np.arange(n)
        lines.append(2 * step / max(n - 1, 1) - 1 if c.attribute("align_corners", 0) else (2 * step + 1) / n - 1)
    mesh = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*reversed(mesh), np.ones(axes)], -1).reshape(1, -1, len(axes) + 1).astype(theta.dtype)
    grid = cg.matmul(cg.broadcast_to(points, (size[0], *points.shape[1:])), cg.swapaxes(theta, 1, 2))
    return cg.reshape(grid, (size[0], *axes, len(axes)))


@operator("RoiAlign")
@samples(1, 2)
def roi_align(c: Context) -> Node:
    """Import RoiAlign: each region ``[x1, y1, x2, y2]`` as a grid of averages (or maxima) of interpolated points."""
    x, rois, batch = c[0], c[1], c[2]
    ratio = c.attribute("sampling_ratio", 0)
    if ratio > 0 and c.attribute("mode", "avg") == "avg" and x.size and x.dtype == rois.dtype:
        cells = c.attribute("output_height", 1), c.attribute("output_width", 1)
        scale = [c.attribute("spatial_scale", 1.0)]
        grid = "aligned" if transformation(c) == "half_pixel" else "cells"
        return cg.roi_align_levels([x], rois, batch, cg.zeros(batch.shape, "int64"), cells, scale, ratio, grid)
    if ratio > 0:
        return align_region(c, x, rois, batch, (ratio, ratio))
    scale = c.attribute("spatial_scale", 1.0)
    height, width = c.attribute("output_height", 1), c.attribute("output_width", 1)
    least = 1.0 if transformation(c) == "output_half_pixel" else 0.0
    regions = []
    for i, (x1, y1, x2, y2) in enumerate(c.constant(1) * scale):
        counts = ceil(max(y2 - y1, least) / height), ceil(max(x2 - x1, least) / width)
        if min(counts) > 0:
            regions.append(align_region(c, x, rois[i : i + 1], batch[i : i + 1], counts))
        else:  # a region without extent has no points
            regions.append(cg.zeros((1, x.shape[1], height, width), x.dtype))
    return cg.concat(regions, 0)


def transformation(c: Context) -> str:
    """Return how RoiAlign maps coordinates to pixels."""
    return c.attribute("coordinate_transformation_mode", "half_pixel" if c.opset >= 16 else "output_half_pixel")


def align_region(c: Context, x: Node, rois: Node, batch: Node, counts: tuple[int, int]) -> Node:
    """Align regions with one number of points per cell."""
    offset = 0.5 if transformation(c) == "half_pixel" else 0.0
    cells = c.attribute("output_height", 1), c.attribute("output_width", 1)
    c.spend(nbytes=64 * (cells[0] * counts[0] + cells[1] * counts[1]), nodes=60)
    corners = rois * c.attribute("spatial_scale", 1.0) - offset
    taps = []
    for axis in (0, 1):
        first, last = corners[:, 1 - axis], corners[:, 3 - axis]
        length = last - first if offset else cg.maximum(last - first, 1.0)
        steps = (np.arange(cells[axis] * counts[axis]) + 0.5) / (cells[axis] * counts[axis])
        at = cg.expand_dims(first, 1) + cg.expand_dims(length, 1) * steps.astype(x.dtype)  # [r, cells * points]
        taps.append(roi_taps(at, x.shape[2 + axis]))
    images = cg.take(x, c.limits.positions(cg.astype(batch, "int64"), x.shape[0]), 0)
    rows, columns = x.shape[2:]
    flat = cg.reshape(images, (*images.shape[:2], rows * columns))
    grid = (cells[0] * counts[0], cells[1] * counts[1])
    parts = []
    for (y, wy), (z, wz) in product(*taps):
        index = cg.reshape(cg.expand_dims(y, 2) * columns + cg.expand_dims(z, 1), (rois.shape[0], -1))
        weight = cg.reshape(cg.expand_dims(wy, 2) * cg.expand_dims(wz, 1), (rois.shape[0], 1, -1))
        part = gather_pixels(flat, index) * weight
        shape = (*images.shape[:2], cells[0], counts[0], cells[1], counts[1])
        parts.append(cg.reshape(cg.reshape(part, (*images.shape[:2], *grid)), shape))
    if c.attribute("mode", "avg") == "avg":
        return cg.mean(parts[0] + parts[1] + parts[2] + parts[3], (3, 5))
    return cg.max(cg.maximum(cg.maximum(parts[0], parts[1]), cg.maximum(parts[2], parts[3])), (3, 5))


def roi_taps(at: Node, n: int) -> list[tuple[Node, Node]]:
    """Return two positions along an axis and their weights, 0 from one pixel outside on."""
    inside = cg.astype(cg.logical_and(at >= -1.0, at <= float(n)), at.dtype)
    at = nearest_inside(at, n)
    low = cg.floor(at)
    t = at - low
    whole = cg.astype(low, "int64")
    return [(whole, (1.0 - t) * inside), (cg.minimum(whole + 1, n - 1), t * inside)]


@operator("MaxRoiPool")
@samples(1)
def max_roi_pool(c: Context) -> Node:
    """Import MaxRoiPool: of each region ``[image, x1, y1, x2, y2]`` the largest pixel of each cell; 0 of none.

    Source: Girshick 2015, arXiv:1504.08083; corners are rounded to pixels, and cells overlap.
    """
    x, rois = c[0], c[1]
    cells = c.required("pooled_shape")
    if x.ndim != 4 or len(cells) != 2 or min(cells) < 1:
        raise FormatError(f"cells {cells} of {x.ndim - 2} axes are not supported. Use two numbers above 0, and images")
    c.spend(nbytes=64 * sum(cells), nodes=8 * sum(cells))
    corners = rois[:, 1:] * c.attribute("spatial_scale", 1.0)
    corners = cg.sign(corners) * cg.floor(cg.abs(corners) + 0.5)  # halves away from 0
    image = cg.take(x, c.limits.positions(cg.astype(rois[:, 0], "int64"), x.shape[0]), 0)
    for axis, count in zip((3, 2), reversed(cells)):
        first, last = corners[:, 3 - axis], corners[:, 5 - axis]
        image = largest_of_cells(image, axis, first, last, count)
    return cg.where(cg.equal(image, -np.inf), cg.zeros_like(image), image)


def largest_of_cells(image: Node, axis: int, first: Node, last: Node, count: int) -> Node:
    """Return the largest elements of `count` cells between two places of each image along an axis."""
    at = np.arange(image.shape[axis])
    length = cg.maximum(last - first + 1.0, 1.0) / float(count)
    sides = [-1, *(image.shape[axis] if i == axis else 1 for i in (1, 2, 3))]
    parts = []
    for i in range(count):
        low, high = cg.floor(length * float(i)) + first, cg.ceil(length * float(i + 1)) + first
        inside = cg.logical_and(cg.expand_dims(low, 1) <= at, cg.expand_dims(high, 1) > at)
        masked = cg.where(cg.reshape(inside, sides), image, -np.inf)
        parts.append(cg.max(masked, axis, keepdims=True))
    return cg.concat(parts, axis)


@operator("DeformConv")
def deform_conv(c: Context) -> Node:
    """Import DeformConv: a convolution with data-dependent sampling offsets. Source: Zhu 2018, arXiv:1811.11168."""
    x, f, offset, mask = c[0], c[1], c[2], c.get(4)
    if x.ndim != 4:
        raise FormatError(f"{x.ndim - 2} axes besides batch and channels are not supported. Use 2")
    stride, dilation = c.attribute("strides", [1, 1]), c.attribute("dilations", [1, 1])
    pad = c.attribute("pads", [0, 0, 0, 0])
    groups, parts = c.attribute("group", 1), c.attribute("offset_group", 1)
    n, channels = x.shape[:2]
    window, results = f.shape[2:], offset.shape[2:]
    points = prod(window) * prod(results)
    shifts = cg.reshape(offset, (n, parts, prod(window), 2, prod(results)))
    c.spend(nbytes=64 * points, nodes=40 * parts)
    base = window_places(window, results, stride, dilation, pad)  # [window, 2, results]
    per_part = channels // parts
    columns = []
    for g in range(parts):
        at = [cg.reshape(shifts[:, g, :, i] + base[:, i].astype(x.dtype), (n, points)) for i in (0, 1)]
        flat = cg.reshape(x[:, g * per_part : (g + 1) * per_part], (n, per_part, prod(x.shape[2:])))
        values = interpolate(flat, x.shape[2:], at)
        if mask is not None:
            share = cg.reshape(mask, (n, parts, 1, points))[:, g]
            values = values * share
        columns.append(values)
    whole = cg.reshape(cg.concat(columns, 1), (n, groups, channels // groups, prod(window), prod(results)))
    filters = cg.reshape(f, (groups, f.shape[0] // groups, f.shape[1], prod(window)))
    values = cg.einsum("ngcwp,gkcw->ngkp", whole, filters)
    return add_bias(cg.reshape(values, (n, f.shape[0], *results)), c.get(3))


def window_places(window: Any, results: Any, stride: Any, dilation: Any, pad: Any) -> np.ndarray:
    """Return the positions of the elements of windows: ``[elements, 2, results]``."""
    offsets = np.zeros((prod(window), 2, prod(results)))
    for axis in (0, 1):
        inner = np.indices(window)[axis].reshape(-1, 1) * dilation[axis]
        outer = np.indices(results)[axis].reshape(1, -1) * stride[axis] - pad[axis]
        offsets[:, axis] = inner + outer
    return offsets


def interpolate(flat: Node, sizes: Sequence[int], at: Sequence[Node]) -> Node:
    """Interpolate images ``[n, c, pixels]`` bilinearly at positions ``[n, p]``, 0 outside."""
    total: Any = None
    for choice in product(*(axis_taps(v, "linear") for v in at)):
        part = pixel(flat, sizes, [p for p, _ in choice], True)
        for _, weight in choice:
            part = part * cg.expand_dims(weight, 1)
        total = part if total is None else total + part
    return total
