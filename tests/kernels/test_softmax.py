"""Softmax and its relatives agree with their formulas in float64, along any axis of any layout."""

import numpy as np
import pytest

from cgraph.kernels.softmax.calls import softmax_calls
from cgraph.kernels.target import host_target, target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near

every_target = pytest.mark.parametrize("target", TARGETS)
every_kind = pytest.mark.parametrize("kind", ["softmax", "log_softmax", "logsumexp"])


def formula(kind, x, axis):
    x = x.astype("f8")
    most = x.max(axis, keepdims=True)
    total = np.exp(x - most).sum(axis, keepdims=True)
    if kind == "logsumexp":
        return np.squeeze(most + np.log(total), axis)
    return np.exp(x - most) / total if kind == "softmax" else x - most - np.log(total)


SHAPES = [((5, 7), 1), ((3, 1000), 1), ((21, 700), 0), ((4, 85, 35), 1), ((2, 3, 4), 0), ((1, 1), 1), ((6,), 0)]


@every_target
@every_kind
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape, axis", SHAPES)
def test_every_axis_agrees_with_the_formula(target, kind, dtype, shape, axis):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype) * 20
    want = formula(kind, x, axis)
    for order in ORDERS:
        out = np.full(want.shape, np.nan, dtype)
        run_calls(
            softmax_calls(target_named(target), kind, view_of(out), view_of(x), axis),
            target_named(target),
            order,
        )
        assert_near(out, want, "softmax", np.abs(x).max())


@every_target
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["softmax", "log_softmax"])
def test_out_may_be_x(target, axis, kind):
    x = np.random.default_rng(1).standard_normal((77, 45)).astype("f4")
    want = formula(kind, x, axis)
    run_calls(softmax_calls(target_named(target), kind, view_of(x), view_of(x), axis), target_named(target))
    assert_near(x, want, "float32 sums near zero")


@every_target
def test_strided_views_of_both_sides(target):
    x = np.random.default_rng(2).standard_normal((40, 60)).astype("f4")[::2, ::-3]
    out = np.full((20, 40), np.nan, "f4")[:, ::2]
    for axis in (0, 1):
        run_calls(
            softmax_calls(target_named(target), "softmax", view_of(out), view_of(x), axis),
            target_named(target),
        )
        assert_near(out, formula("softmax", x, axis), "float32 normalised")


@every_target
@pytest.mark.parametrize("axis", [0, 1])
def test_logsumexp_of_infinities(target, axis):
    x = np.zeros((30, 30), "f4")
    x[:, 3] = x[3, :] = -np.inf
    x[0, 0], x[1, 1] = np.inf, np.nan
    out = np.zeros(30, "f4")
    run_calls(
        softmax_calls(target_named(target), "logsumexp", view_of(out), view_of(x), axis),
        target_named(target),
    )
    assert out[0] == np.inf and np.isnan(out[1]) and out[3] == -np.inf
    assert_near(out[4:], np.log(29), "float32 formulas")


def test_an_output_of_another_shape_is_refused():
    x, out = np.empty((3, 4), "f4"), np.empty((3, 5), "f4")
    with pytest.raises(ValueError, match="does not fit"):
        softmax_calls(host_target(), "softmax", view_of(out), view_of(x), 1)
