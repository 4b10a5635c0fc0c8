"""Ragged: a value some of whose axes have a length that is known only when run, in an array of their greatest length.

Along such an axis the first elements, as many as its count says, are the value; what stands behind them means nothing.
So an operator that goes along the axis is given something there that does not matter to it (`filled`), and positions
are never read from behind.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.dynamic.bounds import Length, LengthBounds, Size, bounds_of_length, most
from cgraph.ir.graph import Node
from cgraph.record import Record


class Ragged(Record, eq=False):
    """A value with axes of open length.

    Fields
        node: an array as large as the value can be
        counts: per such axis, how many of its elements are the value's
    """

    node: Node
    counts: Mapping[int, Size]

    @property
    def ndim(self) -> int:
        return self.node.ndim

    @property
    def dtype(self) -> np.dtype:
        return self.node.dtype

    @property
    def text(self) -> str:
        """``float32[≤8,4]``."""
        sizes = (f"≤{n}" if a in self.counts else str(n) for a, n in enumerate(self.node.shape))
        return f"{self.dtype}[{','.join(sizes)}]"


Array = Node | Ragged


def node_in(x: Array) -> Node:
    """The array of a value, at its greatest length."""
    return x.node if isinstance(x, Ragged) else x


def counts_of(x: Array) -> dict[int, Size]:
    """The axes of open length."""
    return dict(x.counts) if isinstance(x, Ragged) else {}


def lengths_of(x: Array) -> list[Length]:
    """The true length of each axis."""
    counts = counts_of(x)
    return [counts.get(axis, n) for axis, n in enumerate(node_in(x).shape)]


def with_lengths(node: Node, lengths: Mapping[int, Length]) -> Array:
    """A value in an array, whose axes have these lengths: cut where they, or a maximum of them, are known by now."""
    for axis, length in lengths.items():
        low, high = bounds_of_length(length)
        if low > node.shape[axis]:
            raise FormatError(f"axis {axis} has {low:.0f} elements where there is room for {node.shape[axis]}")
        node = part_of_axis(node, axis, slice(0, max(int(min(high, node.shape[axis])), 0)))
    counts = {
        axis: Size(length.node, max(length.low, 0), node.shape[axis])
        for axis, length in sorted(lengths.items())
        if isinstance(length, Size)
    }
    return Ragged(node, counts) if counts else node


def part_of_axis(x: Node, axis: int, part: Any) -> Node:
    """A part of an axis, and all of the others."""
    return x[(*[slice(None)] * axis, part)]


def resize_axis(x: Node, axis: int, n: int) -> Node:
    """With n elements along an axis: the first ones, or zeros behind the last."""
    m = x.shape[axis]
    if n <= m:
        return part_of_axis(x, axis, slice(0, n))
    return cg.pad(x, [(0, n - m if a == axis else 0) for a in range(x.ndim)])


def steps_along(limits: LengthBounds, shape: Sequence[int], axis: int) -> Node:
    """0, 1, 2 … along an axis, which broadcasts to a shape."""
    return cg.reshape(limits.steps(shape[axis]), (-1, *[1] * (len(shape) - 1 - axis)))


def valid_mask(limits: LengthBounds, x: Ragged, axes: Sequence[int] | None = None) -> Node:
    """Where an array holds the value, by the counts of all its axes or of some; broadcasts to it."""
    mask: Any = None
    for axis, count in x.counts.items():
        if axes is None or axis in axes:
            within = cg.less(steps_along(limits, x.node.shape, axis), count.node)
            mask = within if mask is None else cg.logical_and(mask, within)
    return mask


def fill_padding(limits: LengthBounds, x: Array, fill: Any, axes: Sequence[int] | None = None) -> Node:
    """The array with one number behind the value, along all axes of open length or some."""
    if not isinstance(x, Ragged) or (axes is not None and not set(axes) & set(x.counts)):
        return node_in(x)
    return cg.where(valid_mask(limits, x, axes), x.node, np.asarray(fill, x.dtype))


def common_length(limits: LengthBounds, lengths: Sequence[Length], text: str) -> Length:
    """The length that axes which lie beside one another have; checked when run where it is not known to be one."""
    fixed = [n for n in lengths if isinstance(n, int)]
    first = fixed[0] if fixed else lengths[0]
    for n in lengths:
        limits.check_equal(n, first, text)
    return first if fixed else min((n for n in lengths), key=most)


def broadcast_lengths(limits: LengthBounds, values: Sequence[Array], text: str) -> tuple[list[Node], dict[int, Length]]:
    """Arrays of values that broadcast to one another, cut to fit, and the lengths that their result's axes have.

    An axis of open length is not one that is repeated: its length, when run, is that of the axes beside it.
    """
    rank = max(x.ndim for x in values)
    pairs = [(node_in(x), lengths_of(x)) for x in values]
    lengths: dict[int, Length] = {}
    for axis in range(rank):
        places = [(i, axis - rank + x.ndim) for i, x in enumerate(values)]
        wide = [(i, a) for i, a in places if a >= 0 and pairs[i][1][a] != 1]
        if not any(isinstance(pairs[i][1][a], Size) for i, a in wide):
            continue
        length = common_length(limits, [pairs[i][1][a] for i, a in wide], text)
        room = length if isinstance(length, int) else min(pairs[i][0].shape[a] for i, a in wide)
        for i, a in wide:
            pairs[i] = resize_axis(pairs[i][0], a, room), pairs[i][1]
        lengths[axis] = length
    return [node for node, _ in pairs], lengths


def apply_maximum(limits: LengthBounds, name: str, x: Any) -> Any:
    """A value as the user's maximum for its name has it, which a run checks; one that an operator has seen to is left.

    Raises
        FormatError: it holds no numbers, and not one axis of it is of open length
    """
    if name not in limits.maximum or name in limits.used:
        return x
    most = limits.maximum[name]
    limits.used.add(name)
    text = f"maximum gives {most} for {name!r}"
    if isinstance(x, Ragged) and len(x.counts) == 1:
        ((axis, count),) = x.counts.items()
        limits.check(cg.less_equal(count.node, most), f"{text}; it has more elements along axis {axis}")
        limits.at_most(count.node, most)
        return with_lengths(x.node, {axis: Size(count.node, count.low, min(count.high, most))})
    if not isinstance(x, Node) or x.dtype.kind not in "iuf" or not x.size:
        raise FormatError(f"{text}, which holds no numbers, nor has it one axis of a length known only when run")
    limits.check(cg.less_equal(cg.max(x), most), f"{text}; it is larger")
    limits.at_most(x, most)
    return x
