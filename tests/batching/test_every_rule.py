"""Every op with a rule, in nodes of `tests/ops/cases.py`: two examples at once, with each choice of shared operands."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.batching.batch import batched_node
from cgraph.batching.rules import RULES, SAMPLEWISE
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import Node
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import post_order
from cgraph.ops.shape import Contiguous
from tests.ops.cases import CASES
from tests.ops.test_cases import Drawn, results_of
from tests.support.ops import Value, values_of
from tests.support.tolerance import assert_close

SIZE = 2
MOST = 6  # nodes of one kind of op
MOST_APART = 3  # operands of which each is shared or not; further ones are as the last


@cache
def nodes_of_each() -> dict[type, list[tuple[Node, list[list[Value]]]]]:
    """For each kind of op some nodes that differ, and the operands' values in each example."""
    found: dict[type, dict] = defaultdict(dict)
    for case in CASES:
        drawn = Drawn(case)
        if not any(type(node.op) in RULES or type(node.op) in SAMPLEWISE for node in post_order(drawn.outputs)):
            continue
        rng = np.random.default_rng(9)
        other = {x: draw.array(rng) for x, draw in zip(drawn.xs, case.draws)}
        known = [values_of(drawn.outputs, given) for given in (drawn.given, other)]
        for node in known[0]:
            same = found[type(node.op)]
            if len(same) < MOST:
                same[node.op] = node, [[values[x] for x in node.operands] for values in known]
    return {op: list(same.values()) for op, same in found.items()}


def choices(count: int) -> Iterator[list[bool]]:
    """Which operands differ between examples: one of them at least."""
    for flags in product((True, False), repeat=min(count, MOST_APART)):
        if any(flags):
            yield [*flags, *[flags[-1]] * (count - MOST_APART)]


@pytest.mark.parametrize("op", [*RULES, *SAMPLEWISE], ids=lambda op: op.__name__)
def test_examples_at_once_give_what_each_gives(op):
    rows = nodes_of_each().get(op, [])
    assert rows or op is Contiguous
    for node, (one, other) in rows:
        if any(isinstance(x.spec, Bundle) for x in node.operands):
            continue
        for flags in choices(len(one)):
            arrays = [np.stack([x, y]) if flag else x for x, y, flag in zip(one, other, flags)]
            xs = [cg.Var(np.shape(x), np.asarray(x).dtype) for x in arrays]
            result = batched_node(node, xs, flags, SIZE)
            got = evaluate([*result] if isinstance(result, tuple) else [result], dict(zip(xs, arrays)))
            each = [[x[i] if flag else x for x, flag in zip(arrays, flags)] for i in range(SIZE)]
            want = [results_of(node.op.meaning(*xs)) for xs in each]
            for a, *b in zip(got, *want, strict=True):
                assert_close(a, np.stack(b), 20)
