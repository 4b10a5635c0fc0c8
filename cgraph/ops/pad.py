"""Padding: constant, repeated edge, reflected."""

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
    """One number around the operand.

    Fields
        widths: elements before and behind, for each axis, >= 0
        value: the number, of the operand's dtype
    """

    takes_complex = True

    widths: Pairs
    value: float | int | bool

    def infer(self, x: Spec) -> Spec:
        if len(self.widths) != x.ndim or any(n < 0 for pair in self.widths for n in pair):
            raise ShapeError(f"widths {self.widths} must be one pair >= 0 for each of {x.ndim} axes")
        return Spec(tuple(a + n + b for n, (a, b) in zip(x.shape, self.widths)), x.dtype)

    def meaning(self, x):
        return np.pad(x, self.widths, constant_values=np.asarray(self.value, x.dtype))

    def place(self, x: Spec | View) -> Slice:
        """Where the operand lies in the result."""
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
    """More elements around the operand, as ``np.pad``.

    Parameters
        pad_width: one number, a pair, or a pair for each axis: elements before and behind
        mode: ``constant``, ``edge`` (the outermost element again) or ``reflect`` (mirrored, without the edge)
        constant_values: the one number of mode ``constant``
    Raises
        ShapeError: widths that do not fit, a mode that there is not, or nothing to repeat along an axis
    """
    x = as_node(x)
    widths = pairs(pad_width, x)
    if not any(n for pair in widths for n in pair):
        return x
    if mode == "constant":
        return apply(Pad(widths, np.asarray(constant_values).astype(x.dtype).item()), x)
    if mode not in ("edge", "reflect"):
        raise ShapeError(f"there is no mode {mode!r}; use 'constant', 'edge' or 'reflect'")
    for axis, (before, behind) in enumerate(widths):
        x = (pad_edge if mode == "edge" else pad_reflect)(x, axis, before, behind)
    return x


def pairs(pad_width: Any, x: Node) -> Pairs:
    """One pair for each axis."""
    try:
        widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2))
    except ValueError:
        raise ShapeError(f"widths {pad_width} do not fit {x.name} {x.spec}") from None
    if widths.dtype.kind not in "iu" or (widths < 0).any():
        raise ShapeError(f"widths {pad_width} of {x.name} {x.spec} must be whole numbers >= 0")
    return tuple((int(a), int(b)) for a, b in widths)


def slice_axis(x: Node, axis: int, index: slice) -> Node:
    return getitem(x, (*[slice(None)] * axis, index))


def pad_edge(x: Node, axis: int, before: int, behind: int) -> Node:
    """The first and last element repeated."""
    if not before and not behind:
        return x
    if not x.shape[axis]:
        raise ShapeError(f"axis {axis} of {x.name} {x.spec} has no edge")

    def wide(index: slice, n: int) -> list[Node]:
        return [broadcast_to(slice_axis(x, axis, index), (*x.shape[:axis], n, *x.shape[axis + 1 :]))] if n else []

    return concat([*wide(slice(0, 1), before), x, *wide(slice(-1, None), behind)], axis)


def pad_reflect(x: Node, axis: int, before: int, behind: int) -> Node:
    """Mirrored at the first and last element; again, when there are not enough."""
    if not before and not behind:
        return x
    n = x.shape[axis]
    if not n:
        raise ShapeError(f"axis {axis} of {x.name} {x.spec} has nothing to reflect")
    if n == 1:
        return pad_edge(x, axis, before, behind)
    left, right = min(before, n - 1), min(behind, n - 1)
    parts: Sequence[Node] = (
        *([slice_axis(x, axis, slice(left, 0, -1))] if left else []),
        x,
        *([slice_axis(x, axis, slice(-2, -2 - right, -1))] if right else []),
    )
    return pad_reflect(concat(list(parts), axis), axis, before - left, behind - right)
