"""Importers of shapes, constants, ranges and triangles."""

import numpy as np

from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic.apart import known_number, most_apart
from cgraph.formats.onnx.dynamic.bounds import Size, node_of
from cgraph.formats.onnx.dynamic.value import Array, lengths_of, with_lengths
from cgraph.formats.onnx.dynamic_ops.operators import keeping
from cgraph.formats.onnx.dynamic_ops.reshape import element_count
from cgraph.formats.onnx.dynamic_ops.slices import limit_count
from cgraph.formats.onnx.tensors import dtype_of_number
from cgraph.formats.onnx.vocabulary import CodedStrings
from cgraph.ir.graph import Node
from cgraph.ir.spec import Spec
from cgraph.ops.leaf import Const


@operator("Shape")
def shape(c: Context) -> Node:
    lengths = lengths_of(c.array(0))[slice(c.attribute("start", 0), c.attribute("end"))]
    if not any(isinstance(n, Size) for n in lengths):
        return Const(np.array(lengths, np.int64))
    return cg.stack([node_of(n) for n in lengths], 0)


@operator("Size")
def size(c: Context) -> Node:
    return node_of(element_count(c, lengths_of(c.array(0))))


@operator("Constant")
def constant(c: Context) -> Node | CodedStrings:
    for kind, dtype in (("int", np.int64), ("float", np.float32)):
        if f"value_{kind}" in c.attributes:
            return Const(np.array(c.attribute(f"value_{kind}"), dtype))
        if f"value_{kind}s" in c.attributes:
            return Const(c.numbers(f"value_{kind}s").astype(dtype, copy=False), copy=False)
    strings = [c.attribute("value_string")] if "value_string" in c.attributes else c.attribute("value_strings")
    if strings is not None:
        array = np.array(strings, object)
        return c.vocabulary.constant(array if "value_strings" in c.attributes else array.reshape(()))
    value = c.required("value")
    return c.vocabulary.constant(value) if value.dtype == object else Const(value, copy=False)


@operator("ConstantOfShape")
def constant_of_shape(c: Context) -> Array:
    """Import ConstantOfShape: a broadcast value, which takes no memory until it is copied."""
    value = c.attribute("value", np.zeros(1, np.float32)).reshape(())
    lengths = c.lengths(0)
    rooms = [c.room(n, [0], axis) if isinstance(n, Size) else n for axis, n in enumerate(lengths)]
    return with_lengths(cg.broadcast_to(Const(value), tuple(rooms)), dict(enumerate(lengths)))


@operator("EyeLike")
@keeping(lambda c: ())
def eye_like(c: Context) -> Node:
    x = c[0]
    dtype = dtype_of_number(c.attribute("dtype")) if "dtype" in c.attributes else x.dtype
    c.spend(Spec(x.shape, dtype).nbytes)
    return Const(np.eye(x.shape[0], x.shape[1], c.attribute("k", 0), dtype))


@operator("Range")
def range_(c: Context) -> Array:
    if c.is_open(0, 1, 2):
        return open_range(c)
    start, stop, step = c.number(0), c.number(1), c.number(2)
    c.spend(max((stop - start) / step, 0) * 16)
    return Const(np.arange(start, stop, step).astype(c[0].dtype))


def open_range(c: Context) -> Array:
    """Import Range with a start, limit or step that is known only at run time."""
    start, stop, step = (cg.reshape(c[i], ()) for i in range(3))
    if start.dtype.kind == "f":
        count = cg.ceil((stop - start) / step)
    else:
        sign = cg.sign(step)
        count = cg.floor_divide(cg.astype((stop - start) * sign + cg.abs(step) - 1, "int64"), cg.abs(step))
    count = cg.maximum(cg.astype(count, "int64"), 0)
    by = known_number(step)
    if by is not None and by > 0:
        limit_count(c, count, most_apart(stop, start), by)
    length = c.limits.length(count)
    room = c.room(length, [0, 1, 2])
    values = start + cg.astype(c.limits.steps(room), start.dtype) * step
    return with_lengths(cg.astype(values, start.dtype), {0: length})


@operator("Trilu", "com.microsoft.Trilu")
@keeping(lambda c: ())
def triangle(c: Context) -> Node:
    """Import Trilu: the upper or lower triangle of matrices from diagonal k on, 0 elsewhere."""
    x, k = c[0], c.number(1, 0)
    return cg.triu(x, k) if c.attribute("upper", 1) else cg.tril(x, k)
