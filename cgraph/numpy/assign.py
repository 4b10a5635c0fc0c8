"""Item assignment as a new value: slices, integer arrays and masks."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, locates_errors
from cgraph.ops.compare import where
from cgraph.ops.family import broadcast
from cgraph.ops.leaf import ConstOp, as_node
from cgraph.ops.shape import broadcast_to, reshape
from cgraph.ops.slicing import getitem, is_array_index, set_slice
from cgraph.ops.take import scatter


@locates_errors
def with_item(x: Node, index: Any, value: Any) -> Node:
    """Return `x` after ``x[index] = value``.

    A mask takes a value that broadcasts along the axes of the mask; of equal positions the last value stays.

    Raises
        DTypeError: the value is complex and `x` is not
        ShapeError: the value does not fit
    """
    value = as_node(value, x.dtype)
    if value.dtype.kind == "c" and x.dtype.kind != "c":
        raise DTypeError(f"a complex value does not go into {x.name} {x.spec}; assign np.real(value)")
    value = without_leading_ones(value.astype(x.dtype))
    parts = index if isinstance(index, tuple) else (index,)
    masks = [part for part in parts if is_mask(part)]
    if masks:
        return with_masked(x, parts, masks[0], value)
    if not any(map(is_array_index, parts)):
        return set_slice(x, index, value)
    positions = getitem(reshape(as_node(np.arange(x.size)), x.shape), index)
    flat = scatter(reshape(x, (x.size,)), positions, broadcast_to(value, positions.shape))
    return reshape(flat, x.shape)


def without_leading_ones(value: Node) -> Node:
    """Return the value without leading axes of length 1, which NumPy ignores in an assignment."""
    shape = value.shape
    while shape and shape[0] == 1:
        shape = shape[1:]
    return reshape(value, shape)


def is_mask(part: Any) -> bool:
    """Return True for an array of booleans whose elements are not constants."""
    return isinstance(part, Node) and part.dtype.kind == "b" and not isinstance(part.op, ConstOp)


def with_masked(x: Node, parts: Sequence[Any], mask: Node, value: Node) -> Node:
    """Return `x` with the value where a mask is True. ShapeError unless the mask is the whole index."""
    if len([part for part in parts if part is not Ellipsis]) != 1 or x.shape[: mask.ndim] != mask.shape:
        raise ShapeError(
            f"a mask {mask.spec} with other indices, or of another shape than {x.name} {x.spec}; "
            "use np.where(mask, value, x) on the part that it selects"
        )
    if value.ndim > x.ndim - mask.ndim:
        raise ShapeError(
            f"{value.spec} gives one value for each True of the mask {mask.spec}, whose number is unknown while the "
            "function is traced; use np.where(mask, values, x) with one value for each element"
        )
    full = reshape(mask, (*mask.shape, *[1] * (x.ndim - mask.ndim)))
    full, value, x = broadcast(full, value, x) if prod(x.shape) else (broadcast_to(full, x.shape), x, x)
    return where(full, value, x)
