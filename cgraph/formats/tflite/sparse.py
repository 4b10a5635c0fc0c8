"""Sparse constants: the nonzero values of a tensor, and where they lie, as nested levels of indices.

A tensor of n axes has n levels, and one more for each axis that is cut into blocks: the index along such an axis is
that of the block times the block's size, plus the index in it. A level is *dense*, with all its indices, or
*compressed*: for each index of the levels before, a segment of a list of indices. Source: the comments on
SparsityParameters in TFLite's schema.fbs; Kjolstad et al. 2017, doi:10.1145/3133901.

Memory and work are in proportion to the indices of a level, and are charged before they are used.
"""

from math import prod

import numpy as np

from cgraph.errors import FormatError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.tflite.schema import LevelFields, SparsityFields
from cgraph.formats.tflite.wire import Table
from cgraph.record import Record

INDEX = 32  # bytes of memory in use for each index of a level
DENSE, COMPRESSED = 0, 1
KINDS = {1: "int32", 2: "uint16", 3: "uint8"}  # of lists of indices


class Level(Record, eq=False):
    """One level of a sparse tensor.

    Fields
        table: its description in the file
        size: its indices are smaller
        stride: elements of the dense tensor from one index to the next
    """

    table: Table
    size: int
    stride: int


def densify(sparsity: Table, values: np.ndarray, shape: tuple[int, ...], allowance: Allowance) -> np.ndarray:
    """Return the dense tensor of nonzero values. FormatError if the levels do not describe one of that shape."""
    count = prod(shape)
    allowance.spend("a sparse tensor", nbytes=count * values.itemsize, work=count)
    places = np.zeros(1, "int64")  # in the dense tensor, of the indices of the levels so far
    for level in levels_of(sparsity, shape):
        places = next_places(level, places, allowance)
    if places.size != values.size:
        raise damaged_file(f"a sparse tensor has {values.size} values at {places.size} indices")
    dense = np.zeros(count, values.dtype)
    dense[places] = values
    return dense.reshape(shape)


def levels_of(sparsity: Table, shape: tuple[int, ...]) -> list[Level]:
    """Return the levels in the order of the file."""
    order, blocks = (sparsity.vector(field, "int32") for field in (SparsityFields.ORDER, SparsityFields.BLOCKS))
    axes = [] if blocks is None else blocks[: len(shape) + 1].tolist()
    count = len(shape) + len(axes)
    if len(set(axes)) != len(axes) or not set(axes) <= set(range(len(shape))):
        raise damaged_file(f"a sparse tensor of {len(shape)} axes has blocks of the axes {axes}")
    if order is None or order.size != count or sparsity.count(SparsityFields.LEVELS) != count:
        raise damaged_file(f"a sparse tensor of {len(shape)} axes and {len(axes)} axes of blocks lacks levels")
    if sorted(order.tolist()) != list(range(count)):
        raise damaged_file(f"the levels of a sparse tensor have the axes {order.tolist()}")
    tables = {
        axis: Table(sparsity.data, int(at)) for axis, at in zip(order.tolist(), sparsity.places(SparsityFields.LEVELS))
    }
    sizes, strides = list(shape), [prod(shape[i + 1 :]) for i in range(len(shape))]
    for i, axis in enumerate(axes):
        size = int(tables[len(shape) + i].number(LevelFields.SIZE, "i"))
        if size < 1 or sizes[axis] % size:
            raise damaged_file(f"a sparse tensor cuts an axis of {sizes[axis]} into blocks of {size}")
        sizes, strides = [*sizes, size], [*strides, strides[axis]]
        sizes[axis], strides[axis] = sizes[axis] // size, strides[axis] * size
    return [Level(tables[axis], sizes[axis], strides[axis]) for axis in order.tolist()]


def next_places(level: Level, places: np.ndarray, allowance: Allowance) -> np.ndarray:
    """Return where the indices of a level lie, for those of the levels before."""
    kind = level.table.number(LevelFields.FORMAT, "b")
    if kind == DENSE:
        size = level.table.number(LevelFields.SIZE, "i")
        if size != level.size:
            raise damaged_file(f"a sparse tensor has a dense level of {size} indices, not {level.size}")
        charge(places.size * level.size, allowance)
        return (places[:, None] + np.arange(level.size) * level.stride).reshape(-1)
    if kind != COMPRESSED:
        raise FormatError(f"a sparse tensor has a level of format {kind}. Use dense and compressed ones")
    segments = indices_of(level.table, LevelFields.SEGMENTS_TYPE)
    indices = indices_of(level.table, LevelFields.INDICES_TYPE)
    charge(segments.size + indices.size, allowance)
    counts = np.diff(segments.astype("int64"))
    if segments.size != places.size + 1 or segments[0] or segments[-1] != indices.size or (counts < 0).any():
        raise damaged_file(f"a sparse tensor has {segments.size} segments for {places.size} indices")
    if indices.size and not 0 <= indices.min() <= indices.max() < level.size:
        raise damaged_file(f"a sparse tensor has indices outside a level of {level.size}")
    return np.repeat(places, counts) + indices.astype("int64") * level.stride


def charge(count: int, allowance: Allowance) -> None:
    """Charge the indices of a level: their work, and memory that is in use while the tensor is read."""
    allowance.spend("a level of a sparse tensor", work=count)
    allowance.check("a level of a sparse tensor", INDEX * count, allowance.nbytes, "bytes")


def indices_of(table: Table, field: int) -> np.ndarray:
    """Return a list of indices of a level; `field` is that of its kind, before that of its contents."""
    kind, contents = int(table.number(field, "B")), table.table(field + 1)
    values = None if kind not in KINDS or contents is None else contents.vector(0, KINDS[kind])
    if values is None:
        raise damaged_file("a compressed level of a sparse tensor lacks its segments or indices")
    return values
