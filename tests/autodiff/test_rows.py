"""Forward mode and second derivatives times a direction, for every row of `tests/ops/cases.py`.

Gradients of first and second order of these rows are compared with differences in `tests/ops/test_cases.py`.
"""

import zlib

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import Node
from tests.autodiff.differences import close, directions, slope, variables, weighted
from tests.ops.cases import CASES, Case

ROWS = [case for case in CASES if case.smooth and any(draw.dtype == "float64" for draw in case.draws)]


@pytest.fixture(autouse=True)
def quiet(capsys):
    """What `lazy_print` writes stays inside."""


def graph_of(case: Case) -> tuple[list[cg.Var], list[Node]]:
    """The Vars of a row's floats, with values, and its results: both parts of complex ones."""
    rng = np.random.default_rng(zlib.crc32(str(case).encode()))
    xs = variables([draw.array(rng) for draw in case.draws])
    found = case.build(*xs)
    results = [found] if isinstance(found, Node) else list(found)
    return [x for x in xs if x.dtype.kind == "f"], [part for y in results for part in parts(y)]


def parts(y: Node) -> list[Node]:
    """What differences are taken of: nothing of an integer, two floats of a complex number."""
    if y.dtype.kind == "c":
        return [cg.real(y), cg.imag(y)]
    return [y] if y.dtype.kind == "f" else []


@pytest.mark.parametrize("case", ROWS, ids=str)
def test_jvp_agrees_with_differences(case):
    xs, results = graph_of(case)
    along = directions([x.value for x in xs])
    for y in results:
        change = cg.jvp(y, xs, [cg.Const(d) for d in along])
        close(evaluate([change])[0], slope(y, xs, along))


@pytest.mark.parametrize("case", [case for case in ROWS if case.twice], ids=str)
def test_hessian_vector_product_agrees_with_differences_of_the_gradient(case):
    xs, results = graph_of(case)
    loss = weighted(cg.concat([cg.ravel(cg.tanh(y)) for y in results]))
    for x, v in zip(xs, directions([x.value for x in xs])):
        product = cg.hessian_vector_product(loss, x, cg.Const(v))
        close(evaluate([product])[0], slope(cg.gradient(loss, x), [x], [v]))
