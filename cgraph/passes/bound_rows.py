"""Passes on values of whose rows only the first ones count: `sink_prefixes`, then `bound_rows` on the lowered graph."""

from cgraph.ir.graph import Node, apply
from cgraph.ir.origin import ORIGIN, keeps_origin
from cgraph.ir.rewrite import rewrite, with_new_operands
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import post_order
from cgraph.ops.join import Concat
from cgraph.ops.physical.first_rows import FirstRows
from cgraph.ops.prefix import Prefix
from cgraph.ops.shape import ViewOp

SMALL = 1 << 15  # bytes of a step's rows, and multiply-adds: below, computing all rows costs less than choosing


def sink_prefixes(outputs: tuple[Node, ...]) -> Roots:
    """op(prefix(x, n)) -> op(x), where no user of the op reads more than n rows: same rows, fewer nodes.

    What is computed row by row is thus one run of ops, which other passes fuse; a prefix stays behind the last one.
    """
    graph = Roots.of(outputs)
    if not graph.has(Prefix):
        return graph
    counts = rows_read(graph)

    def change(node: Node, new: New) -> Node:
        pairs = zip(node.operands, rows_of_operands(node, counts.get(node)))
        return with_new_operands(node, tuple([new[bare(x, count)] for x, count in pairs]))

    return rebuild(graph, change)


@keeps_origin
def bound_rows(outputs: tuple[Node, ...]) -> Roots:
    """op(x) -> first_rows(op)(x, n), where nobody reads more than n rows of the result: same first rows.

    Prefixes have done their work and go: a step that reads one need not wait for its count. A count never depends on a
    value that it bounds: what it is computed from is read whole, or up to another count.
    """
    graph = Roots.of(outputs)
    if not graph.has(Prefix):
        return graph
    bounds = counts_of_steps(graph)
    new: dict[Node, Node] = {}
    for node in post_order(graph, {x: [n] for x, n in bounds.items()}):
        ORIGIN.set(node.origin)
        operands = tuple([new[x] for x in node.operands])
        if isinstance(node.op, Prefix):
            new[node] = operands[0]
        elif node in bounds:
            new[node] = apply(FirstRows(node.op), *operands, new[bounds[node]])
        else:
            new[node] = with_new_operands(node, operands)
    return Roots([new[x] for x in graph])


def drop_prefixes(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """prefix(x, n) -> x: all rows are computed."""
    return rewrite(outputs, [(Prefix, lambda node: node.operands[0])])


def rows_read(graph: Roots) -> dict[Node, Node | None]:
    """Return for each node the number of its rows that users read, a node; None if they may read all of them."""
    counts: dict[Node, Node | None] = dict.fromkeys(graph.ends)
    for node in reversed(graph.order):
        for x, count in zip(node.operands, rows_of_operands(node, counts.get(node))):
            counts[x] = count if counts.setdefault(x, count) is count else None
    return counts


def rows_of_operands(node: Node, rows: Node | None) -> list[Node | None]:
    """Return the number of rows that a node reads of each operand, if its users read `rows` rows of it."""
    if isinstance(node.op, Prefix):
        return [node.operands[1], None]
    rule = None if rows is None else rule_of(node)
    return [rows if rule and i in rule.operands else None for i in range(len(node.operands))]


def rule_of(node: Node) -> RowRule | None:
    """Return how the first rows of a node are computed; None if it has to run whole."""
    specs = [x.spec for x in node.operands]
    if any(isinstance(spec, Bundle) for spec in (node.spec, *specs)) or not node.ndim or not node.shape[0]:
        return None
    return node.op.row_rule(*specs)


def bare(x: Node, count: Node | None) -> Node:
    """Return the operand of a prefix of that count; any other node unchanged."""
    while count is not None and isinstance(x.op, Prefix) and x.operands[1] is count:
        x = x.operands[0]
    return x


def counts_of_steps(graph: Roots) -> dict[Node, Node]:
    """Return the counts of the nodes that are steps worth bounding.

    A small step is bounded only if it can fail at a row that a bounded step has left unwritten. A concat never is: its
    operands are computed in place where they end up.
    """
    counts, bounds = rows_read(graph), {}
    unwritten: set[Node] = set()  # nodes whose rows beyond the count may hold anything
    for node in graph.order:
        rule, count = rule_of(node), counts.get(node)
        by_rows = (0,) if isinstance(node.op, Prefix) else rule.operands if rule else ()
        is_loose = any(x in unwritten for i, x in enumerate(node.operands) if i in by_rows)
        if rule and count is not None and is_step(node) and (is_large(node, rule) or (node.op.can_fail and is_loose)):
            bounds[node] = count
        if is_loose or node in bounds:
            unwritten.add(node)
    return bounds


def is_step(node: Node) -> bool:
    return not isinstance(node.op, ViewOp | Concat) and node.shape[0] > 1


def is_large(node: Node, rule: RowRule) -> bool:
    """Return True if computing all rows costs more than choosing: the bytes of rows, or multiply-adds, are many."""
    nbytes = node.nbytes + sum(x.nbytes for i, x in enumerate(node.operands) if i in rule.operands)
    return max(nbytes, node.op.multiply_adds(*[x.spec for x in node.operands])) >= SMALL
