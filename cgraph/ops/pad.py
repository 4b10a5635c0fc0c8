"""Padding: constant, edge, reflection."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.calls import boxes_around, copy_calls, fill_calls
from cgraph.kernels.target import Target
from cgraph.ops.join import concat
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import broadcast_to
from cgraph.ops.slicing import Slice, getitem

Pairs = tuple[tuple[int, int], ...]


class Pad(Op):
    """A constant border around the operand.

    Fields
        widths: elements before and after, for each axis, >= 0
        value: the constant, of the operand's dtype
    """

    takes_complex = True

    widths: Pairs
    value: float | int | bool

    def infer(self, x: Spec) -> Spec:
        if len(self.widths) != x.ndim or any(n < 0 for pair in self.widths for n in pair):
            raise ShapeError(f"widths {self.widths} do not fit {x}; pass one pair >= 0 for each of {x.ndim} axes")
        return Spec(tuple(a + n + b for n, (a, b) in zip(x.shape, self.widths)), x.dtype)

    def meaning(self, x):
        return np.pad(x, self.widths, constant_values=np.asarray(self.value, x.dtype))

    def place(self, x: Spec | View) -> Slice:
        """Return the slice of the result that holds the operand."""
        return Slice(tuple(before for before, _ in self.widths), (1,) * len(x.shape), x.shape)

    def work(self, target: Target, x: Spec) -> Work:
        place = self.place(x)

        def calls(out: View, x: View) -> list[Call]:
            sides = boxes_around(out, place.starts, place.lengths)
            filled = [call for side in sides for call in fill_calls(target, side, self.value)]
            return filled + copy_calls(target, place.alias(out), x)

        return Work(calls, strided=True)

    def grad(self, node, g):
        return (apply(self.place(node.operands[0].spec), g),)


@public
def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: float | int | bool = 0) -> Node:
    """Pad the operand, as ``np.pad``.

    Parameters
        pad_width: elements before and after: one number, a pair, or a pair for each axis
        mode: ``constant``, ``edge`` (repeat the outermost element) or ``reflect`` (mirror without the edge)
        constant_values: the value for mode ``constant``
    Raises
        ShapeError: widths do not fit, the mode is unknown, or an axis has no element to repeat
    """
    x = as_node(x)
    widths = pairs(pad_width, x)
    if not any(n for pair in widths for n in pair):
        return x
    if mode == "constant":
        return apply(Pad(widths, np.asarray(constant_values).astype(x.dtype).item()), x)
    if mode not in ("edge", "reflect"):
        raise ShapeError(f"mode={mode!r} is unknown; use 'constant', 'edge' or 'reflect'")
    for axis, (before, after) in enumerate(widths):
        x = (pad_edge if mode == "edge" else pad_reflect)(x, axis, before, after)
    return x


def pairs(pad_width: Any, x: Node) -> Pairs:
    """Return one pair of widths for each axis."""
    try:
        widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2))
    except ValueError:
        raise ShapeError(
            f"pad_width={pad_width} does not fit {x.name} {x.spec}; pass a number, a pair, or a pair for each axis"
        ) from None
    if widths.dtype.kind not in "iu" or (widths < 0).any():
        raise ShapeError(f"pad_width={pad_width} for {x.name} {x.spec} is not valid; pass integers >= 0")
    return tuple((int(a), int(b)) for a, b in widths)


def slice_axis(x: Node, axis: int, index: slice) -> Node:
    """Slice along one axis."""
    return getitem(x, (*[slice(None)] * axis, index))


def pad_edge(x: Node, axis: int, before: int, after: int) -> Node:
    """Repeat the first and the last element."""
    if not before and not after:
        return x
    if not x.shape[axis]:
        raise ShapeError(f"axis {axis} of {x.name} {x.spec} is empty and has no edge; use mode='constant'")

    def wide(index: slice, n: int) -> list[Node]:
        return [broadcast_to(slice_axis(x, axis, index), (*x.shape[:axis], n, *x.shape[axis + 1 :]))] if n else []

    return concat([*wide(slice(0, 1), before), x, *wide(slice(-1, None), after)], axis)


def pad_reflect(x: Node, axis: int, before: int, after: int) -> Node:
    """Mirror at the first and the last element, repeatedly if there are too few."""
    if not before and not after:
        return x
    n = x.shape[axis]
    if not n:
        raise ShapeError(f"axis {axis} of {x.name} {x.spec} is empty and has nothing to reflect; use mode='constant'")
    if n == 1:
        return pad_edge(x, axis, before, after)
    left, right = min(before, n - 1), min(after, n - 1)
    parts: Sequence[Node] = (
        *([slice_axis(x, axis, slice(left, 0, -1))] if left else []),
        x,
        *([slice_axis(x, axis, slice(-2, -2 - right, -1))] if right else []),
    )
    return pad_reflect(concat(list(parts), axis), axis, before - left, after - right)
