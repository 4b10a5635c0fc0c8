"""``x.at[i].set(v)`` and the like: a new value with some elements replaced or combined, as in JAX."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.errors import DTypeError
from cgraph.ir.graph import Node, locates_errors
from cgraph.numpy.assign import is_mask, with_item
from cgraph.ops.arithmetic import add, maximum, minimum, multiply, negative, true_divide
from cgraph.ops.compare import where
from cgraph.ops.leaf import as_node
from cgraph.ops.power import power
from cgraph.ops.shape import arange, broadcast_to, ones_like, reshape
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

    def subtract(self, value: Any) -> Node:
        """Return `x` with the value subtracted from the elements, as by ``np.subtract.at``."""
        return difference(self.x, self.index, value)

    def multiply(self, value: Any) -> Node:
        """Return `x` with the elements multiplied by the value, as by ``np.multiply.at``."""
        return with_update(self.x, self.index, value, "multiply")

    def divide(self, value: Any) -> Node:
        """Return `x` with the elements divided by the value; equal positions by the product of their values.

        DTypeError for integers, as from ``np.divide.at``.
        """
        return quotient(self.x, self.index, value)

    def power(self, value: Any) -> Node:
        """Return `x` with the elements raised to the value; equal positions to the product of their values."""
        return raised(self.x, self.index, value)

    def apply(self, function: Callable[[Any], Any]) -> Node:
        """Return `x` with ``function(elements)`` in place of the elements: once, also where positions are equal.

        With a mask the function is computed for all elements, and its results are used where the mask is True.
        """
        parts = self.index if isinstance(self.index, tuple) else (self.index,)
        if any(getattr(part, "dtype", None) == np.bool_ for part in parts):
            return with_mask(self.x, self.index, function(self.x))
        return self.set(function(self.get()))

    def min(self, value: Any) -> Node:
        """Return `x` with the smaller of each element and the value, as by ``np.minimum.at``."""
        return with_update(self.x, self.index, value, "min")

    def max(self, value: Any) -> Node:
        """Return `x` with the larger of each element and the value, as by ``np.maximum.at``."""
        return with_update(self.x, self.index, value, "max")


@locates_errors
def difference(x: Node, index: Any, value: Any) -> Node:
    """Return `x` less the value at an index."""
    return with_update(x, index, negative(as_node(value, x.dtype)), "add")


@locates_errors
def raised(x: Node, index: Any, value: Any) -> Node:
    """Return `x` raised to the value at an index."""
    return power(x, with_update(ones_like(x), index, fitting(value, x), "multiply"))


@locates_errors
def quotient(x: Node, index: Any, value: Any) -> Node:
    """Return `x` divided by the value at an index. DTypeError if `x` has integers."""
    if x.dtype.kind not in "fc":
        raise DTypeError(f"a quotient is not an integer, and {x.name} is {x.spec}; use x.astype('float64')")
    return true_divide(x, with_update(ones_like(x), index, fitting(value, x), "multiply"))


def fitting(value: Any, x: Node) -> Node:
    """Return a value as a node. DTypeError if it is of another kind than `x`, such as float for integers."""
    value = as_node(value, x.dtype)
    if not np.can_cast(value.dtype, x.dtype, "same_kind"):
        raise DTypeError(f"{value.dtype} does not go into {x.name} {x.spec}; use value.astype({str(x.dtype)!r})")
    return value


@locates_errors
def with_mask(x: Node, index: Any, value: Any) -> Node:
    """Return the value where the mask of the index is True, else `x`; both have one shape."""
    mask = as_node(index[0] if isinstance(index, tuple) else index)
    return where(reshape(mask, (*mask.shape, *[1] * (x.ndim - mask.ndim))), as_node(value).astype(x.dtype), x)


@locates_errors
def with_update(x: Node, index: Any, value: Any, how: str) -> Node:
    """Return `x` with its elements at an index combined with a value.

    Raises
        DTypeError: the value's dtype does not go into that of `x`, such as float into integers
        ShapeError: the value does not fit
    """
    value, combine = fitting(value, x), COMBINE[how]
    parts = index if isinstance(index, tuple) else (index,)
    if any(map(is_mask, parts)):
        return with_mask(x, index, combine(x, with_item(x, index, value)))
    if not any(map(is_array_index, parts)):
        return with_item(x, index, combine(getitem(x, index), value))
    positions = getitem(reshape(arange(x.size), x.shape), index)
    flat = scatter(reshape(x, (x.size,)), positions, broadcast_to(value.astype(x.dtype), positions.shape), how)
    return reshape(flat, x.shape)
