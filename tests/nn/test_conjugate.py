"""Conjugate gradients: the formula of each beta over two weights, restarts, and denominators of zero."""

import numpy as np
import pytest

import cgraph as cg
from nn import optim
from tests.nn.support import assert_close

NOW = np.array([1.0, 2.0]), np.array([[-1.0]])
BEFORE = np.array([3.0, -1.0]), np.array([[0.5]])
ALONG = np.array([-2.0, 1.0]), np.array([[4.0]])
G, H, S = (np.concatenate([x.ravel() for x in parts]) for parts in (NOW, BEFORE, ALONG))
Y = G - H
KINDS = [
    optim.HestenesStiefel, optim.FletcherReeves, optim.PolakRibiere, optim.ConjugateDescent, optim.DaiYuan,
]  # fmt: skip
BETAS = [(G @ Y) / (S @ Y), (G @ G) / (H @ H), (G @ Y) / (H @ H), (G @ G) / -(S @ H), (G @ G) / (S @ Y)]


def const(x):
    return cg.Const(np.asarray(x, "float32"))


def directions(rule, step, now=NOW, before=BEFORE, along=ALONG):
    """Direction and slots of each weight, as arrays."""
    slots = [{"gradient": const(h), "along": const(s)} for h, s in zip(before, along)]
    gradients = list(map(const, now))
    pairs = rule.directions(gradients, gradients, slots, const(step))
    return [(x.eval(), {name: y.eval() for name, y in state.items()}) for x, state in pairs]


def test_the_numbers_tell_the_five_formulas_apart():
    assert len({round(float(beta), 6) for beta in BETAS}) == 5 and min(BETAS) != 0


@pytest.mark.parametrize(("kind", "beta"), list(zip(KINDS, BETAS)))
def test_inner_products_are_over_all_weights(kind, beta):
    expected = max(beta, 0) if kind is optim.PolakRibiere else beta
    for (direction, state), g, s in zip(directions(kind(), 1), NOW, ALONG, strict=True):
        assert_close(direction, g - expected * s)
        assert_close(state["along"], expected * s - g)
        np.testing.assert_array_equal(state["gradient"], g)


@pytest.mark.parametrize(("kind", "beta"), list(zip(KINDS, BETAS)))
def test_a_direction_the_other_way_changes_the_sign_of_the_betas_that_divide_by_it(kind, beta):
    """Their denominators are negative then."""
    backward = tuple(-x for x in ALONG)
    divided = kind in (optim.HestenesStiefel, optim.ConjugateDescent, optim.DaiYuan)
    expected = -beta if divided else max(beta, 0) if kind is optim.PolakRibiere else beta
    for (direction, _), g, s in zip(directions(kind(), 1, along=backward), NOW, backward, strict=True):
        assert_close(direction, g - expected * s)


def test_polak_and_ribieres_beta_is_never_negative():
    (direction, _), _ = directions(optim.PolakRibiere(), 1, before=(2 * NOW[0], 2 * NOW[1]))
    np.testing.assert_array_equal(direction, NOW[0])


@pytest.mark.parametrize(("step", "is_fresh"), [(0, True), (1, False), (2, False), (3, True), (5, False), (6, True)])
def test_every_third_step_begins_again_at_the_gradient(step, is_fresh):
    (direction, _), _ = directions(optim.FletcherReeves(restart=3), step)
    assert np.array_equal(direction, NOW[0]) == is_fresh


def test_a_restart_comes_every_hundred_steps():
    assert optim.FletcherReeves().restart == 100


@pytest.mark.parametrize("kind", KINDS)
def test_without_an_earlier_gradient_or_direction_the_direction_is_the_gradient(kind):
    """Zero by zero is no number, and a NaN would stay in the slots for ever."""
    zeros = np.zeros(2), np.zeros((1, 1))
    for (direction, state), g in zip(directions(kind(), 1, before=zeros, along=zeros), NOW):
        np.testing.assert_array_equal(direction, g)
        np.testing.assert_array_equal(state["along"], -g)


def test_after_a_gradient_of_zero_the_direction_is_the_gradient():
    zeros = np.zeros(2), np.zeros((1, 1))
    for (direction, _), g in zip(directions(optim.FletcherReeves(), 1, before=zeros), NOW):
        np.testing.assert_array_equal(direction, g)
