"""``x.at[i].set(v)`` and the like: a new value with some elements replaced or combined, as in JAX."""

from typing import Any

import numpy as np

from cgraph.errors import DTypeError
from cgraph.ir.graph import Node, locates_errors
from cgraph.numpy.assign import is_mask, with_item
from cgraph.ops.arithmetic import add, maximum, minimum, multiply
from cgraph.ops.compare import where
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import arange, broadcast_to, reshape
from cgraph.ops.slicing import getitem, is_array_index
from cgraph.ops.take import scatter

COMBINE: dict[str, Any] = {"add": add, "multiply": multiply, "min": minimum, "max": maximum}


class At:
    """The attribute ``at`` of a node or traced array; indexing it selects the elements to update.

    Fields
        x: the node
    """

    __slots__ = ("x",)

    def __init__(self, x: Node) -> None:
        self.x = x

    def __repr__(self) -> str:
        return f"<at of {self.x!r}>"

    def __getitem__(self, index: Any) -> "Elements":
        return Elements(self.x, index)


class Elements:
    """Elements of a node selected by an index. The methods return a new value; the node does not change.

        x = cg.Var((3,), name="x")
        y = x.at[0].set(5).at[[1, 1]].add(2)  # [5, x[1] + 4, x[2]]

    The index takes integers, slices, integer arrays, and one mask with the shape of the first axes. Values broadcast
    and take the dtype of `x`. Of equal positions, `set` keeps the last value and the other methods combine all.
    An index outside its axis is an error, unlike in JAX.

    Fields
        x: the node
        index: as in ``x[index]``
    """

    __slots__ = ("index", "x")

    def __init__(self, x: Node, index: Any) -> None:
        self.x, self.index = x, index

    def __repr__(self) -> str:
        return f"<elements {self.index!r} of {self.x!r}; .get() returns them, .set(value) replaces them>"

    def get(self) -> Node:
        """Return the elements, ``x[index]``."""
        return getitem(self.x, self.index)

    def set(self, value: Any) -> Node:
        """Return `x` after ``x[index] = value``."""
        return with_item(self.x, self.index, value)

    def add(self, value: Any) -> Node:
        """Return `x` with the value added to the elements, as by ``np.add.at``."""
        return with_update(self.x, self.index, value, "add")

    def multiply(self, value: Any) -> Node:
        """Return `x` with the elements multiplied by the value, as by ``np.multiply.at``."""
        return with_update(self.x, self.index, value, "multiply")

    def min(self, value: Any) -> Node:
        """Return `x` with the smaller of each element and the value, as by ``np.minimum.at``."""
        return with_update(self.x, self.index, value, "min")

    def max(self, value: Any) -> Node:
        """Return `x` with the larger of each element and the value, as by ``np.maximum.at``."""
        return with_update(self.x, self.index, value, "max")


@locates_errors
def with_update(x: Node, index: Any, value: Any, how: str) -> Node:
    """Return `x` with its elements at an index combined with a value.

    Raises
        DTypeError: the value's dtype does not go into that of `x`, such as float into integers
        ShapeError: the value does not fit
    """
    value, combine = as_node(value, x.dtype), COMBINE[how]
    if not np.can_cast(value.dtype, x.dtype, "same_kind"):
        raise DTypeError(f"{value.dtype} does not go into {x.name} {x.spec}; use value.astype({str(x.dtype)!r})")
    parts = index if isinstance(index, tuple) else (index,)
    masks = [part for part in parts if is_mask(part)]
    if masks:
        combined = combine(x, with_item(x, index, value)).astype(x.dtype)
        mask = masks[0]
        return where(reshape(mask, (*mask.shape, *[1] * (x.ndim - mask.ndim))), combined, x)
    if not any(map(is_array_index, parts)):
        return with_item(x, index, combine(getitem(x, index), value))
    positions = getitem(reshape(arange(x.size), x.shape), index)
    flat = scatter(reshape(x, (x.size,)), positions, broadcast_to(value.astype(x.dtype), positions.shape), how)
    return reshape(flat, x.shape)
