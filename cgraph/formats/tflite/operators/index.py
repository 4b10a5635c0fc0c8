"""Importers of gather, one-hot, range and top-k."""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.operators.shape import only
from cgraph.formats.tflite.value import TfliteValue
from cgraph.ir.graph import Node


@operator("GATHER", on_bytes=False)
def gather(c: TfliteContext) -> Node:
    if c.option("batch_axes"):
        raise FormatError(f"batch_dims={c.option('batch_axes')} is not supported. Use 0")
    return cg.take(c[0].plain, c[1].plain, axis=c.axis(c.option("axis"), TfliteValue(c[0].plain)))


@operator("GATHER_ND", on_bytes=False)
def gather_nd(c: TfliteContext) -> Node:
    return cg.gather_nd(*c.nodes)


@operator("ONE_HOT")
def one_hot(c: TfliteContext) -> Node:
    """Import ONE_HOT; operands: indices, depth, on value, off value. A negative index is outside."""
    x, axis = c[0].plain, c.option("axis")
    depth, on, off = only(c.ints(1)), c.constant(2), c.constant(3)
    if on.size != 1 or off.size != 1:
        raise FormatError(f"the on value has {on.size} elements, the off value {off.size}; each must have one")
    numbers = [np.reshape(n, ()).item() for n in (on, off)]
    x = cg.where(cg.less(x, 0), np.asarray(depth, x.dtype), x) if x.dtype.kind == "i" else x
    return cg.one_hot(x, depth, axis, c.dtypes[0], *numbers)


@operator("RANGE")
def numbers(c: TfliteContext) -> TfliteValue:
    """Import RANGE; operands: start, limit, step."""
    start, stop, step = (np.reshape(c.constant(i), ()).item() for i in range(3))
    count = max(int(np.ceil((stop - start) / step)), 0)
    c.spend(nbytes=8 * count, work=count)
    return TfliteValue(array=(start + step * np.arange(count)).astype(c.dtypes[0]))


@operator("TOPK_V2", on_bytes=False)
def top_k(c: TfliteContext) -> list[Node]:
    """Import TOPK_V2: the k largest along the last axis, descending, and their indices."""
    values, places = cg.top_k(c[0].plain, only(c.ints(1)))
    return [values, cg.astype(places, c.dtypes[1])]
