"""Importers of Pad and CenterCropPad."""

from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic.bounds import node_of
from cgraph.formats.onnx.dynamic.value import Array, lengths_of
from cgraph.formats.onnx.dynamic_ops.slices import as_length, pad_axis, unwrap
from cgraph.ir.graph import Node
from cgraph.ops.shape import axis_of


@operator("Pad")
def pad(c: Context) -> Array:
    """Import Pad; negative widths cut."""
    if c.opset >= 11 and (c.is_ragged or c.is_open(1, 2)):
        return open_pad(c)
    x, mode = c[0], c.attribute("mode", "constant")
    pads = c.ints(1) if c.opset >= 11 else c.attribute("pads", c.attribute("paddings"))
    value = (c.number(2, 0) if c.opset >= 11 else c.attribute("value", 0.0)) if mode == "constant" else 0
    axes = [axis_of(a, x.ndim) for a in c.ints(3, range(x.ndim))]
    if len(pads) != 2 * len(axes):
        raise FormatError(f"pads {pads} do not fit {len(axes)} axes: give two for each")
    widths = [(0, 0)] * x.ndim
    for i, a in enumerate(axes):
        widths[a] = (pads[i], pads[len(axes) + i])
    if mode == "wrap":
        c.spend(nbytes=32 * sum(max(n + before + behind, 0) for n, (before, behind) in zip(x.shape, widths)))
    return pad_constant(x, widths, mode, value)


def open_pad(c: Context) -> Array:
    """Import Pad with widths or lengths that are known only at run time."""
    x, mode, pads = c.array(0), c.attribute("mode", "constant"), c.lengths(1)
    axes = [axis_of(a, x.ndim) for a in c.ints(3, range(x.ndim))]
    if len(pads) != 2 * len(axes):
        raise FormatError(f"{len(pads)} pads do not fit {len(axes)} axes: give two for each")
    value = c.get(2, 0)
    for i, axis in enumerate(axes):
        before, behind = pads[i], pads[len(axes) + i]
        if (before, behind) != (0, 0):
            size = as_length(c, unwrap(lengths_of(x)[axis]) + unwrap(before) + unwrap(behind))
            x = pad_axis(c, x, axis, before, size, mode, value)
    return x


def pad_constant(x: Node, widths: list[tuple[int, int]], mode: str, value: Any) -> Node:
    """Pad or cut the operand before and after each axis."""
    inside = tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, widths))
    x = x[inside] if any(w < 0 for pair in widths for w in pair) else x
    wide = [(max(a, 0), max(b, 0)) for a, b in widths]
    if mode != "wrap":
        return cg.pad(x, wide, mode, value)
    for axis, (before, behind) in enumerate(wide):
        if before or behind:
            x = cg.take(x, np.arange(-before, x.shape[axis] + behind) % x.shape[axis], axis)
    return x


@operator("CenterCropPad")
def center_crop_pad(c: Context) -> Array:
    """Import CenterCropPad: crop or zero-pad axes about their centre to given lengths."""
    if c.is_ragged or c.is_open(1):
        return open_crop_pad(c)
    x, lengths = c[0], c.ints(1)
    axes = [axis_of(a, x.ndim) for a in c.attribute("axes", range(x.ndim))]
    widths = [(0, 0)] * x.ndim
    for a, want in zip(axes, lengths, strict=True):
        n = x.shape[a]
        before = (want - n) // 2 if want >= n else -((n - want) // 2)
        widths[a] = (before, want - n - before)
    return pad_constant(x, widths, "constant", 0)


def open_crop_pad(c: Context) -> Array:
    """Import CenterCropPad with lengths that are known only at run time."""
    x = c.array(0)
    for axis, want in zip(c.attribute("axes", range(x.ndim)), c.lengths(1), strict=True):
        axis = axis_of(axis, x.ndim)
        more = node_of(want) - node_of(lengths_of(x)[axis])
        half = cg.sign(more) * cg.floor_divide(cg.abs(more), 2)
        x = pad_axis(c, x, axis, c.limits.length(half), want, "constant", 0)
    return x
