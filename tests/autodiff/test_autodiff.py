"""gradient, pullback, jvp and hessian_vector_product: what they are asked with, and what they refuse."""

import numpy as np
import pytest

import cgraph as cg
from cgraph import DTypeError, NoGradientError, ShapeError
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from tests.autodiff.differences import close, directions, slope
from tests.support.tolerance import assert_near

LONG = 10_000


def filled(*shape, low=-1.0, high=1.0, seed=0):
    return cg.Var(shape, "float64").assign(np.random.default_rng(seed).uniform(low, high, shape))


def test_a_node_that_is_not_used_has_a_gradient_of_zeros():
    x, y = filled(3), filled(2, 2)
    (g,) = evaluate([cg.gradient(cg.sum(x), y)])
    np.testing.assert_array_equal(g, np.zeros((2, 2)))


def test_the_gradient_of_a_node_with_respect_to_itself_is_its_seed():
    x = filled(3)
    assert cg.gradient(x, x, seed=2 * x) is 2 * x


def test_gradient_with_respect_to_a_node_that_is_no_var():
    x = filled(3, 4)
    y = cg.sin(x)
    (g,) = evaluate([cg.gradient(cg.sum(y * y), y)])
    assert_near(g, 2 * np.sin(x.value), "float64 through float32")


def test_gradients_of_a_node_and_of_what_it_is_made_of_at_once():
    x = filled(3, 4)
    y = cg.sin(x)
    loss = cg.sum(y * x)
    together, alone = cg.gradient(loss, [x, y]), [cg.gradient(loss, x), cg.gradient(loss, y)]
    for a, b in zip(evaluate(together), evaluate(alone)):
        np.testing.assert_array_equal(a, b)
    close(np.vdot(evaluate(together)[0], np.ones((3, 4))), slope(loss, [x], [np.ones((3, 4))]))


def test_xs_may_name_a_node_twice():
    x = filled(3)
    first, second = cg.gradient(cg.sum(x * x), [x, x])
    assert first is second


def test_a_seed_weighs_the_elements():
    x, seed = filled(3, 4), np.arange(12.0).reshape(3, 4)
    (g,) = evaluate([cg.gradient(cg.exp(x), x, seed=cg.Const(seed))])
    assert_near(g, seed * np.exp(x.value), "float64 through float32")


def test_pullback_adds_up_over_several_results():
    x = filled(3)
    ys = [cg.sin(x), cg.exp(x)[:2], x]
    seeds = [cg.Const(np.random.default_rng(i).normal(size=y.shape)) for i, y in enumerate(ys)]
    (g,) = evaluate(cg.pullback(ys, seeds, [x]))
    want = sum(evaluate([cg.gradient(y, x, seed=seed)])[0] for y, seed in zip(ys, seeds))
    assert_near(g, want, "float64 through float32")


@pytest.mark.parametrize("wanted", [(0,), (1,), (0, 1), (2, 0)])
def test_parts_of_a_decomposition_that_nobody_reads_count_as_zeros(wanted):
    x = filled(4, 3)
    parts = cg.svd(x, full_matrices=False)
    loss = sum((cg.sum(cg.square(cg.square(parts[i]))) for i in wanted), start=cg.Const(0.0))
    (g,) = evaluate([cg.gradient(loss, x)])
    (along,) = directions([x.value])
    close(np.vdot(g, along), slope(loss, [x], [along]))


def test_gradient_with_respect_to_a_part_of_a_decomposition():
    q, r = cg.qr(filled(4, 3))
    (g,) = evaluate([cg.gradient(cg.sum(r * r), r)])
    assert_near(g, 2 * evaluate([r])[0], "float64 through float32")
    (unused,) = evaluate([cg.gradient(cg.sum(r), q)])
    np.testing.assert_array_equal(unused, np.zeros(q.shape))


def test_top_k_hands_the_gradient_to_the_elements_it_took():
    x = cg.Var(5, "float64").assign([3.0, 9, 1, 7, 5])
    values, places = cg.top_k(x, 2)
    (g,) = evaluate([cg.gradient(cg.sum(values * cg.Const([10.0, 20.0])), x)])
    np.testing.assert_array_equal(g, [0, 10, 0, 20, 0])
    assert places.dtype.kind == "i"


def test_whole_numbers_stop_the_gradient():
    x = filled(4)
    loss = cg.sum(x * cg.astype(cg.astype(x * 10, "int32"), "float64"))
    (g,) = evaluate([cg.gradient(loss, x)])
    assert_near(g, np.trunc(x.value * 10), "float64 through float32")


# -- forward mode, second derivatives ---------------------------------------------------------------------------------


def test_jvp_has_the_shape_of_the_result_and_reads_no_cotangent():
    x, w = filled(3, 4), filled(4, 2, seed=1)
    tangents = directions([x.value, w.value])
    y = cg.tanh(x @ w)
    change = cg.jvp(y, [x, w], tangents)
    assert change.spec == y.spec
    got = cg.compile(change)()
    close(got, slope(y, [x, w], tangents))


def test_jvp_of_a_result_that_does_not_depend_on_x_is_zero():
    x, y = filled(3), filled(2)
    np.testing.assert_array_equal(evaluate([cg.jvp(y * 2, [x], [x])])[0], np.zeros(2))


def test_hessian_of_a_quadratic_form_is_its_matrix():
    a = np.random.default_rng(0).normal(size=(4, 4))
    x = filled(4)
    rows = [cg.hessian_vector_product(x @ cg.Const(a) @ x, x, row) for row in np.eye(4)]
    assert_near(evaluate(rows), a + a.T, "float64 through float32 near zero")


def test_forward_mode_and_hessians_take_one_node_or_several():
    x, w = filled(3), filled(3, seed=1)
    v = [np.arange(3.0), np.ones(3)]
    y = cg.sum(cg.sin(x) * w * w)
    np.testing.assert_array_equal(*evaluate([cg.jvp(y, x, v[0]), cg.jvp(y, [x], v[:1])]))
    alone, (listed,) = cg.hessian_vector_product(y, x, v[0]), cg.hessian_vector_product(y, [x], v[:1])
    np.testing.assert_array_equal(*evaluate([alone, listed]))
    both = evaluate(cg.hessian_vector_product(y, [x, w], v))
    cross = 2 * w.value * np.cos(x.value)
    assert_near(both[0], -np.sin(x.value) * w.value**2 * v[0] + cross * v[1], "float64 through float32 near zero")
    assert_near(both[1], cross * v[0] + 2 * np.sin(x.value) * v[1], "float64 through float32 near zero")


def test_a_fourth_derivative():
    x = filled()
    y = cg.sin(x * 2)
    for _ in range(4):
        y = cg.gradient(y, x)
    assert_near(evaluate([y])[0], 16 * np.sin(2 * x.value), "float64 through float32")


# -- deep and wide graphs ---------------------------------------------------------------------------------------------


def test_a_chain_deeper_than_the_stack_has_a_gradient():
    x = filled(2)
    y = x
    for i in range(LONG):
        y = y * 1.0001 if i % 2 else y + x
    g = cg.gradient(cg.sum(y), x)
    (along,) = directions([x.value])
    close(np.vdot(evaluate([g])[0], along), slope(cg.sum(y), [x], [along]))


@pytest.mark.parametrize("count", [500, 5_000])
def test_adding_up_the_gradients_of_many_users_takes_a_few_nodes_for_each(count):
    x = filled(3)
    loss = cg.sum(cg.stack([cg.sum(x * float(i)) for i in range(count)]))
    g = cg.gradient(loss, x)
    assert len(post_order([g])) < 20 * count
    assert_near(evaluate([g])[0], np.full(3, count * (count - 1) / 2), "float64 through float32")


# -- errors -----------------------------------------------------------------------------------------------------------


def test_an_op_without_a_gradient_is_named_with_the_users_line():
    x = cg.Var(3, name="weights")
    y = cg.sum(x // 2)
    with pytest.raises(
        NoGradientError, match=r"floor_divide has no gradient \(made at test_autodiff.py:\d+ of weights"
    ):
        cg.gradient(y, x)


def test_an_op_without_a_gradient_that_is_not_on_the_way_is_no_error():
    x, y = filled(3), filled(3)
    (g,) = evaluate([cg.gradient(cg.sum(x * (y // 2)), x)])
    np.testing.assert_array_equal(g, np.floor_divide(y.value, 2))


def test_several_elements_need_a_seed():
    x = filled(3)
    with pytest.raises(ShapeError, match="3 elements; pass seed="):
        cg.gradient(cg.sin(x), x)


def test_a_seed_of_another_shape_is_refused():
    x = filled(3)
    with pytest.raises(ShapeError, match=r"seed float64\[2\]"):
        cg.gradient(cg.sin(x), x, seed=cg.Const(np.ones(2)))


def test_whole_numbers_have_no_gradient():
    x, i = filled(3), cg.Var(3, "int32", "steps")
    with pytest.raises(DTypeError, match="is not a float"):
        cg.gradient(cg.sum(i), x)
    with pytest.raises(DTypeError, match="steps int32"):
        cg.gradient(cg.sum(x), i)


def test_tangents_that_do_not_fit_are_refused():
    x = filled(3)
    with pytest.raises(ShapeError, match="2 tangents"):
        cg.jvp(cg.sin(x), [x], [x, x])
    with pytest.raises(ShapeError, match="tangent"):
        cg.jvp(cg.sin(x), [x], [cg.Const(np.ones(2))])
    with pytest.raises(ShapeError, match="direction"):
        cg.hessian_vector_product(cg.sum(x), x, cg.Const(np.ones(2)))


def test_no_gradient_flows_through_what_stops_it():
    x = filled(3)
    (g,) = evaluate([cg.gradient(cg.sum(cg.stop_gradient(cg.sin(x)) * x), x)])
    assert_near(g, np.sin(x.value), "float64 through float32")


def test_a_gradient_of_the_users_own():
    x, w = filled(3), filled(3, seed=1)
    rounded = cg.custom_gradient(cg.round(x * w), [x, w], lambda g: [g * w, g * 2.0])
    found = evaluate([rounded, *cg.gradient(cg.sum(rounded * 3.0), [x, w])])
    np.testing.assert_array_equal(found[0], np.round(x.value * w.value))
    assert_near(found[1], 3 * w.value, "float64 through float32")
    assert_near(found[2], np.full(3, 6.0), "float64 through float32")
    np.testing.assert_array_equal(rounded.eval(), found[0])


@pytest.mark.parametrize("backward", [lambda g: [g], lambda g: [g, g[:1]]])
def test_a_gradient_of_the_users_own_that_does_not_fit_is_refused(backward):
    x, w = filled(3), filled(3, seed=1)
    with pytest.raises(ShapeError, match="test_autodiff.py"):
        cg.gradient(cg.sum(cg.custom_gradient(x * w, [x, w], backward)), [x, w])


def test_gradients_come_in_a_list_for_a_list_and_alone_for_a_node():
    x, y = filled(2), filled(3)
    loss = cg.sum(x) + cg.sum(y * 2)
    assert cg.gradient(loss, []) == [] and isinstance(cg.gradient(loss, x), cg.Node)
    for xs in ([y, x], (y, x)):
        found = cg.gradient(loss, xs)
        assert type(found) is list and [g.shape for g in found] == [(3,), (2,)]
    assert [g.tolist() for g in evaluate(found)] == [[2, 2, 2], [1, 1]]
