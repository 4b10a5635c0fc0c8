"""Padding: each mode and width as np.pad, unequal sides, repeated mirrors, values of the dtype, gradients."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ArgumentError, ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.pad import Pad, pad_edge, pad_reflect, pairs
from tests.autodiff.differences import check_first
from tests.support.computed import computed, gradients

X = np.arange(6.0).reshape(2, 3) + 1


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize(
    "widths", [0, 1, (1, 2), ((1, 0), (0, 2)), ((0, 3), (2, 1)), ((5, 4), (7, 8)), ((0, 0), (1, 1))]
)
def test_every_mode_is_numpys(widths, mode):
    for x in (X, X[:1], X[:, :1]):
        np.testing.assert_array_equal(computed(cg.pad(cg.Var(x), widths, mode)), np.pad(x, widths, mode))


def test_the_constant_is_of_the_operands_dtype():
    x = cg.Var(np.array([1, 2], "int8"))
    assert computed(cg.pad(x, 1, constant_values=2.9)).tolist() == [2, 1, 2, 2]
    assert computed(cg.pad(cg.Var(np.array([1.5])), (2, 0), constant_values=-np.inf)).tolist() == [-np.inf] * 2 + [1.5]
    assert computed(cg.pad(cg.Var(np.array([False])), 1, constant_values=True)).tolist() == [True, False, True]
    assert computed(cg.pad(cg.Var(np.array([1j])), (0, 1), constant_values=2)).tolist() == [1j, 2]


def test_no_width_is_the_operand_and_empty_axes_take_constants_only():
    x, empty = cg.Var(X), cg.Var((0, 3), name="empty")
    assert cg.pad(x, 0) is x is cg.pad(x, ((0, 0), (0, 0)), "edge")
    assert computed(cg.pad(cg.Var(np.zeros((0, 2))), 1, constant_values=7)).tolist() == [[7] * 4] * 2
    with pytest.raises(
        ShapeError, match=r"axis 0 of empty float32\[0,3\] is empty and has no edge; use mode='constant'"
    ):
        cg.pad(empty, 1, "edge")
    with pytest.raises(ShapeError, match="axis 0 .* is empty and has nothing to reflect"):
        cg.pad(empty, 1, "reflect")
    assert cg.pad(empty, ((0, 0), (1, 2)), "edge").shape == (0, 6)


def test_widths_that_do_not_fit_are_refused():
    x = cg.Var((2, 3), name="x")
    with pytest.raises(ShapeError, match="mode='wrap' is unknown; use 'constant', 'edge' or 'reflect'"):
        cg.pad(x, 1, "wrap")
    with pytest.raises(ShapeError, match=r"does not fit x float32\[2,3\]; pass a number, a pair, or a pair for each"):
        cg.pad(x, (1, 2, 3))
    for widths in (-1, 1.5, True, ((False, True), (True, True)), ((0, 0), (0, -1))):
        with pytest.raises((ShapeError, ArgumentError), match="is not valid; pass integers >= 0"):
            cg.pad(x, widths)
    for widths in (((1, 1),), ((0, 0), (0, -1))):
        with pytest.raises(ShapeError, match="pass one pair >= 0 for each of 2 axes"):
            apply(Pad(widths, 0.0), x)
    assert pairs((1, 2), x) == ((1, 2), (1, 2)) and pairs([[1, 2], [3, 4]], x) == ((1, 2), (3, 4))


def test_one_side_alone_and_mirrors_of_mirrors():
    x = cg.Var(np.array([1.0, 2, 3]))
    assert pad_edge(x, 0, 0, 0) is x is pad_reflect(x, 0, 0, 0)
    assert computed(pad_edge(x, 0, 2, 0)).tolist() == [1, 1, 1, 2, 3]
    assert computed(pad_reflect(x, 0, 0, 2)).tolist() == [1, 2, 3, 2, 1]
    assert computed(pad_reflect(x, 0, 5, 0)).tolist() == [2, 1, 2, 3, 2, 1, 2, 3]


def test_gradients_add_up_where_an_element_is_repeated():
    x = cg.Var(np.array([1.0, 2, 3]))
    seed = [1, 10, 100, 1000, 1e4, 1e5]
    assert gradients(cg.pad(x, (1, 2)), x, seed=seed).tolist() == [10, 100, 1000]
    assert gradients(cg.pad(x, (1, 2), "edge"), x, seed=seed).tolist() == [11, 100, 111000]
    assert gradients(cg.pad(x, (1, 2), "reflect"), x, seed=seed).tolist() == [100010, 10101, 1000]
    for mode in ("constant", "edge", "reflect"):
        check_first(lambda x, m=mode: cg.square(cg.pad(x, ((1, 0), (2, 3)), m)), [X])


def test_each_field_makes_another_node():
    x = cg.Var((2,))
    assert len({cg.pad(x, (1, 0)), cg.pad(x, (0, 1)), cg.pad(x, (1, 0), constant_values=1)}) == 3
