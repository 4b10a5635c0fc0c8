"""Importers of gathers, scatters, segments, tables, one-hot, range and top-k."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.operators.shape import only
from cgraph.formats.tflite.value import SIGN, TfliteValue
from cgraph.ir.graph import Node
from cgraph.ops.index import flatten_rows

SEGMENTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "SUM": ("add", lambda limits: 0),
    "PROD": ("multiply", lambda limits: 1),
    "MAX": ("max", lambda limits: limits.min),
    "MIN": ("min", lambda limits: limits.max),
}
"""How segments are combined, and the value of one without elements, from the limits of the dtype."""


@operator("GATHER", on_bytes=False)
def gather(c: TfliteContext) -> Node:
    """Import GATHER; the first axes of both operands may be one batch."""
    x, index, batch = c[0].plain, c[1].plain, c.option("batch_axes")
    axis = c.axis(c.option("axis"), TfliteValue(x))
    batch = batch + index.ndim if batch < 0 else batch
    if not batch:
        return cg.take(x, index, axis=axis)
    if not 0 < batch <= min(axis, index.ndim) or x.shape[:batch] != index.shape[:batch]:
        raise FormatError(f"{batch} axes of a batch, up to axis {axis}, do not fit {x.spec} and {index.spec}")
    leading, between, behind = x.shape[:batch], x.shape[batch:axis], x.shape[axis + 1 :]
    rows = x.reshape((prod(leading), prod(between), x.shape[axis], prod(behind)))
    places = index.reshape((prod(leading), 1, prod(index.shape[batch:]), 1))
    return cg.take_along_axis(rows, places, 2).reshape((*leading, *between, *index.shape[batch:], *behind))


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


@operator("EMBEDDING_LOOKUP", on_bytes=True)
def embedding(c: TfliteContext) -> Node:
    """Import EMBEDDING_LOOKUP; operands: row numbers, and a table, which may be int8 of which rows become floats."""
    rows = cg.take(c[1].plain, c[0].plain, axis=0)
    if c.results[0].quantised is not None and not c.result.equals(c[1].bytes):
        raise FormatError("the rows have another scale than the table. Give both one scale")
    if c[1].quantised is None or c.results[0].quantised is not None:
        return rows
    if not c[1].bytes.is_signed or c[1].bytes.zeros.any() or c[1].bytes.axis:
        raise FormatError("a table whose rows become floats must be int8 with one scale, or one for each row, around 0")
    c.spend(nbytes=4 * c[1].shape[0])
    scales = np.broadcast_to(c[1].bytes.scales, c[1].shape[0])
    scale = cg.take(scales, c[0].plain).reshape((-1, *[1] * (c[1].ndim - 1)))
    return cg.astype(cg.astype(rows, "int32") - np.int32(SIGN), "float32") * scale


@operator("HASHTABLE_LOOKUP")
def hashtable_lookup(c: TfliteContext) -> list[Node]:
    """Import HASHTABLE_LOOKUP: the values of keys, zeros for a key that is not in the table, and whether it is.

    Operands: the keys that are looked up, the table's keys in ascending order, its values.
    """
    queries, keys, values = c.nodes
    if queries.ndim != 1 or keys.ndim != 1 or values.shape[:1] != keys.shape or not keys.size:
        raise FormatError(f"keys {queries.spec} and a table of keys {keys.spec} and values {values.spec} do not fit")
    place = cg.minimum(cg.searchsorted(keys, queries), np.int64(keys.size - 1))
    is_found = cg.equal(cg.take(keys, place), queries)
    rows = cg.take(values, place, axis=0)
    is_row_found = is_found.reshape((-1, *[1] * (values.ndim - 1)))
    return [cg.where(is_row_found, rows, cg.zeros_like(rows)), cg.astype(is_found, "uint8")]


@operator("SCATTER_ND", on_bytes=False)
def scatter_nd(c: TfliteContext) -> Node:
    """Import SCATTER_ND; operands: positions, updates, the shape. Updates of equal positions are added.

    Quantised numbers are added as the file's integers, as in TFLite.
    """
    sign = np.uint8(0 if c[1].quantised is None else c[1].bytes.sign)
    updates = cg.bitwise_xor(c[1].plain, sign) if sign else c[1].plain
    total = write_at(c[0].plain, updates, np.zeros((), updates.dtype), c.ints(2), "add")
    return cg.bitwise_xor(total, sign) if sign else total


def write_at(positions: Node, updates: Node, fill: np.ndarray | Node, sizes: list[int], how: str) -> Node:
    """Return an array of some sizes, filled with one number, in which updates are written at positions ``[..., k]``."""
    if min(sizes, default=0) < 0:
        raise FormatError(f"the result's shape {sizes} has a negative size")
    rows, flat = flatten_rows(cg.broadcast_to(fill, tuple(sizes)), positions)
    values = cg.broadcast_to(updates, (*positions.shape[:-1], *sizes[positions.shape[-1] :]))
    return cg.scatter(rows, flat, values, how).reshape(tuple(sizes))


@operator("SPARSE_TO_DENSE", on_bytes=False)
def sparse_to_dense(c: TfliteContext) -> Node:
    """Import SPARSE_TO_DENSE; operands: positions, the shape, values (one or one each), the number elsewhere.

    Positions are one number, a row of them, or ``[k, axes]``.
    """
    positions, sizes = c[0].plain, c.ints(1)
    positions = positions if positions.ndim == 2 else positions.reshape((-1, 1))
    if c[0].ndim > 2 or positions.shape[1] != len(sizes) or c[3].node.size != 1:
        raise FormatError(f"positions {list(c[0].shape)} and {c[3].node.size} numbers for the rest do not fit {sizes}")
    return write_at(positions, c[2].plain, c[3].plain.reshape(()), sizes, "set")


@operator("SEGMENT_SUM")
def segment_sum(c: TfliteContext) -> Node:
    """Import SEGMENT_SUM; operands: data, and the segment of each row, constant and ascending."""
    segments = c.constant(1)
    if segments.ndim != 1 or c[0].shape[:1] != segments.shape or (np.diff(segments) < 0).any() or (segments < 0).any():
        raise FormatError(
            f"{segments.size} segments of {list(c[0].shape)} must be one for each row, and ascending from 0"
        )
    return combine_segments(c, "SUM", int(segments[-1]) + 1 if segments.size else 0)


@operator(*(f"UNSORTED_SEGMENT_{x}" for x in SEGMENTS))
def unsorted_segments(c: TfliteContext) -> Node:
    """Import UNSORTED_SEGMENT_*; operands: data, segments along its first axes (negative: none), their number."""
    segments, count = c[1], only(c.ints(2))
    if c[0].shape[: segments.ndim] != segments.shape or count < 0:
        raise FormatError(f"{count} segments, named by {list(segments.shape)}, do not fit data {list(c[0].shape)}")
    return combine_segments(c, c.kind.rpartition("_")[2], count)


def combine_segments(c: TfliteContext, kind: str, count: int) -> Node:
    """Return data combined by segments; one more row gets what belongs to no segment."""
    x, segments = c[0].plain, c[1].plain
    how, start = SEGMENTS[kind]
    fill, rest = start((np.finfo if x.dtype.kind == "f" else np.iinfo)(x.dtype)), x.shape[segments.ndim :]
    rows = cg.full((count + 1, *rest), fill, x.dtype)
    place = cg.where(cg.less(segments, 0), np.asarray(count, segments.dtype), segments)
    flat = x.reshape((segments.size, *rest))
    return cg.scatter(rows, place.reshape((-1,)), flat, how)[:count]


@operator("DYNAMIC_UPDATE_SLICE", on_bytes=False)
def dynamic_update_slice(c: TfliteContext) -> Node:
    """Import DYNAMIC_UPDATE_SLICE; operands: x, the update, and where it begins, moved so that it lies inside."""
    x, update, start = c[0].plain, c[1].plain, c[2].plain
    room = [n - m for n, m in zip(x.shape, update.shape)]
    if x.ndim != update.ndim or start.shape != (x.ndim,) or min(room, default=0) < 0:
        raise FormatError(f"an update {update.spec} from {start.spec} on does not fit {x.spec}")
    start = cg.clip(start, np.zeros(x.ndim, start.dtype), np.array(room, start.dtype))
    return set_block(x, update, start, [i for i, n in enumerate(room) if n])


def set_block(x: Node, update: Node, start: Node, axes: list[int]) -> Node:
    """Return x with the block that begins at `start` replaced; x and the update differ in size along some axes."""
    if not axes:
        return update
    axis, *rest = axes
    rows = cg.take_rows(x, start[axis], update.shape[axis], axis) if rest else x
    return cg.set_rows(x, start[axis], set_block(rows, update, start, rest), axis)


@operator("BUCKETIZE")
def bucketize(c: TfliteContext) -> TfliteValue:
    """Import BUCKETIZE: the number of boundaries that are not above each element."""
    x, bounds = c[0], c.option("boundaries")
    if bounds is None or (np.diff(bounds) < 0).any():
        raise FormatError("the boundaries must be ascending numbers")
    numbers = x.node if x.node.dtype.kind == "f" else cg.astype(x.node, "float32")  # as TFLite compares them
    return TfliteValue(cg.astype(cg.digitize(numbers, bounds), c.dtypes[0]), first=x.first)
