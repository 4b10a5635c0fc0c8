"""What patterns share: values that nobody else needs, numbers up to rounding, sums and products in every order."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.roots import Roots
from cgraph.ops.arithmetic import Add, Multiply
from cgraph.passes.multiply_powers import multiply_powers
from cgraph.passes.patterns import affine_forms, either, is_closed, is_nearly, root_quotients, shape_from_the_right

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
