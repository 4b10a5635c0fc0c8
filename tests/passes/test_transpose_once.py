"""What several products of few rows read transposed is laid out once."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.kernels.gemm.portions import direct_rows
from cgraph.kernels.target import host_target
from cgraph.ops.shape import Contiguous
from cgraph.passes.transpose_once import transpose_once
from tests.support.rewrites import assert_same_values
from tests.support.tolerance import assert_near

ROWS, K, N = 8, 96, 64


def copies(function: cg.Function) -> int:
    return sum(isinstance(node.op, Contiguous) for node in function.compiled.layout.steps)


def chain(steps: int, rows: int = ROWS) -> tuple[cg.Function, np.ndarray, np.ndarray]:
    """The gradient of the states of a recurrent layer: products with a transposed matrix, one after the other."""
    rng = np.random.default_rng(0)
    x, w = cg.Var((rows, N), name="x"), cg.Var((N, N), name="w")
    y = x
    for _ in range(steps):
        y = cg.tanh(y @ w.T)
    values = [rng.normal(size=v.shape).astype("float32") / 4 for v in (x, w)]
    return cg.compile(y, [x, w]), *values


def test_several_products_share_one_copy():
    function, x, w = chain(5)
    want = x.astype("float64")
    for _ in range(5):
        want = np.tanh(want @ w.T)
    assert copies(function) == 1
    assert_near(function(x, w), want, "float32 small networks")


@pytest.mark.parametrize(("steps", "rows"), [(1, ROWS), (3, 1), (3, 500)], ids=["one product", "one row", "many rows"])
def test_others_read_what_they_are_given(steps, rows):
    assert copies(chain(steps, rows)[0]) == 0


def test_the_bits_are_those_of_each_product_alone():
    function, x, w = chain(2)
    alone, *_ = chain(1)
    np.testing.assert_array_equal(function(x, w), alone(alone(x, w), w))


def copied(*shapes, dtype="float32", cut=lambda y: y):
    """How many products of arrays of these shapes with one transposed matrix read a copy of it."""
    w = cg.Var((N, K), dtype, "w")
    outputs = [cut(cg.Var((*shape, K), dtype, f"x{i}") @ w.T) for i, shape in enumerate(shapes)]
    found = transpose_once(tuple(outputs), host_target())
    assert_same_values(lambda nodes: transpose_once(nodes, host_target()), *outputs)
    return sum(isinstance(node.operands[1].op, Contiguous) for node in found)


def test_only_products_of_matrices_of_few_rows_of_floats_read_a_copy():
    most = direct_rows(N * 4, K)
    assert copied((ROWS,), (ROWS,)) == copied((2,), (most,)) == copied((ROWS,), (ROWS,), (1,), (most + 1,)) == 2
    assert copied((2, ROWS), (2, ROWS)) == copied((ROWS,), (1,)) == copied((ROWS,), (most + 1,)) == 0
    assert copied((ROWS,), (0,)) == copied((ROWS,), (ROWS,), dtype="int32") == copied((ROWS,)) == 0
    assert copied((ROWS,), (ROWS,), (ROWS,), dtype="float64") == 3
