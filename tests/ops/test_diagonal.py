"""Triangles and diagonals: every offset beyond both ends, any two axes, what does not fit, gradients by hand."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.diagonal import Diagonal, Triangle
from tests.autodiff.differences import check_second
from tests.support.computed import computed, gradients

WIDE, TALL, EMPTY = np.arange(12).reshape(3, 4) + 1, np.arange(6).reshape(3, 2) + 1, np.zeros((0, 3), int)


@pytest.mark.parametrize(
    "x", [WIDE, TALL, EMPTY, WIDE + 1j, np.arange(24).reshape(2, 3, 4)], ids=lambda x: str(x.shape)
)
@pytest.mark.parametrize("k", range(-5, 6))
def test_triangles_are_numpys(x, k):
    got = computed(cg.triu(cg.Var(x), k), cg.tril(cg.Var(x), k))
    np.testing.assert_array_equal(got[0], np.triu(x, k))
    np.testing.assert_array_equal(got[1], np.tril(x, k))


@pytest.mark.parametrize("x", [WIDE, TALL, EMPTY], ids=lambda x: str(x.shape))
@pytest.mark.parametrize("k", range(-5, 6))
def test_diagonals_are_numpys(x, k):
    for got, want in zip(
        computed(cg.diagonal(cg.Var(x), k), cg.trace(cg.Var(x), k), cg.diag(cg.Var(x), k)),
        (np.diagonal(x, k), np.trace(x, k), np.diag(x, k)),
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("k", range(-3, 4))
def test_a_vector_becomes_a_matrix_with_it_on_a_diagonal(k):
    for x in (np.array([1, 2, 3]), np.array([5]), np.zeros(0, int)):
        np.testing.assert_array_equal(computed(cg.diag(cg.Var(x), k)), np.diag(x, k))


@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (0, -1), (-1, 1), (2, 0)])
def test_any_two_axes(axes):
    x = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    for offset in (-1, 0, 1):
        got = computed(cg.diagonal(cg.Var(x), offset, *axes), cg.trace(cg.Var(x), offset, *axes))
        np.testing.assert_array_equal(got[0], np.diagonal(x, offset, *axes))
        np.testing.assert_array_equal(got[1], np.trace(x, offset, *axes))


def test_what_has_no_diagonal_is_refused():
    x, vector, cube = cg.Var((3, 3), name="x"), cg.Var((3,)), cg.Var((2, 2, 2))
    with pytest.raises(ShapeError, match=r"axes 1 and -1 of x float32\[3,3\] must differ"):
        cg.diagonal(x, 0, 1, -1)
    with pytest.raises(ShapeError, match="must differ"):
        cg.diagonal(vector)
    with pytest.raises(ShapeError, match="3 axes; pass a vector or a matrix, or use diagonal"):
        cg.diag(cube)
    for op in (Triangle(0, True), Diagonal(0)):
        with pytest.raises(ShapeError, match="has 1 axes, but needs at least two; use expand_dims or diag"):
            apply(op, vector)


def test_gradients_go_back_to_their_places():
    x = cg.Var(np.ones((2, 3)))
    assert gradients(cg.diagonal(x, 1), x, seed=[5, 7]).tolist() == [[0, 5, 0], [0, 0, 7]]
    assert gradients(cg.diagonal(x, -1), x, seed=[5]).tolist() == [[0, 0, 0], [5, 0, 0]]
    assert gradients(cg.diagonal(x, 3), x).tolist() == [[0] * 3] * 2
    seed = np.arange(6).reshape(2, 3) + 1
    assert gradients(cg.triu(x, 1), x, seed=seed).tolist() == [[0, 2, 3], [0, 0, 6]]
    assert gradients(cg.tril(x, 1), x, seed=seed).tolist() == [[1, 2, 0], [4, 5, 6]]
    v = cg.Var(np.ones(2))
    assert gradients(cg.diag(v, -1), v, seed=np.arange(9).reshape(3, 3)).tolist() == [3, 7]
    check_second(lambda x: cg.square(cg.diagonal(x, 1, 0, 2)), [np.random.default_rng(0).normal(size=(2, 2, 3))])


def test_each_field_makes_another_node():
    x = cg.Var((3, 3))
    assert len({cg.triu(x), cg.tril(x), cg.triu(x, 1), cg.diagonal(x), cg.diagonal(x, 1), cg.diagonal(x, -1)}) == 6
    assert cg.triu(x, 1) is cg.triu(x, np.int64(1))


def test_identities_are_constants():
    for n, m, k in ((3, None, 0), (2, 4, 1), (3, 2, -1), (0, 2, 0)):
        got = cg.eye(n, m, k, "int16")
        np.testing.assert_array_equal(computed(got), np.eye(n, m, k, "int16"))
    assert cg.eye(2).dtype == "float32" and cg.eye(2) is cg.eye(2)
