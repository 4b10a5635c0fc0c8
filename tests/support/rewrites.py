"""What holds of any pass: over random graphs, and over graphs made by hand where it must, or must not, fire."""

from collections import Counter
from collections.abc import Callable, Sequence

from cgraph.engine.reference import evaluate
from cgraph.ir.graph import Node
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import Var
from cgraph.ops.shape import BroadcastTo
from tests.support.graphs import Drawn, draw_values
from tests.support.tolerance import assert_close

Rewrite = Callable[[tuple], tuple]


def assert_keeps_values(rewrite: Rewrite, drawn: Drawn) -> None:
    """Rewritten outputs have the values of the graph as it is drawn."""
    values = dict(zip(drawn.leaves, draw_values(drawn.leaves)))
    for got, want in zip(evaluate(rewrite(tuple(drawn.outputs)), values), evaluate(drawn.outputs, values)):
        assert_close(got, want)


def assert_leaves_nothing(rewrite: Rewrite, drawn: Drawn) -> None:
    """Rewriting once more changes nothing."""
    once = rewrite(tuple(drawn.outputs))
    assert all(a is b for a, b in zip(rewrite(once), once))


def assert_left(rewrite: Rewrite, *outputs: Node) -> None:
    """The pass leaves a graph as it is: the very same nodes."""
    assert all(a is b for a, b in zip(rewrite(outputs), outputs))


def assert_same_values(rewrite: Rewrite, *outputs: Node) -> None:
    """Rewritten outputs have the values of these, whatever the Vars hold."""
    leaves = [x for x in post_order(outputs) if isinstance(x, Var)]
    values = dict(zip(leaves, draw_values(leaves)))
    for got, want in zip(evaluate(rewrite(outputs), values), evaluate(outputs, values)):
        assert_close(got, want)


def ops_of(outputs: Sequence[Node]) -> Counter[str]:
    """How many nodes of each op a graph has, leaves and broadcasts left out."""
    return Counter(n.op.name for n in post_order(outputs) if n.operands and not isinstance(n.op, BroadcastTo))
