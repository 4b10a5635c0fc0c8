"""What is computed while compiling, and what is left for the run."""

import numpy as np
import pytest
from hypothesis import given, settings

import cgraph as cg
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import ConstOp
from cgraph.passes.fold_constants import fold_constants
from tests.support.graphs import graphs
from tests.support.rewrites import assert_keeps_values, assert_leaves_nothing, assert_left, assert_same_values, ops_of
from tests.support.tolerance import assert_near

X = cg.Var((3, 4), "float32", "x")
A, B = (cg.Const(np.random.default_rng(i).normal(size=(3, 4)).astype("float32")) for i in range(2))
ONE = cg.Const(np.float32(1.5))
LARGE = cg.Const(np.random.default_rng(2).normal(size=(200, 300)).astype("float32"))  # more bytes than a small constant
WIDE = cg.Var((5, 300), "float32", "wide")


@pytest.mark.parametrize(
    "node",
    [A + B, cg.sin(A), cg.sum(A), A.T @ B, cg.cumsum(A[:, ::2], 1), cg.broadcast_to(ONE, (3, 4)) * A, cg.argmax(A)],
    ids=lambda n: n.name,
)
def test_a_node_of_constants_becomes_one(node):
    (found,) = fold_constants((node,))
    assert isinstance(found.op, ConstOp) and found.spec == node.spec
    assert_same_values(fold_constants, node)


def test_what_depends_on_a_constant_part_is_folded_up_to_there():
    found = fold_constants((cg.tanh(X * (A + B)),))
    assert ops_of(found) == {"tanh": 1, "multiply": 1}
    assert_same_values(fold_constants, cg.tanh(X * (A + B)))


LEFT = {
    "of a Var": cg.sin(X) * A,
    "of a Var first": A - X,
    "a broadcast": cg.broadcast_to(ONE, (3, 4)),
    "an impure op": cg.delay(np.negative, A),
    "an impure op's user": cg.sin(cg.delay(np.negative, A)),
    "several results": cg.qr(A)[0],
    "a large matrix that products read": WIDE @ LARGE.T,
    "a large matrix that products read in batches": cg.Var((2, 5, 300), "float32") @ LARGE.T,
    "a constant alone": A,
}


@pytest.mark.parametrize("name", LEFT)
def test_not_folded(name):
    assert_left(fold_constants, LEFT[name])


def test_a_large_matrix_that_something_else_reads_too_is_folded():
    outputs = WIDE @ LARGE.T, cg.sum(X) + LARGE.T
    assert ops_of(fold_constants(outputs)) == {"matmul": 1, "sum": 1, "add": 1}
    assert_same_values(fold_constants, *outputs)


def test_a_large_matrix_of_whole_numbers_and_a_small_one_are_folded():
    whole = cg.Const(np.arange(60_000, dtype="int32").reshape(200, 300))
    assert ops_of(fold_constants((cg.Var((5, 300), "int32") @ whole.T,))) == {"matmul": 1}
    assert ops_of(fold_constants((cg.Var((5, 4), "float32") @ A.T,))) == {"matmul": 1}


def test_a_result_larger_than_its_operands_is_folded_only_while_it_is_small(monkeypatch):
    node = cg.exp(cg.broadcast_to(A, (5, 3, 4)))
    monkeypatch.setitem(fold_constants.__globals__, "_SMALL", node.nbytes - 1)
    assert_left(fold_constants, node)
    assert isinstance(fold_constants((cg.exp(A),))[0].op, ConstOp)  # no larger than its operand
    monkeypatch.setitem(fold_constants.__globals__, "_SMALL", node.nbytes)
    assert isinstance(fold_constants((node,))[0].op, ConstOp)


def test_a_users_function_of_a_constant_runs_each_time():
    calls = []

    def draw(x: np.ndarray) -> np.ndarray:
        calls.append(1)
        return x + np.float32(len(calls))

    function = cg.compile(cg.sin(cg.delay(draw, A)) + X, [X])
    values = np.zeros(X.shape, "float32")
    found = [function(values) for _ in range(3)]
    assert len(calls) == 3
    for i, value in enumerate(found):
        assert_near(value, np.sin(A.op.array + np.float32(i + 1)), "float32 sums near zero")


@settings(max_examples=30)
@given(drawn=graphs(impure=True))
def test_random_graphs_keep_their_values_and_nothing_is_left_to_fold(drawn):
    assert_keeps_values(fold_constants, drawn)
    assert_leaves_nothing(fold_constants, drawn)


FILTERS = cg.broadcast_to(cg.Const(np.float32([[[0.5]], [[2]]])), (8, 2, 3, 3))
IMAGE = cg.Var((1, 2, 7, 7), name="image")


@pytest.mark.parametrize("layer", [lambda f: cg.conv2d(IMAGE, f), lambda f: cg.conv_transpose2d(IMAGE, f[:2])])
def test_broadcast_filters_are_folded_for_a_convolution_however_large(layer, monkeypatch):
    monkeypatch.setitem(fold_constants.__globals__, "_SMALL", 0)
    node = layer(FILTERS)
    (found,) = fold_constants((node,))
    assert isinstance(found.operands[1].op, ConstOp)
    assert_same_values(fold_constants, node)
    assert_left(fold_constants, cg.sum(FILTERS * cg.Var(FILTERS.shape)))  # which reads the broadcast as it is


ROW, COLUMN = cg.Const(np.float32([1, 2, 3, 4])), cg.Const(np.float32([[1], [2], [3]]))
ROWS = cg.Var((5, 3), name="rows")
COMPUTED = {
    "the right side of a product": (ROWS @ cg.cos(ROW * COLUMN), True),
    "a right side that is transposed": (
        ROWS @ cg.transpose(cg.cos(cg.reshape(ROW, (4, 1)) * cg.reshape(COLUMN, (3,)))),
        True,
    ),
    "filters": (cg.conv2d(IMAGE, cg.reshape(cg.cos(ROW * COLUMN), (6, 2, 1, 1))), True),
    "the left side of a product": (cg.cos(ROW * COLUMN) @ cg.Var((4, 2)), False),
    "a right side of several matrices": (cg.Var((2, 5, 3)) @ cg.stack([cg.cos(ROW * COLUMN)] * 2), False),
    "an addend": (cg.Var((3, 4)) + cg.cos(ROW * COLUMN), False),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_constants_make_of_filters_and_right_sides_is_folded_however_large(name, monkeypatch):
    """Exporters write a resampling's filters, and the matrix of a transform, as they are computed."""
    monkeypatch.setitem(fold_constants.__globals__, "_SMALL", 0)
    node, is_folded = COMPUTED[name]
    (got,) = fold_constants((node,))
    assert any(x.op.name == "cos" for x in post_order((got,))) != is_folded
    assert_same_values(fold_constants, node)


def test_a_large_constant_of_a_storage_dtype_stays_and_a_small_one_is_widened(monkeypatch):
    stored = cg.Const(np.ones((4, 3), "float32")).astype("bfloat16")
    (held,) = fold_constants((stored,))
    node = X.T[:3, :3] @ held.astype("float32").T
    size = held.astype("float32").nbytes
    monkeypatch.setitem(fold_constants.__globals__, "_SMALL", size)
    assert ops_of(fold_constants((node,)))["cast"] == 0
    monkeypatch.setitem(fold_constants.__globals__, "_SMALL", size - 1)
    assert ops_of(fold_constants((node,)))["cast"] == 1
    assert_same_values(fold_constants, node)
