"""Ragged: a value with axes of dynamic length, stored in an array of their maximum length.

Along such an axis the first `length` elements are the value; the rest is padding with any contents. So an operator that
reduces along the axis gets padding that does not change its result (`fill_padding`), and padding is never read as
indices.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.dynamic.bounds import Length, LengthBounds, Size, bounds_of_length, most
from cgraph.ir.graph import Node
from cgraph.ops.prefix import prefix
from cgraph.ops.shape import Transpose
from cgraph.record import Record

LONG_MASK = 1 << 16  # elements from which on a mask is computed as a matrix
WIDEST, NARROWEST = 4096, 16  # columns of that matrix


class Ragged(Record, eq=False):
    """A value with axes of dynamic length.

    Fields
        node: an array of the maximum lengths
        counts: the length of each dynamic axis
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
    """Return the array of a value, at its maximum lengths."""
    return x.node if isinstance(x, Ragged) else x


def counts_of(x: Array) -> dict[int, Size]:
    """Return the lengths of the dynamic axes, by axis."""
    return dict(x.counts) if isinstance(x, Ragged) else {}


def lengths_of(x: Array) -> list[Length]:
    """Return the length of each axis."""
    counts = counts_of(x)
    return [counts.get(axis, n) for axis, n in enumerate(node_in(x).shape)]


def with_lengths(node: Node, lengths: Mapping[int, Length]) -> Array:
    """Return a value of these lengths in an array, cut where a length or its maximum is known now."""
    for axis, length in lengths.items():
        low, high = bounds_of_length(length)
        if low > node.shape[axis]:
            raise FormatError(
                f"axis {axis} has at least {low:.0f} elements, more than the maximum {node.shape[axis]}: raise maximum="
            )
        node = part_of_axis(node, axis, slice(0, max(int(min(high, node.shape[axis])), 0)))
    counts = {
        axis: Size(length.node, max(length.low, 0), node.shape[axis])
        for axis, length in sorted(lengths.items())
        if isinstance(length, Size)
    }
    if 0 in counts:
        node = prefix(node, counts[0].node)
    return Ragged(node, counts) if counts else node


def part_of_axis(x: Node, axis: int, part: Any) -> Node:
    """Return a slice along one axis."""
    return x[(*[slice(None)] * axis, part)]


def resize_axis(x: Node, axis: int, n: int) -> Node:
    """Return an array with n elements along an axis: cut, or padded with zeros."""
    m = x.shape[axis]
    if n <= m:
        return part_of_axis(x, axis, slice(0, n))
    return cg.pad(x, [(0, n - m if a == axis else 0) for a in range(x.ndim)])


def first_elements(limits: LengthBounds, n: int, count: Node) -> Node:
    """Return a mask ``[n]`` that is true for the first `count` elements.

    Long ones are computed as rows of a matrix, so that no constant is as long.
    """
    columns = 0 if n < LONG_MASK else next(m for m in range(WIDEST, 0, -1) if n % m == 0)
    if columns < NARROWEST:
        return cg.less(limits.steps(n), count)
    left = count - limits.steps(n // columns) * columns  # in each row
    return cg.reshape(cg.less(limits.steps(columns), cg.expand_dims(left, 1)), (n,))


def valid_mask(limits: LengthBounds, x: Ragged, axes: Sequence[int] | None = None) -> Node:
    """Return a mask that is true inside the value, along all dynamic axes or some; it broadcasts to the array."""
    mask: Any = None
    for axis, count in x.counts.items():
        if axes is None or axis in axes:
            within = first_elements(limits, x.node.shape[axis], count.node)
            within = cg.reshape(within, (-1, *[1] * (x.node.ndim - 1 - axis)))
            mask = within if mask is None else cg.logical_and(mask, within)
    return mask


def fill_padding(limits: LengthBounds, x: Array, fill: Any, axes: Sequence[int] | None = None) -> Node:
    """Return the array with padding of one number, along all dynamic axes or some."""
    if not isinstance(x, Ragged) or (axes is not None and not set(axes) & set(x.counts)):
        return node_in(x)
    if np.all(fill == 0) and pads_zeros(limits, x):
        return x.node
    return cg.where(valid_mask(limits, x, axes), x.node, np.asarray(fill, x.dtype))


def pads_zeros(limits: LengthBounds, x: Ragged) -> bool:
    """Return True if the array of a value is known to be zero beyond its lengths; its axes may be transposed."""
    node, counts = x.node, {axis: count.node for axis, count in x.counts.items()}
    while isinstance(node.op, Transpose):
        counts = {node.op.axes[axis]: count for axis, count in counts.items()}
        node = node.operands[0]
    ends = limits.zero_padded.get(node, {})
    return len(ends) == len(counts) and all(ends.get(axis) is count for axis, count in counts.items())


def common_length(limits: LengthBounds, lengths: Sequence[Length], text: str) -> Length:
    """Return the common length of axes; a run checks that they are equal if this is not known now."""
    fixed = [n for n in lengths if isinstance(n, int)]
    first = fixed[0] if fixed else lengths[0]
    for n in lengths:
        limits.check_equal(n, first, text)
    return first if fixed else min((n for n in lengths), key=most)


def cut_to_common(
    limits: LengthBounds, parts: Sequence[tuple[Node, int, Length]], text: str
) -> tuple[list[Node], Length]:
    """Return arrays, each cut along its axis to their common length, and that length."""
    length = common_length(limits, [n for _, _, n in parts], text)
    room = length if isinstance(length, int) else min(x.shape[axis] for x, axis, _ in parts)
    return [resize_axis(x, axis, room) for x, axis, _ in parts], length


def broadcast_lengths(limits: LengthBounds, values: Sequence[Array], text: str) -> tuple[list[Node], dict[int, Length]]:
    """Return arrays of values that broadcast, cut to fit, and the lengths of their result.

    An axis of dynamic length is never repeated: its length at run time must equal that of the other operands.
    """
    rank = max(x.ndim for x in values)
    pairs = [(node_in(x), lengths_of(x)) for x in values]
    lengths: dict[int, Length] = {}
    for axis in range(rank):
        places = [(i, axis - rank + x.ndim) for i, x in enumerate(values)]
        wide = [(i, a) for i, a in places if a >= 0 and pairs[i][1][a] != 1]
        if not any(isinstance(pairs[i][1][a], Size) for i, a in wide):
            continue
        nodes, lengths[axis] = cut_to_common(limits, [(pairs[i][0], a, pairs[i][1][a]) for i, a in wide], text)
        for (i, _), node in zip(wide, nodes):
            pairs[i] = node, pairs[i][1]
    return [node for node, _ in pairs], lengths


def apply_maximum(limits: LengthBounds, name: str, x: Any) -> Any:
    """Apply the user's maximum to a value; a run checks it. In an unrolled loop a name has a value in each round.

    Raises
        FormatError: it neither holds integers nor has exactly one dynamic axis
    """
    if name not in limits.maximum or name in limits.rounds:
        return x
    most = limits.maximum[name]
    limits.used.add(name)
    text = f"maximum gives {most} for {name!r}"
    if isinstance(x, Ragged) and len(x.counts) == 1:
        ((axis, count),) = x.counts.items()
        limits.limit(count.node, most, f"{text}; it has more elements along axis {axis}")
        return with_lengths(x.node, {axis: Size(count.node, count.low, min(count.high, most))})
    if not isinstance(x, Node) or x.dtype.kind not in "iuf" or not x.size:
        raise FormatError(
            f"{text}, which is neither a value of integers nor one with exactly one axis of a length known only at "
            "run time"
        )
    limits.limit(x, most, f"{text}; it is larger")
    return x
