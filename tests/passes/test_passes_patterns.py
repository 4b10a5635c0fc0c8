"""What patterns share: values that nobody else needs, numbers up to rounding, sums and products in every order."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.roots import Roots
from cgraph.ops.arithmetic import Add, Multiply
from cgraph.ops.shape import number_of
from cgraph.passes.multiply_powers import multiply_powers
from cgraph.passes.patterns import (
    affine_forms,
    axes_of_mean,
    either,
    inverted,
    is_closed,
    is_nearly,
    is_square_of,
    over_last_axes,
    root_quotients,
    roots_with_eps,
    shape_from_the_right,
    sum_behind,
    varies_along_last,
    without_corner,
)

X, Y = cg.Var((2, 3), name="x"), cg.Var((2, 3), name="y")


def test_a_pattern_is_closed_if_only_its_root_reads_what_is_inside():
    inner = cg.exp(X)
    root = cg.tanh(inner) * inner
    assert is_closed(Roots((root,)), root, (X,))
    assert not is_closed(Roots((root, inner)), root, (X,))  # an output
    assert not is_closed(Roots((root, cg.sqrt(inner))), root, (X,))  # another reader
    assert is_closed(Roots((root, cg.sqrt(X))), root, (X,))  # a leaf may have other readers
    assert is_closed(Roots((root, cg.sqrt(root))), root, (X,))  # and the root
    assert is_closed(Roots((root, inner)), root, (inner,))


def test_values_far_below_the_root_are_inside_too():
    deep = cg.sqrt(X)
    root = cg.tanh(cg.exp(deep) + 1)
    assert is_closed(Roots((root,)), root, (X,)) and not is_closed(Roots((root, cg.abs(deep))), root, (X,))
    assert not is_closed(Roots((cg.tanh(cg.exp(Y)),)), cg.tanh(cg.exp(Y)), (X,))


def test_a_value_that_the_pattern_does_not_have_opens_it_and_a_constant_does_not():
    root = cg.exp(X) + Y
    assert not is_closed(Roots((root,)), root, (X,)) and is_closed(Roots((root,)), root, (X, Y))
    constant = cg.Const(np.ones(3, "f4"))
    shifted = cg.exp(X) + constant
    assert is_closed(Roots((shifted, cg.sqrt(constant))), shifted, (X,))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_equal_up_to_two_roundings(dtype):
    like, unit = cg.Var((), dtype), float(np.finfo(dtype).eps)
    for value in (0.7, -3.0, 1e-20):
        assert is_nearly(value * (1 + 1.4 * unit), value, like) and is_nearly(value, value, like)
        assert not is_nearly(value * (1 + 4 * unit), value, like) and not is_nearly(-value, value, like)
    assert is_nearly(0.0, 0.0, like) and not is_nearly(unit, 0.0, like)


def forms(root):
    return set(affine_forms(root))


def test_a_node_is_a_product_and_a_sum_in_each_order():
    product = X * Y
    assert forms(X) == {(X, None, None)}
    assert forms(product) == {(product, None, None), (X, Y, None), (Y, X, None)}
    term = cg.exp(Y)
    total = product + term
    assert forms(total) == {
        (total, None, None), (product, None, term), (X, Y, term), (Y, X, term), (term, None, product),
    }  # fmt: skip


def test_operands_of_one_op_only():
    total = X + Y
    assert either(total, Add) == ((X, Y), (Y, X)) and either(total, Multiply) == () and either(X, Add) == ()


def test_shapes_before_a_broadcast_have_ones_in_front():
    row = cg.broadcast_to(cg.Var((3,)), (4, 2, 3))
    assert shape_from_the_right(row, 3) == (1, 1, 3) and shape_from_the_right(X, 2) == (2, 3)
    assert shape_from_the_right(cg.broadcast_to(cg.Var(()), (4, 2)), 2) == (1, 1)


def quotients(node):
    return list(root_quotients(multiply_powers((node,))[0]))


def test_quotients_by_roots_in_each_spelling():
    root, one = cg.sqrt(Y), cg.Const(np.float32(1))
    for node in (X / root, X * cg.reciprocal(root), cg.reciprocal(root) * X, X * (one / root), X / cg.power(Y, 0.5)):
        assert quotients(node) == [(X, Y)]
    assert quotients(X * cg.power(Y, -0.5)) == [(X, Y)]
    for node in (X * root, X / Y, X + root, X * cg.reciprocal(Y), X * (Y / root)):
        assert not [y for x, y in quotients(node) if x is X]


def mean(x, axes, count, keepdims=True):
    return cg.sum(x, axes, keepdims=keepdims) / np.float32(count)


def test_a_mean_is_a_sum_over_last_axes_divided_by_their_elements():
    x = cg.Var((2, 3, 4), name="x")
    assert axes_of_mean(mean(x, -1, 4), x) == 1 and axes_of_mean(mean(x, (1, 2), 12), x) == 2
    assert axes_of_mean(mean(x, (0, 1, 2), 24), x) == 3
    assert axes_of_mean(cg.broadcast_to(mean(x, -1, 4), x.shape), x) == 1
    assert axes_of_mean(cg.reshape(mean(x, (1, 2), 12, False), (2, 1, 1)), x) == 2
    others = (
        mean(x, -1, 3), mean(x, (1, 2), 4), mean(x, 1, 3), mean(x, (0, 2), 8), mean(x, 0, 2), mean(x, -1, 4, False),
        mean(cg.exp(x), -1, 4), cg.max(x, -1, keepdims=True) / np.float32(4), cg.sum(x, -1, keepdims=True),
        cg.reshape(mean(x, -1, 4), (3, 2, 1)),
    )  # fmt: skip
    assert [axes_of_mean(y, x) for y in others] == [None] * len(others)
    whole, none = cg.Var((2, 4), "int32"), cg.Var((2, 0))
    assert axes_of_mean(cg.mean(whole, -1, keepdims=True), whole) is axes_of_mean(mean(none, -1, 1), none) is None


def eps_of(node):
    return [(x, eps) for x, _, _, eps in roots_with_eps(node)]


def test_a_root_has_a_number_from_zero_added_to_a_mean():
    squares = mean(X * X, -1, 3)
    for eps in (0.0, 0.5):
        for total in (squares + np.float32(eps), np.float32(eps) + squares):
            assert eps_of(X / cg.sqrt(total)) == [(X, eps)]
    for total in (
        squares + np.float32(-0.5),
        squares + Y,
        squares,
        cg.max(X) + np.float32(0.5),
        squares * np.float32(2),
    ):
        assert eps_of(X / cg.sqrt(total)) == []
    assert sum_behind(squares).operands[0] is X * X and sum_behind(X / np.float32(2)) is None


def test_factors_vary_along_last_axes_and_are_laid_out_along_them():
    x, new = cg.Var((2, 3, 4), name="x"), {}
    for shape, axes in (((4,), 1), ((3, 4), 2), ((1, 1, 4), 1), ((), 1), ((3, 1), 2), ((2, 1, 1), 3)):
        factor = cg.Var(shape, name="f")
        wide, new[factor] = cg.broadcast_to(factor, x.shape), factor
        assert [varies_along_last(wide, 3, n) for n in (1, 2, 3)] == [n >= axes for n in (1, 2, 3)]
        value = np.arange(1.0, 1 + factor.size).reshape(shape)
        got = evaluate([over_last_axes(wide, 1.0, x, axes, new)], {factor: value.astype("f4")})[0]
        np.testing.assert_array_equal(got, np.broadcast_to(value.reshape(value.shape[-axes:]), x.shape[-axes:]))
    assert varies_along_last(None, 3, 1) and number_of(over_last_axes(None, 7.0, x, 2, new)) == 7.0
    assert over_last_axes(None, 7.0, x, 2, new).shape == (3, 4)


def test_squares_and_reciprocals_in_each_spelling():
    assert is_square_of(X * X, X) and is_square_of(cg.square(X), X)
    assert not any(is_square_of(y, X) for y in (X * Y, cg.square(Y), X + X, cg.exp(X), Y * Y))
    one, two = (cg.Const(np.float32(n)) for n in (1, 2))
    assert inverted(one / X) is inverted(cg.reciprocal(X)) is X
    assert inverted(two / X) is inverted(X / Y) is inverted(X) is None
    for corner in (cg.where(cg.equal(X, np.float32(-3)), np.float32(0), cg.sqrt(X)), cg.where(Y > 0, X, cg.sqrt(X))):
        assert without_corner(corner) is corner
