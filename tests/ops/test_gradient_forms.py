"""Every op's gradient has the form that `gradient` takes: one for each operand, of its spec, or none."""

from collections.abc import Iterator

import numpy as np
import pytest

from cgraph.errors import NoGradientError
from cgraph.ir.graph import Node
from cgraph.ir.spec import Bundle
from cgraph.ops.leaf import Const
from tests.ops.cases import CASES
from tests.ops.test_cases import Drawn, nodes_of
from tests.support.ops import computing, values_of


def form_of(node: Node) -> list[object] | None:
    """What is wrong with the gradients for a node's operands; None where it has none."""
    specs = node.spec.specs if isinstance(node.spec, Bundle) else [node.spec]
    given = [Const(np.ones(s.shape, s.dtype)) for s in specs]
    try:
        found = node.op.grad(node, tuple(given) if isinstance(node.spec, Bundle) else given[0])
    except NoGradientError:
        return None
    if not isinstance(found, tuple) or len(found) != len(node.operands):
        return [node, found]
    return [(node, g, x) for g, x in zip(found, node.operands) if g is not None and g.spec != x.spec]


def differentiable(nodes: list[Node]) -> Iterator[Node]:
    """One node of each kind of op that has an operand of floats."""
    seen: set[type] = set()
    for node in nodes:
        floats = any(x.dtype.kind in "fc" for x in node.operands if not isinstance(x.spec, Bundle))
        if node.op.pure and floats and type(node.op) not in seen:
            seen.add(type(node.op))
            yield node


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_have_their_form(case):
    """Of those that gradients are made of as well."""
    drawn = Drawn(case)
    for node in differentiable(computing(values_of(nodes_of(drawn, case.smooth), drawn.given))):
        assert not form_of(node)
