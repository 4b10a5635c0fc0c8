"""What holds of any pass over random graphs."""

from collections.abc import Callable

from cgraph.engine.reference import evaluate
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
