"""Detection of rotary positions written with plain ops: slices, a negation, a concatenation, products and a sum."""

from collections.abc import Iterator

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ops.arithmetic import Add, Multiply, Negative, Subtract
from cgraph.ops.join import Concat
from cgraph.ops.physical.rotary import Rotary
from cgraph.ops.shape import Reshape, number_of, reshape
from cgraph.ops.slicing import Slice
from cgraph.passes.patterns import either, is_closed
from cgraph.record import Record, replace


class RowPart(Record, eq=False):
    """Equally spaced elements of each row of a node.

    Fields
        base: the node; its rows are reshaped to `width` elements
        width: of the rows
        start, step, length: along them
    """

    base: Node
    width: int
    start: int
    step: int
    length: int

    def shows(self, other: "RowPart") -> bool:
        """Return True if both are the same elements."""
        numbers = [(w.width, w.start, w.step, w.length) for w in (self, other)]
        return self.base is other.base and numbers[0] == numbers[1]


class Rotation(Record, eq=False):
    """The operands of a rotation: the window of x, and two tables; and the views of x that its nodes read."""

    adjacent: bool
    x: RowPart
    cosines: Node
    sines: Node
    views: tuple[Node, ...]


def fuse_rotary(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Rotary positions -> one op, if no other node reads the values in between: fewer bytes.

    Two forms, each for pairs half a row apart and for adjacent ones: ``x * c + concat(-b, a) * s`` with tables as wide
    as x, and ``concat(a * c - b * s, b * c + a * s)`` with tables of half the width. Values change in the last places.
    Not detected: the second form with other tables for the second elements; products of complex numbers.
    """
    graph = Roots.of(outputs)
    if not graph.has(Concat) or not graph.has(Multiply):
        return outputs

    def change(node: Node, new: New) -> Node | None:
        if not isinstance(node.op, Add | Concat | Reshape) or node.dtype.kind != "f" or not node.ndim:
            return None
        for r in (*turned_sums(node), *joined_parts(node)):
            if is_closed(graph, node, (*r.views, r.cosines, r.sines)):
                rows = reshape(new[r.x.base], (*node.shape[:-1], r.x.width))
                x = rows[..., r.x.start :: r.x.step][..., : r.x.length]
                return apply(Rotary(r.adjacent), x, new[r.cosines], new[r.sines])
        return None

    return rebuild(graph, change)


def turned_sums(node: Node) -> Iterator[Rotation]:
    """x * c + concat(-b, a) * s"""
    for first, second in either(node, Add):
        for turned, s in either(second, Multiply):
            adjacent, minus, a = joined_pairs(turned)
            b = None if minus is None else negated(minus)
            if a is None or b is None:
                continue
            window = window_of_pairs(a, b, adjacent)
            for x, c in either(first, Multiply):
                if window is not None and window_of(x).shows(window):
                    yield Rotation(adjacent, window, c, s, (a, b, x))


def joined_parts(node: Node) -> Iterator[Rotation]:
    """concat(a * c - b * s, b * c + a * s)"""
    adjacent, difference, total = joined_pairs(node)
    if difference is None or total is None or not isinstance(difference.op, Subtract):
        return
    for a, c in either(difference.operands[0], Multiply):
        for b, s in either(difference.operands[1], Multiply):
            window = window_of_pairs(a, b, adjacent)
            if window is not None and is_sum_of_products(total, (b, c), (a, s)):
                yield Rotation(adjacent, window, c, s, (a, b))


def is_sum_of_products(node: Node, *pairs: tuple[Node, Node]) -> bool:
    """Return True if the node is the sum of the products of these two pairs, in any order."""
    products = [{p, q} for x in node.operands for p, q in either(x, Multiply)[:1]] if isinstance(node.op, Add) else []
    return len(products) == 2 and all(set(pair) in products for pair in pairs)


def joined_pairs(node: Node) -> tuple[bool, Node | None, Node | None]:
    """Return whether pairs are adjacent, and the nodes whose rows are the first and the second elements of all pairs
    of the rows of this node; None for both if it does not consist of two.
    """
    if is_pair_of_parts(node) and node.op.axis == node.ndim - 1:  # type: ignore[attr-defined]
        return False, node.operands[0], node.operands[1]
    wide = node.operands[0] if isinstance(node.op, Reshape) else node
    parts = [x.operands[0] for x in wide.operands if isinstance(x.op, Reshape)]
    *lead, d = (*node.shape[:-1], node.shape[-1] // 2)
    if not is_pair_of_parts(wide) or len(parts) != 2 or any(x.shape != (*lead, d) for x in parts):
        return False, None, None
    form = (wide.shape, wide.op.axis)  # type: ignore[attr-defined]
    adjacent = form == ((*lead, d, 2), len(lead) + 1)
    is_stack = adjacent or form == ((*lead, 2, d), len(lead))
    return (adjacent, parts[0], parts[1]) if is_stack else (False, None, None)


def is_pair_of_parts(node: Node) -> bool:
    """Return True for two nodes of one shape concatenated."""
    return isinstance(node.op, Concat) and [x.shape for x in node.operands] == [node.operands[0].shape] * 2


def negated(x: Node) -> Node | None:
    """Return y for ``-y`` and ``y * -1``; None for other nodes."""
    if isinstance(x.op, Negative):
        return x.operands[0]
    return next((y for y, c in either(x, Multiply) if number_of(c) == -1), None)


def window_of_pairs(a: Node, b: Node, adjacent: bool) -> RowPart | None:
    """Return the window whose pairs have the first elements `a` and the second elements `b`; None if there is none."""
    first, second = window_of(a), window_of(b)
    step, odd = divmod(first.step, 2 if adjacent else 1)
    expected = replace(first, start=first.start + (step if adjacent else step * first.length))
    if odd or not second.shows(expected):
        return None
    return replace(first, step=step, length=2 * first.length)


def window_of(x: Node) -> RowPart:
    """Return what the rows of a node are of the rows of another one: slices, perhaps of rows reshaped to pairs."""
    w = unstacked(x) or RowPart(x, x.shape[-1], 0, 1, x.shape[-1])
    while isinstance(w.base.op, Slice) and w.base.shape[-1] == w.width and takes_rows(w.base.op, w.base.operands[0]):
        start, step = w.base.op.starts[-1], w.base.op.steps[-1]
        wider = w.base.operands[0]
        w = RowPart(wider, wider.shape[-1], start + w.start * step, w.step * step, w.length)
    return w


def unstacked(x: Node) -> RowPart | None:
    """Return the window of ``y[..., i]`` of pairs ``[..., d, 2]``, and of ``y[..., i, :]`` of ``[..., 2, d]``."""
    part = x.operands[0] if isinstance(x.op, Reshape) else x
    if part is x or not isinstance(part.op, Slice) or part.ndim != x.ndim + 1:
        return None
    pairs, op, (*lead, d) = part.operands[0], part.op, x.shape
    rows = pairs.operands[0] if isinstance(pairs.op, Reshape) else pairs
    base = rows if rows.shape == (*lead, 2 * d) else pairs
    if pairs.shape == (*lead, d, 2) and part.shape == (*lead, d, 1):
        return RowPart(base, 2 * d, op.starts[-1], 2, d)
    if pairs.shape == (*lead, 2, d) and part.shape == (*lead, 1, d) and op.steps[-1] == 1:
        return RowPart(base, 2 * d, op.starts[-2] * d, 1, d)
    return None


def takes_rows(op: Slice, x: Node) -> bool:
    """Return True if a slice takes all rows, each from some element on."""
    return op.lengths[:-1] == x.shape[:-1] and set(op.steps[:-1]) <= {1} and op.steps[-1] > 0
