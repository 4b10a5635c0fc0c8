"""What an op accepts, it computes: with one operand's spec changed, it refuses, or means what `infer` says."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cgraph.errors import CgraphError
from cgraph.ir.graph import Node, Op, infer_spec
from cgraph.ir.spec import Bundle, Spec
from cgraph.ops.family import Pointwise
from cgraph.ops.kernel import EachNumber, EachTask
from tests.ops.cases import CASES
from tests.ops.test_cases import Drawn, nodes_of, results_of
from tests.support.ops import Value, computing, values_of

DTYPES = [np.dtype(name) for name in ("bool", "int8", "int32", "int64", "float32", "float64", "complex128")]
MOST_NAMED = 3  # operands that are told apart; those behind them are as the last
EACH = 2  # nodes of one kind of op in one row
PROMOTED = ("pad", "gcd", "roi_align_grad", "tree_leaves")  # as pointwise ops: a function gives them one dtype
BEFORE = (
    "argmax", "attention", "fourier", "inverse_real_fourier", "max", "min", "real_fourier", "set_slice", "slice",
    "sliding", "take", "top_k",
)  # fmt: skip
"""Ops whose functions refuse other ranks before there is an op: their `infer` ends in an error of Python's."""
LIST = Path(__file__).with_name("accepted.txt")
SHAPED = ("gcd", "roi_align_grad", "tree_leaves")  # a function sees to their shapes


def changed(op: Op, spec: Spec) -> Iterator[tuple[str, Spec]]:
    """The same with another dtype, or one axis longer, shorter, missing or new; and what that is called."""
    shape = spec.shape
    if not isinstance(op, Pointwise) and op.name not in PROMOTED:
        yield from ((str(dtype), Spec(shape, dtype)) for dtype in DTYPES if dtype != spec.dtype)
    for i, n in enumerate(() if op.name in SHAPED else shape):
        for name, other in (("longer", n + 1), ("shorter", n - 1)):
            if other >= 0:
                yield name, Spec((*shape[:i], other, *shape[i + 1 :]), spec.dtype)
        yield "missing", Spec((*shape[:i], *shape[i + 1 :]), spec.dtype)
    if op.name not in SHAPED:
        yield from (("behind", Spec((*shape, 1), spec.dtype)), ("before", Spec((2, *shape), spec.dtype)))


def refused_or_meant(op: Op, specs: list[Spec], values: list[np.ndarray]) -> str | None:
    """What is wrong with an op on operands of these specs; `values` are repeated to fill them."""
    try:
        spec = infer_spec(op, list(specs))
    except CgraphError:
        return None
    except (ValueError, IndexError) as error:
        return None if op.name in BEFORE else f"{specs}: {error!r} is no refusal"
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
            for _, other in changed(node.op, spec):
                text = refused_or_meant(node.op, [*specs[:i], other, *specs[i + 1 :]], values)
                wrong += [(node.op.name, text)] if text else []
    assert not wrong


def accepted() -> list[str]:
    """A line for each operand of each kind of op: which changes of it are accepted in one row of the table or more."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for case in CASES:
        drawn = Drawn(case)
        for node in some_of_each(values_of(nodes_of(drawn, case.smooth), drawn.given)):
            specs = [x.spec for x in node.operands]
            for i, spec in enumerate(specs):
                mine = found[f"{node.op.name} {min(i, MOST_NAMED)}"]
                for name, other in changed(node.op, spec):
                    try:
                        infer_spec(node.op, [*specs[:i], other, *specs[i + 1 :]])
                    except (CgraphError, ValueError, IndexError):
                        continue
                    mine[name] = None
    return [f"{name}: {' '.join(sorted(kinds)) or 'nothing'}" for name, kinds in sorted(found.items())]


def test_ops_accept_what_the_list_says_and_refuse_the_rest():
    """An op that begins to refuse or to accept more is seen; ``python -m tests.ops.test_accepted`` writes the list."""
    assert accepted() == LIST.read_text().splitlines()


if __name__ == "__main__":
    LIST.write_text("\n".join(accepted()) + "\n")
