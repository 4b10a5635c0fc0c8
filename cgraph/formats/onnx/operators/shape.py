"""Importers of shape operators: reshapes, slices, joins, repeats."""

from math import prod

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic.bounds import Length, Size, node_of
from cgraph.formats.onnx.dynamic.value import Array, counts_of, lengths_of, node_in, with_lengths
from cgraph.formats.onnx.dynamic_ops.operators import samples
from cgraph.formats.onnx.dynamic_ops.reshape import element_count, reshape_to
from cgraph.formats.onnx.dynamic_ops.slices import as_length, expand_to, join_along, repeat, slice_axis, unwrap
from cgraph.ir.graph import Node
from cgraph.ir.spec import Spec
from cgraph.ops.shape import axis_of


@operator("Reshape")
def reshape(c: Context) -> Array:
    """Import Reshape; 0 copies the operand's axis, unless `allowzero`; -1 is inferred."""
    shape = c.lengths(1) if c.opset >= 5 else c.required("shape")
    if c.is_ragged or c.is_open(1):
        old = lengths_of(c.array(0))
        if not c.attribute("allowzero", 0):
            shape = [old[i] if n == 0 else copy_value(c, n, old[i]) if i < len(old) else n for i, n in enumerate(shape)]
        return reshape_to(c, c.array(0), shape)
    x = c[0]
    if not c.attribute("allowzero", 0):
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    if -1 in shape and x.size == 0:
        known_size = prod(n for n in shape if n != -1)
        if known_size == 0:
            raise FormatError(
                f"shape {shape} leaves axis -1 of an operand without elements undetermined: give its length"
            )
        shape = [0 if n == -1 else n for n in shape]
    return cg.reshape(x, tuple(shape))


def copy_value(c: Context, length: Length, other: Length) -> Length:
    """Return a length, replaced by the operand's if it is 0 at run time."""
    if not isinstance(length, Size) or length.low > 0 or length == other:
        return length
    return c.limits.length(cg.where(cg.equal(length.node, 0), node_of(other), length.node))


@operator("Flatten")
def flatten(c: Context) -> Array:
    x, axis = c.array(0), c.attribute("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    lengths = lengths_of(x)
    if isinstance(x, Node):
        return cg.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))
    return reshape_to(c, x, [element_count(c, lengths[:axis]), element_count(c, lengths[axis:])])


@operator("Transpose")
def transpose(c: Context) -> Array:
    x = c.array(0)
    axes = c.attribute("perm", list(reversed(range(x.ndim))))
    node = cg.transpose(node_in(x), axes)
    return with_lengths(node, {axes.index(a): n for a, n in counts_of(x).items()})


@operator("Squeeze")
def squeeze(c: Context) -> Array:
    """Import Squeeze; a squeezed axis of dynamic length must have one element at run time."""
    x, axes = c.array(0), c.axes(1)
    if axes is None or not c.is_ragged:
        return cg.squeeze(c[0], axes)
    lengths = lengths_of(x)
    gone = [axis_of(a, x.ndim) for a in axes]
    for a in gone:
        c.limits.check_equal(lengths[a], 1, c.unequal)
    node = node_in(x)[tuple(slice(0, 1) if a in gone else slice(None) for a in range(x.ndim))]
    left = [n for a, n in enumerate(lengths) if a not in gone]
    return with_lengths(cg.squeeze(node, tuple(gone)), dict(enumerate(left)))


@operator("Unsqueeze")
def unsqueeze(c: Context) -> Array:
    x, axes = c.array(0), tuple(c.axes(1))
    node = cg.expand_dims(node_in(x), axes)
    new = [axis_of(a, node.ndim) for a in axes]
    left = [a for a in range(node.ndim) if a not in new]
    return with_lengths(node, {left[a]: n for a, n in counts_of(x).items()})


@operator("Concat")
def concat(c: Context) -> Array:
    if c.is_ragged:
        return join_along(c, [c.array(i) for i in range(len(c.operands))], c.attribute("axis", 1))
    return cg.concat(c.nodes, c.attribute("axis", 1))


@operator("Split")
def split(c: Context) -> tuple[Array, ...]:
    """Import Split: into given lengths, or equal parts with a shorter last one."""
    if c.is_ragged or c.is_open(1):
        return pieces(c)
    x, count = c[0], len(c.read_results)
    axis = axis_of(c.attribute("axis", 0), x.ndim)
    lengths = c.ints(1, c.attribute("split"))
    if lengths is None:
        n, parts = x.shape[axis], c.attribute("num_outputs", count)
        c.spend(nodes=parts)
        size = -(-n // parts)
        lengths = [max(min(size, n - i * size), 0) for i in range(parts)]
    if sum(lengths) != x.shape[axis] or min(lengths, default=0) < 0:
        raise FormatError(
            f"lengths {lengths} do not add up to axis {axis} of {x.spec}: their sum must be {x.shape[axis]}"
        )
    return tuple(cg.split(x, np.cumsum(lengths)[:-1].tolist(), axis))


def pieces(c: Context) -> tuple[Array, ...]:
    """Split into lengths of which some are known only at run time; other axes may be of dynamic length."""
    x = c.array(0)
    axis = axis_of(c.attribute("axis", 0), x.ndim)
    lengths = c.lengths(1, c.attribute("split"))
    if lengths is None:
        parts = c.attribute("num_outputs", len(c.read_results))
        lengths = [as_length(c, (unwrap(lengths_of(x)[axis]) + (parts - 1)) // parts)] * parts
    segments: list[Array] = []
    begin: Length = 0
    for n in lengths:
        end = as_length(c, unwrap(begin) + unwrap(n))
        segments.append(slice_axis(c, x, axis, begin, end, 1))
        begin = end
    if c.value(1) is not None:
        c.limits.check_equal(begin, lengths_of(x)[axis], c.unequal)
    return tuple(segments)


@operator("Slice")
def slice_(c: Context) -> Array:
    """Import Slice; starts and ends are clipped to the axis. They are attributes in opset 9."""
    if c.opset >= 10 and (c.is_ragged or c.is_open(1, 2)):
        return open_slice(c)
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


def open_slice(c: Context) -> Array:
    """Import Slice with starts, ends or lengths known only at run time; steps must be constant."""
    x, starts, ends = c.array(0), c.lengths(1), c.lengths(2)
    axes, steps = c.ints(3, range(len(starts))), c.ints(4, [1] * len(starts))
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        x = slice_axis(c, x, axis_of(axis, x.ndim), start, end, step)
    return x


@operator("Expand")
def expand(c: Context) -> Array:
    if c.is_ragged or c.is_open(1):
        return expand_to(c, c.array(0), c.lengths(1))
    x = c[0]
    asked = Spec(tuple(c.ints(1)), x.dtype)  # refuses more axes than NumPy supports
    return cg.broadcast_to(x, np.broadcast_shapes(x.shape, asked.shape))


@operator("Tile")
def tile(c: Context) -> Array:
    if c.is_ragged or c.is_open(1):
        x = c.array(0)
        for axis, times in enumerate(c.lengths(1)):
            x = x if times == 1 else repeat(c, x, axis, times)
        return x
    return cg.tile(c[0], c.ints(1))


@operator("DepthToSpace")
@samples(0)
def depth_to_space(c: Context) -> Node:
    x, b = c[0], c.required("blocksize")
    n, channels, h, w = x.shape
    if c.attribute("mode", "DCR") == "DCR":
        x = cg.transpose(cg.reshape(x, (n, b, b, channels // b**2, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        x = cg.transpose(cg.reshape(x, (n, channels // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return cg.reshape(x, (n, channels // b**2, h * b, w * b))


@operator("SpaceToDepth")
@samples(0)
def space_to_depth(c: Context) -> Node:
    x, b = c[0], c.required("blocksize")
    n, channels, h, w = x.shape
    x = cg.transpose(cg.reshape(x, (n, channels, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4))
    return cg.reshape(x, (n, channels * b**2, h // b, w // b))


@operator("ReverseSequence")
def reverse_sequence(c: Context) -> Node:
    """Import ReverseSequence: reverse the first elements along the time axis, per sample."""
    x, batch, time = c[0], c.attribute("batch_axis", 1), c.attribute("time_axis", 0)
    c.spend(nbytes=8 * x.shape[time])
    steps = np.arange(x.shape[time]).reshape(-1, 1)
    lengths = cg.expand_dims(cg.astype(c[1], "int64"), 0)
    index = cg.where(cg.less(steps, lengths), lengths - 1 - steps, steps)  # [time, batch]
    moved = cg.moveaxis(x, (time, batch), (0, 1))
    index = cg.reshape(index, (*index.shape, *[1] * (x.ndim - 2)))
    node = cg.take_along_axis(moved, cg.broadcast_to(index, moved.shape), 0)
    return cg.moveaxis(node, (0, 1), (time, batch))
