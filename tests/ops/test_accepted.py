"""What an op accepts, it computes: with one operand's spec changed, it refuses, or means what `infer` says."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cgraph.errors import CgraphError
from cgraph.ir.graph import Node, Op, inferred
from cgraph.ir.spec import Bundle, Spec
from cgraph.ops.family import Pointwise
from cgraph.ops.kernel import EachNumber, EachTask
from tests.ops.cases import CASES
from tests.ops.test_cases import Drawn, nodes_of, results_of
from tests.support.ops import Value, computing, values_of

DTYPES = [np.dtype(name) for name in ("bool", "int8", "int32", "int64", "float32", "float64", "complex128")]
EACH = 2  # nodes of one kind of op in one row
PROMOTED = ("pad", "gcd", "roi_align_grad", "tree_leaves")  # as pointwise ops: a function gives them one dtype
SHAPED = ("gcd", "roi_align_grad", "tree_leaves")  # a function sees to their shapes


def changed(op: Op, spec: Spec) -> Iterator[Spec]:
    """The same with another dtype, or one axis longer, shorter, missing or new."""
    shape = spec.shape
    if not isinstance(op, Pointwise) and op.name not in PROMOTED:
        yield from (Spec(shape, dtype) for dtype in DTYPES if dtype != spec.dtype)
    for i, n in enumerate(() if op.name in SHAPED else shape):
        for other in (n + 1, n - 1):
            if other >= 0:
                yield Spec((*shape[:i], other, *shape[i + 1 :]), spec.dtype)
        yield Spec((*shape[:i], *shape[i + 1 :]), spec.dtype)
    if op.name not in SHAPED:
        yield from (Spec((*shape, 1), spec.dtype), Spec((2, *shape), spec.dtype))


def refused_or_meant(op: Op, specs: list[Spec], values: list[np.ndarray]) -> str | None:
    """What is wrong with an op on operands of these specs; `values` are repeated to fill them."""
    try:
        spec = inferred(op, list(specs))
    except (CgraphError, ValueError, IndexError):  # other ranks, which functions refuse before there is an op
        return None
    try:
        with np.errstate(all="ignore"):
            given = [with_parts(np.resize(v, s.shape), s) for v, s in zip(values, specs)]
            found = results_of(op.meaning(*given))
    except (CgraphError, np.exceptions.AxisError):  # positions or axes that are not there
        return None
    except Exception as error:  # anything else is what this looks for
        if "tuple index out of range" in str(error):  # an axis that is not there
            return None
        return f"{specs}: {spec} is accepted, {error!r}"
    wanted = spec.specs if isinstance(spec, Bundle) else (spec,)
    if [(x.shape, x.dtype) for x in found] != [(s.shape, s.dtype) for s in wanted]:
        return f"{specs}: {spec} is accepted, {[(x.shape, str(x.dtype)) for x in found]} meant"
    return None


def with_parts(x: np.ndarray, spec: Spec) -> np.ndarray:
    """In another dtype; of complex numbers the real part."""
    return (x if spec.dtype.kind == "c" else x.real).astype(spec.dtype)


def some_of_each(known: dict[Node, Value]) -> Iterator[Node]:
    """Nodes on plain arrays, a few of each kind of op."""
    seen: dict[type, int] = {}
    for node in computing(known):
        users = isinstance(node.op, EachTask | EachNumber)  # which know their own shapes alone
        if node.op.pure and not users and not any(isinstance(x.spec, Bundle) for x in node.operands):
            seen[type(node.op)] = seen.get(type(node.op), 0) + 1
            if seen[type(node.op)] <= EACH:
                yield node


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_op_refuses_what_it_does_not_mean(case):
    drawn = Drawn(case)
    known = values_of(nodes_of(drawn, case.smooth), drawn.given)
    wrong: list[Any] = []
    for node in some_of_each(known):
        specs, values = [x.spec for x in node.operands], [np.asarray(known[x]) for x in node.operands]
        for i, spec in enumerate(specs):
            for other in changed(node.op, spec):
                text = refused_or_meant(node.op, [*specs[:i], other, *specs[i + 1 :]], values)
                wrong += [(node.op.name, text)] if text else []
    assert not wrong
