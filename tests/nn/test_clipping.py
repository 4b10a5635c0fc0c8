"""Bounds on gradients: by element, and of all weights together."""

import numpy as np
import pytest

import cgraph as cg
from nn import optim
from nn.optim.clipping import Clipping
from tests.nn.support import assert_close, draw


def test_clipping_bounds_gradients():
    values = [cg.Const(np.array([3.0, -4.0], np.float32)), cg.Const(np.array([12.0], np.float32))]
    one, two = (x.eval() for x in optim.ClipL2(6.5).clip(values))
    assert_close(np.concatenate([one, two]), np.array([1.5, -2.0, 6.0]))
    one, two = (x.eval() for x in optim.ClipL2(20.0).clip(values))
    assert_close(np.concatenate([one, two]), np.array([3.0, -4.0, 12.0]))
    one, two = (x.eval() for x in optim.ClipValue(-1.0, 2.0).clip(values))
    assert_close(np.concatenate([one, two]), np.array([2.0, -1.0, 2.0]))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("limit", [0.5, 3.0, 100.0])
def test_all_gradients_together_are_shortened_alike(count, limit):
    values = [draw(*[2, 3, 1][: i % 3 + 1], seed=i) for i in range(count)]
    norm = np.sqrt(sum((x.astype("float64") ** 2).sum() for x in values))
    for mine, x in zip(optim.ClipL2(limit).clip([cg.Const(x) for x in values]), values, strict=True):
        assert_close(mine.eval(), x * np.float32(min(1, limit / norm)))


def test_gradients_of_zero_and_at_the_limit_stay():
    zeros = optim.ClipL2(1.0).clip([cg.Const(np.zeros(3, np.float32))])
    np.testing.assert_array_equal(zeros[0].eval(), np.zeros(3))
    at = optim.ClipL2(5.0).clip([cg.Const(np.array([3, -4], np.float32))])
    np.testing.assert_array_equal(at[0].eval(), [3, -4])


def test_only_numbers_beyond_the_two_bounds_change():
    values = np.array([-3, -2, -1.5, 0, 0.5, 1, np.inf, -np.inf], np.float32)
    (clipped,) = optim.ClipValue(-2.0, 1.0).clip([cg.Const(values)])
    np.testing.assert_array_equal(clipped.eval(), [-2, -2, -1.5, 0, 0.5, 1, 1, -2])


def test_a_gradient_that_is_no_number_is_not_hidden():
    for rule in (optim.ClipL2(1.0), optim.ClipValue(-1.0, 1.0)):
        (clipped,) = rule.clip([cg.Const(np.array([np.nan, 1], np.float32))])
        assert np.isnan(clipped.eval()[0])


def test_a_clipping_defines_clip():
    with pytest.raises(NotImplementedError):
        Clipping().clip([cg.Const(np.zeros(1, np.float32))])
