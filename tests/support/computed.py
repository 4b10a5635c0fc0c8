"""Values of nodes over assigned Vars: by the meaning of each op in NumPy and by kernels, which must agree."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import Node
from tests.support.tolerance import assert_close


def computed(*nodes: Node) -> Any:
    """The value of a node, or those of several; the kernels' are within the tolerance of their dtype.

    No pass rewrites the graph, so that each op runs its own kernels.
    """
    by_meaning, by_kernels = evaluate(nodes), cg.compile(list(nodes), passes=False)()
    for got, want in zip(by_kernels, by_meaning):
        assert_close(got, want, 20)
    return by_meaning[0] if len(nodes) == 1 else by_meaning


def gradients(y: Node, *xs: Node, seed: Any = None) -> Any:
    """The gradients of the sum of ``y * seed``, of y itself without a seed."""
    total = cg.sum(y if seed is None else y * np.asarray(seed, y.dtype))
    return computed(*cg.gradient(total, list(xs)))


def float64(*values: Any) -> Any:
    """A Var of float64 for each value, or one of them."""
    found: Sequence[Node] = [cg.Var(np.array(v, "float64")) for v in values]
    return found[0] if len(found) == 1 else found
