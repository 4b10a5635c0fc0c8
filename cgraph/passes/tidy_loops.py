"""Loops that compute once what several ask of them, and nothing else; their bodies rewritten like any graph."""

from typing import Any

from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ir.traverse import post_order
from cgraph.ops.loop import Body, Loop
from cgraph.ops.shape import Item
from cgraph.passes.drop_identities import drop_identities
from cgraph.passes.fold_constants import fold_constants
from cgraph.passes.fuse_pointwise import fuse_pointwise
from cgraph.record import Record, replace

INSIDE = (fold_constants, drop_identities, fuse_pointwise)


class Tidy(Record):
    """What a loop becomes.

    Fields
        op: the new loop
        operands: positions of those that it still reads
        places: the new position of each result that is asked for
    """

    op: Loop
    operands: tuple[int, ...]
    places: dict[int, int]


def tidy_loops(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Same values, never more rounds: a loop and the one of its gradient, which wants its states too, become one.

    States, sequences and results that nobody asks for are dropped. Not joined: loops that only read the same sequences.
    """
    graph = Roots.of(outputs)
    if not graph.has(Loop):
        return outputs
    asked: dict[tuple, set[int]] = {}
    for node in graph.order:
        if isinstance(node.op, Item) and isinstance(node.operands[0].op, Loop):
            asked.setdefault(key_of(node.operands[0]), set()).add(node.op.index)
    if not asked:
        return outputs
    loops = {key_of(n): n.op for n in graph.order if isinstance(n.op, Loop)}
    found = {key: tidy(loops[key], wanted) for key, wanted in asked.items()}  # type: ignore[arg-type]

    def change(node: Node, new: New) -> Node | None:
        if isinstance(node.op, Loop):
            made = found[key_of(node)]
            return apply(made.op, *(new[node.operands[i]] for i in made.operands))
        if isinstance(node.op, Item) and isinstance(node.operands[0].op, Loop):
            return apply(Item(found[key_of(node.operands[0])].places[node.op.index]), new[node.operands[0]])
        return None

    return rebuild(graph, change)


def key_of(loop: Node) -> tuple:
    """Equal for loops that differ at most in giving their states."""
    op: Any = loop.op
    return (replace(op, states=False), *map(id, loop.operands))


def tidy(op: Loop, wanted: set[int]) -> Tidy:
    """The loop with those results alone, numbered as if it gave its states."""
    body, ends = op.body, len(op.body.carry)
    behind = ends + len(body.ys)
    ys = [i for i in range(len(body.ys)) if ends + i in wanted]
    carry = {i for i in wanted if i < ends} | {i - behind for i in wanted if i >= behind}
    while True:
        read = set(post_order([*(body.next[i] for i in carry), *(body.ys[i] for i in ys)]))
        more = carry | {i for i, x in enumerate(body.carry) if x in read}
        if more == carry:
            break
        carry = more
    kept = sorted(carry)
    made = body_of(body, kept, ys, read)
    operands = [i for i, x in enumerate(body.inputs) if x in read or i in carry]
    numbers = [*kept, *(ends + i for i in ys), *(behind + i for i in kept)]
    states = any(i >= behind for i in wanted)
    same = made is body and states == op.states
    new = op if same else replace(op, body=made, states=states)
    return Tidy(new, tuple(operands), {old: i for i, old in enumerate(numbers)})


def body_of(body: Body, carry: list[int], ys: list[int], read: set[Node]) -> Body:
    """The body with these results, rewritten; itself when nothing changes."""
    roots = tuple(body.next[i] for i in carry) + tuple(body.ys[i] for i in ys)
    for rewrite in (*INSIDE, tidy_loops):
        roots = rewrite(roots)
    made = Body(
        tuple(body.carry[i] for i in carry),
        tuple(x for x in body.xs if x in read),
        tuple(x for x in body.shared if x in read),
        roots[: len(carry)],
        roots[len(carry) :],
    )
    pairs = zip((*made.inputs, *made.results), (*body.inputs, *body.results))
    alike = len(made.inputs) == len(body.inputs) and len(made.results) == len(body.results)
    return body if alike and all(a is b for a, b in pairs) else made
