"""Indices of ScatterND that are a slice, as exporters of torch write ``x[:, 1:] = y``."""

from collections.abc import Iterator

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ops.join import Concat
from cgraph.ops.leaf import ConstOp
from cgraph.ops.shape import Reshape, unbroadcast


def slice_of(index: Node, shape: tuple[int, ...]) -> tuple[slice, ...] | None:
    """Return the slice of an array of this shape whose elements the indices name in order; None if there is none.

    Parameters
        index: ``[*counts, k]``: of each element its indices along the first k axes
    """
    counts, axes = index.shape[:-1], index.shape[-1]
    if len(counts) != axes or axes > len(shape) or not index.size:
        return None
    starts: list[slice] = []
    for axis, (column, n) in enumerate(zip(columns(index), shape)):
        start = start_of(column, axis, counts)
        if start is None or not -n <= start <= n - counts[axis] or start < 0 < start + counts[axis]:
            return None
        start += n if start < 0 else 0
        starts.append(slice(start, start + counts[axis]))
    return tuple(starts) if len(starts) == axes else None


def columns(index: Node) -> Iterator[np.ndarray]:
    """Yield the indices along each axis, as far as they are known; those of an axis may be broadcast to the counts."""
    if isinstance(index.op, ConstOp):
        yield from np.moveaxis(index.op.array, -1, 0)
        return
    is_joined = isinstance(index.op, Concat) and index.op.axis == index.ndim - 1
    for part in index.operands if is_joined else (index,):
        narrow = unbroadcast(part.operands[0]) if isinstance(part.op, Reshape) else unbroadcast(part)
        has_one = part.shape == (*index.shape[:-1], 1)
        if not has_one or not isinstance(narrow.op, ConstOp):
            return
        source = part.operands[0] if isinstance(part.op, Reshape) else part
        array = narrow.op.array.reshape((1,) * (source.ndim - narrow.ndim) + narrow.shape)
        if source.shape == index.shape[:-1]:
            yield array
        elif source.shape == part.shape:
            yield array[..., 0]
        else:
            return


def start_of(column: np.ndarray, axis: int, counts: tuple[int, ...]) -> int | None:
    """Return the first index along an axis if each next one is 1 more, and the same along the other axes."""
    start = int(column.flat[0])
    along = np.arange(start, start + counts[axis]).reshape(-1, *[1] * (len(counts) - 1 - axis))
    return start if bool((column == along).all()) else None
