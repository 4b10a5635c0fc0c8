"""Basic indexing: NumPy's elements for every index, slices that share none, writing, splitting, refusals, gradients."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import apply
from cgraph.kernels.kernel import Pointer, View
from cgraph.ops.slicing import SetSlice, Slice, basic_index, is_array_index, position_of
from tests.support.computed import computed, gradients

X = np.arange(24.0).reshape(2, 3, 4)
EDGES = (None, -5, -4, -1, 0, 1, 3, 4, 9)
INDICES = [
    0, -1, (1, 2, 3), ..., (..., 1), (0, ...), (slice(None), 1), (None, 0), (0, None, slice(None, None, -2)),
    (..., None), (slice(1, 1), slice(2, 0, -1)), (1, ..., slice(None, None, 3)), (), (None, ..., None),
    (np.int64(1), slice(0, 9), -4),
]  # fmt: skip


@pytest.mark.parametrize("start, stop, step", list(product(EDGES, EDGES, (None, 1, 2, -1, -3))))
def test_every_slice_of_an_axis(start, stop, step):
    index = slice(start, stop, step)
    slices, shape = basic_index(cg.Var((4,)), [index])
    want = np.arange(4)[index]
    assert shape == want.shape
    starts, steps, lengths = zip(*slices)
    np.testing.assert_array_equal(Slice(starts, steps, lengths).meaning(np.arange(4)), want)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_elements_are_numpys_and_gradients_go_back_to_them(index):
    x = cg.Var(X)
    want = X[index]
    np.testing.assert_array_equal(computed(x[index]), want)
    seed = np.arange(1.0, want.size + 1).reshape(want.shape)
    placed = np.zeros_like(X)
    placed[index] = seed
    np.testing.assert_array_equal(gradients(x[index], x, seed=seed), placed)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_writing_replaces_these_elements_alone(index):
    x, y = cg.Var(X), cg.Var(-np.arange(1.0, X[index].size + 1).reshape(X[index].shape))
    want = X.copy()
    want[index] = y.value
    node = cg.set_slice(x, index, y)
    np.testing.assert_array_equal(computed(node), want)
    seed = X + 100
    to_x, to_y = gradients(node, x, y, seed=seed)
    kept = seed.copy()
    kept[index] = 0
    np.testing.assert_array_equal(to_x, kept)
    np.testing.assert_array_equal(to_y, seed[index])
    np.testing.assert_array_equal(x.value, X)


def test_an_index_of_everything_is_the_operand():
    x = cg.Var(X)
    for index in (..., (), slice(None), (slice(0, 2), ..., slice(None, 9))):
        assert x[index] is x
    assert x[::-1] is not x and x[None].op.name == "reshape"


def test_a_number_broadcasts_and_is_converted():
    x = cg.Var(np.array([1, 2, 3], "int8"))
    assert computed(cg.set_slice(x, slice(1, None), 7)).tolist() == [1, 7, 7]
    assert cg.set_slice(x, 0, cg.Var((), "float32")).dtype == "int8"
    assert computed(cg.set_slice(cg.Var(np.array(5.0)), (), 2)) == 2


def test_indices_that_do_not_fit_are_refused():
    x = cg.Var((2, 3), name="x")
    for index, message in (
        ((0, 0, 0), r"index of 3 axes does not fit x float32\[2,3\]; use at most 2 and one ellipsis"),
        ((..., ...), "index of 0 axes does not fit"),
        ((0, 3), r"index 3 is outside an axis of 3 of x float32\[2,3\]; pass one from -3 to 2"),
        (-3, "index -3 is outside an axis of 2"),
        (True, "True does not index x"), (1.0, "1.0 does not index x"), ("a", "'a' does not index x"),
    ):  # fmt: skip
        with pytest.raises(ShapeError, match=message):
            cg.getitem(x, index)
    assert [position_of(i, 3, x) for i in (-3, 2, np.int8(-1))] == [0, 2, 2]
    assert [is_array_index(p) for p in ([0], (0,), np.array(0), x, "a", 1, None)] == [True] * 4 + [False] * 3


def test_slices_that_share_no_element():
    def at(start, step, n):
        return Slice((start, 0), (step, 1), (n, 2))

    assert at(0, 1, 3).is_apart_from(at(3, 1, 2)) and at(3, 1, 2).is_apart_from(at(0, 1, 3))
    assert not at(0, 1, 3).is_apart_from(at(2, 1, 2)) and not at(0, 1, 3).is_apart_from(at(0, 1, 3))
    assert at(2, -1, 3).is_apart_from(at(3, 1, 1)) and at(5, -1, 2).is_apart_from(at(3, -1, 4))
    assert not at(5, -1, 3).is_apart_from(at(3, -1, 4))
    assert Slice((0, 0), (1, 1), (2, 1)).is_apart_from(Slice((0, 1), (1, 1), (2, 1)))  # along the second axis
    assert Slice((4, 7), (-2, 1), (3, 0)).ends == [(4, 0), ()]


def test_a_slice_is_a_view():
    view = View(Pointer("x", 8), (4, 5), (40, 8), "f8")
    assert Slice((3, 1), (-2, 3), (2, 2)).alias(view) == View(Pointer("x", 8 + 128), (2, 2), (-80, 24), "f8")
    assert Slice((3, 1), (1, 1), (1, 0)).alias(view).at == Pointer("x", 8)


def test_specs_of_writing_are_checked():
    x = cg.Var((4,))
    with pytest.raises(DTypeError, match="a slice of float32 cannot be set to int8; convert y with astype"):
        apply(SetSlice((0,), (1,)), x, cg.Var((2,), "int8"))
    with pytest.raises(ShapeError, match="slice 3:5:1 is outside an axis of 4; shorten it"):
        apply(SetSlice((3,), (1,)), x, cg.Var((2,)))
    y = cg.Var((2,))
    assert len({apply(SetSlice(*f), x, y) for f in (((0,), (1,)), ((1,), (1,)), ((0,), (2,)))}) == 3


@pytest.mark.parametrize("parts, axis", [(2, 0), (3, 1), (1, 2), (4, -1), ([1], 1), ([0, 2, 2, 9], 1), ([-1], 2)])
def test_split_is_numpys(parts, axis):
    got = cg.split(cg.Var(X), parts, axis)
    for a, b in zip(computed(*got) if len(got) > 1 else [computed(*got)], np.split(X, parts, axis), strict=True):
        np.testing.assert_array_equal(a, b)


def test_split_into_unequal_parts_is_refused():
    for parts in (0, -1, 3):
        with pytest.raises(ShapeError, match=r"axis 2 of x float32\[2,3,4\] does not divide into -?\d equal parts"):
            cg.split(cg.Var((2, 3, 4), name="x"), parts, 2)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
def test_flip_reverses_these_axes(axis):
    np.testing.assert_array_equal(computed(cg.flip(cg.Var(X), axis)), np.flip(X, axis))
