"""Operators that move elements: shapes, slices, joins, padding, and constants made of shapes."""

from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.tensors import dtype_of_number
from cgraph.ir.graph import Node
from cgraph.ir.spec import Spec
from cgraph.ops.leaf import Const
from cgraph.ops.shape import axis_of


@operator("Reshape")
def reshape(c: Context) -> Node:
    """0 keeps the operand's axis, unless `allowzero`; -1 is what is left."""
    x = c[0]
    shape = c.ints(1) if c.opset >= 5 else c.required("shape")
    if not c.attribute("allowzero", 0):
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    if -1 in shape and x.size == 0:
        known = prod(n for n in shape if n != -1)
        if known == 0:
            raise FormatError(f"shape {shape} leaves axis -1 of an operand without elements open")
        shape = [0 if n == -1 else n for n in shape]
    return cg.reshape(x, tuple(shape))


@operator("Flatten")
def flatten(c: Context) -> Node:
    x, axis = c[0], c.attribute("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return cg.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


@operator("Transpose")
def transpose(c: Context) -> Node:
    return cg.transpose(c[0], c.attribute("perm", list(reversed(range(c[0].ndim)))))


@operator("Squeeze")
def squeeze(c: Context) -> Node:
    return cg.squeeze(c[0], c.axes(1))


@operator("Unsqueeze")
def unsqueeze(c: Context) -> Node:
    return cg.expand_dims(c[0], tuple(c.axes(1)))


@operator("Concat")
def concat(c: Context) -> Node:
    return cg.concat(c.nodes, c.attribute("axis", 1))


@operator("Split")
def split(c: Context) -> tuple[Node, ...]:
    """Into given lengths, or equal parts of which the last may be shorter."""
    x, count = c[0], len(c.wanted)
    axis = axis_of(c.attribute("axis", 0), x.ndim)
    lengths = c.ints(1, c.attribute("split"))
    if lengths is None:
        n, parts = x.shape[axis], c.attribute("num_outputs", count)
        c.spend(nodes=parts)
        size = -(-n // parts)
        lengths = [max(min(size, n - i * size), 0) for i in range(parts)]
    if sum(lengths) != x.shape[axis] or min(lengths, default=0) < 0:
        raise FormatError(f"lengths {lengths} do not add up to axis {axis} of {x.spec}")
    return tuple(cg.split(x, np.cumsum(lengths)[:-1].tolist(), axis))


@operator("Slice")
def slice_(c: Context) -> Node:
    """Starts and ends beyond an axis are held within it, back to its first element; opset 9 has them as attributes."""
    x = c[0]
    if c.opset < 10:
        starts, ends = c.required("starts"), c.required("ends")
        axes, steps = c.attribute("axes"), None
    else:
        starts, ends, axes, steps = c.ints(1), c.ints(2), c.ints(3), c.ints(4)
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis = axis_of(axis, x.ndim)
        n = x.shape[axis]
        index[axis] = slice(start, end, step) if step > 0 else slice(max(start, -n), None if end < -n else end, step)
    return x[tuple(index)]


@operator("Expand")
def expand(c: Context) -> Node:
    x = c[0]
    asked = Spec(tuple(c.ints(1)), x.dtype)  # refuses more axes than NumPy broadcasts
    return cg.broadcast_to(x, np.broadcast_shapes(x.shape, asked.shape))


@operator("Tile")
def tile(c: Context) -> Node:
    return cg.tile(c[0], c.ints(1))


@operator("Shape")
def shape(c: Context) -> Node:
    found = c[0].shape[slice(c.attribute("start", 0), c.attribute("end"))]
    return Const(np.array(found, np.int64))


@operator("Size")
def size(c: Context) -> Node:
    return Const(np.array(c[0].size, np.int64))


@operator("Constant")
def constant(c: Context) -> Node:
    kinds = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
    for name, dtype in kinds.items():
        if name in c.attributes:
            return Const(np.array(c.attribute(name), dtype))
    return Const(c.required("value"))


@operator("ConstantOfShape")
def constant_of_shape(c: Context) -> Node:
    """One value, which takes no more bytes than itself until something packs it."""
    value = c.attribute("value", np.zeros(1, np.float32)).reshape(())
    return cg.broadcast_to(Const(value), tuple(c.ints(0)))


@operator("EyeLike")
def eye_like(c: Context) -> Node:
    x = c[0]
    dtype = dtype_of_number(c.attribute("dtype")) if "dtype" in c.attributes else x.dtype
    c.spend(Spec(x.shape, dtype).nbytes)
    return Const(np.eye(x.shape[0], x.shape[1], c.attribute("k", 0), dtype))


@operator("Range")
def range_(c: Context) -> Node:
    start, stop, step = c.number(0), c.number(1), c.number(2)
    c.spend(max((stop - start) / step, 0) * 16)
    return Const(np.arange(start, stop, step).astype(c[0].dtype))


@operator("Trilu")
def triangle(c: Context) -> Node:
    """The upper or lower triangle of matrices, from diagonal k on; 0 elsewhere."""
    x, k = c[0], c.number(1, 0)
    return cg.triu(x, k) if c.attribute("upper", 1) else cg.tril(x, k)


@operator("DepthToSpace")
def depth_to_space(c: Context) -> Node:
    x, b = c[0], c.required("blocksize")
    n, channels, h, w = x.shape
    if c.attribute("mode", "DCR") == "DCR":
        x = cg.transpose(cg.reshape(x, (n, b, b, channels // b**2, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        x = cg.transpose(cg.reshape(x, (n, channels // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return cg.reshape(x, (n, channels // b**2, h * b, w * b))


@operator("SpaceToDepth")
def space_to_depth(c: Context) -> Node:
    x, b = c[0], c.required("blocksize")
    n, channels, h, w = x.shape
    x = cg.transpose(cg.reshape(x, (n, channels, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4))
    return cg.reshape(x, (n, channels * b**2, h // b, w // b))


@operator("Pad")
def pad(c: Context) -> Node:
    """Negative widths cut off; mode `wrap` goes on at the other end."""
    x, mode = c[0], c.attribute("mode", "constant")
    given = c.ints(1) if c.opset >= 11 else c.attribute("pads", c.attribute("paddings"))
    value = (c.number(2, 0) if c.opset >= 11 else c.attribute("value", 0.0)) if mode == "constant" else 0
    axes = [axis_of(a, x.ndim) for a in c.ints(3, range(x.ndim))]
    if len(given) != 2 * len(axes):
        raise FormatError(f"pads {given} are not two for each of {len(axes)} axes")
    widths = [(0, 0)] * x.ndim
    for i, a in enumerate(axes):
        widths[a] = (given[i], given[len(axes) + i])
    if mode == "wrap":
        c.spend(nbytes=32 * sum(max(n + before + behind, 0) for n, (before, behind) in zip(x.shape, widths)))
    return padded(x, widths, mode, value)


def padded(x: Node, widths: list[tuple[int, int]], mode: str, value: Any) -> Node:
    """More or fewer elements around the operand, for each axis before and behind."""
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
def center_crop_pad(c: Context) -> Node:
    """Cut or zero-padded in the middle of axes to given lengths."""
    x, lengths = c[0], c.ints(1)
    axes = [axis_of(a, x.ndim) for a in c.attribute("axes", range(x.ndim))]
    widths = [(0, 0)] * x.ndim
    for a, want in zip(axes, lengths, strict=True):
        n = x.shape[a]
        before = (want - n) // 2 if want >= n else -((n - want) // 2)
        widths[a] = (before, want - n - before)
    return padded(x, widths, "constant", 0)


@operator("ReverseSequence")
def reverse_sequence(c: Context) -> Node:
    """For each position along the batch axis, the first elements along the time axis in reverse order."""
    x, batch, time = c[0], c.attribute("batch_axis", 1), c.attribute("time_axis", 0)
    c.spend(nbytes=8 * x.shape[time])
    steps = np.arange(x.shape[time]).reshape(-1, 1)
    lengths = cg.expand_dims(cg.astype(c[1], "int64"), 0)
    index = cg.where(cg.less(steps, lengths), lengths - 1 - steps, steps)  # [time, batch]
    moved = cg.moveaxis(x, (time, batch), (0, 1))
    index = cg.reshape(index, (*index.shape, *[1] * (x.ndim - 2)))
    found = cg.take_along_axis(moved, cg.broadcast_to(index, moved.shape), 0)
    return cg.moveaxis(found, (0, 1), (time, batch))
