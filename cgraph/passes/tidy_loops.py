"""Simplification of loops: equal loops merged, unused results dropped, bodies rewritten like any graph."""

from typing import Any

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ir.traverse import post_order
from cgraph.ops.conditional import Conditional
from cgraph.ops.loop import Body, Loop
from cgraph.ops.shape import Item
from cgraph.ops.while_loop import WhileLoop
from cgraph.passes.drop_identities import drop_identities
from cgraph.passes.fold_constants import fold_constants
from cgraph.passes.fuse_pointwise import fuse_pointwise
from cgraph.passes.loop_bodies import in_bodies
from cgraph.passes.multiply_powers import multiply_powers
from cgraph.record import Record, replace

INSIDE = (fold_constants, multiply_powers, drop_identities, fuse_pointwise)


class Tidy(Record):
    """A loop after the pass.

    Fields
        op: the new loop
        operands: positions of the operands that it still reads
        places: the new position of each result that is read
    """

    op: Loop
    operands: tuple[int, ...]
    places: dict[int, int]

    def then(self, later: "Tidy") -> "Tidy":
        """Return the loop after this one has been tidied once more."""
        places = {old: later.places[i] for old, i in self.places.items() if i in later.places}
        return Tidy(later.op, tuple([self.operands[i] for i in later.operands]), places)


def tidy_loops(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Merge loops that differ only in returning their states: same values, never more rounds.

    Drop states, sequences and results without a reader. Rewrite all bodies, also those of other loops and of branches.
    Not joined: loops that only read the same sequences.
    """
    graph = Roots.of(outputs)
    if graph.has(WhileLoop, Conditional):
        graph = in_bodies(graph, simplify, (WhileLoop, Conditional))
    if not graph.has(Loop):
        return graph
    asked: dict[tuple, set[int]] = {}
    for node in graph.order:
        if isinstance(node.op, Item) and isinstance(node.operands[0].op, Loop):
            asked.setdefault(key_of(node.operands[0]), set()).add(node.op.index)
    if not asked:
        return graph
    loops = {key_of(n): n.op for n in graph.order if isinstance(n.op, Loop)}
    tidied = {key: tidy(loops[key], indices) for key, indices in asked.items()}  # type: ignore[arg-type]

    def change(node: Node, new: New) -> Node | None:
        if isinstance(node.op, Loop):
            tidy_loop = tidied[key_of(node)]
            return apply(tidy_loop.op, *(new[node.operands[i]] for i in tidy_loop.operands))
        if isinstance(node.op, Item) and isinstance(node.operands[0].op, Loop):
            return apply(Item(tidied[key_of(node.operands[0])].places[node.op.index]), new[node.operands[0]])
        return None

    return rebuild(graph, change)


def simplify(roots: tuple[Node, ...]) -> tuple[Node, ...]:
    """Rewrite the results of a body."""
    for rewrite in (*INSIDE, tidy_loops):
        roots = rewrite(roots)
    return roots


def key_of(loop: Node) -> tuple:
    """Return a key that is equal for loops that differ at most in returning their states."""
    op: Any = loop.op
    return (replace(op, states=False), *map(id, loop.operands))


def tidy(op: Loop, indices: set[int]) -> Tidy:
    """Return the loop with only those results, numbered as if it returned its states."""
    body, ends = op.body, len(op.body.carry)
    behind = ends + len(body.ys)
    ys = [i for i in range(len(body.ys)) if ends + i in indices]
    carry = {i for i in indices if i < ends} | {i - behind for i in indices if i >= behind}
    while True:
        read = set(post_order([*(body.next[i] for i in carry), *(body.ys[i] for i in ys)]))
        more = carry | {i for i, x in enumerate(body.carry) if x in read}
        if more == carry:
            break
        carry = more
    carried = sorted(carry)
    smaller = body_of(body, carried, ys, read)
    operands = [i for i, x in enumerate(body.inputs) if x in read or i in carry]
    numbers = [*carried, *(ends + i for i in ys), *(behind + i for i in carried)]
    states = any(i >= behind for i in indices)
    same = smaller is body and states == op.states
    new = op if same else replace(op, body=smaller, states=states)
    tidied = Tidy(new, tuple(operands), {old: i for i, old in enumerate(numbers)})
    left = set(post_order(new.body.results))
    if all(x in left for x in new.body.inputs if x in read):
        return tidied
    return tidied.then(tidy(new, {tidied.places[i] for i in indices}))  # the body no longer reads some input


def body_of(body: Body, carry: list[int], ys: list[int], read: set[Node]) -> Body:
    """Return the body with these results, rewritten; the same body if nothing changes."""
    roots = tuple(body.next[i] for i in carry) + tuple(body.ys[i] for i in ys)
    roots = simplify(roots)
    smaller = Body(
        tuple(body.carry[i] for i in carry),
        tuple(x for x in body.xs if x in read),
        tuple(x for x in body.shared if x in read),
        roots[: len(carry)],
        roots[len(carry) :],
    )
    pairs = zip((*smaller.inputs, *smaller.results), (*body.inputs, *body.results))
    alike = len(smaller.inputs) == len(body.inputs) and len(smaller.results) == len(body.results)
    return body if alike and all(a is b for a, b in pairs) else smaller
