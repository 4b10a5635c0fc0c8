"""Every op's gradient has the form that `gradient` takes: one for each operand, of its spec, or none."""

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


@pytest.mark.parametrize("case", [c for c in CASES if not c.smooth], ids=str)
def test_an_op_whose_gradients_nobody_compares_has_them_in_form(case):
    drawn = Drawn(case)
    for node in computing(values_of(nodes_of(drawn, False), drawn.given)):
        if node.op.pure and any(x.dtype.kind in "fc" for x in node.operands if not isinstance(x.spec, Bundle)):
            assert not form_of(node)
