"""Losses against NumPy, and the same by their gradients."""

import numpy as np
import pytest

import cgraph as cg
from nn import losses
from tests.nn.support import draw
from tests.support.tolerance import assert_near, near


def soft(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def value(loss, x, y) -> float:
    return float(cg.compile(loss(cg.Const(x), cg.Const(y)), engine="reference")())


def test_cross_entropy_of_classes_and_of_probabilities():
    x, classes = draw(4, 3), np.array([0, 2, 1, 1], np.int32)
    want = -np.log(soft(x)[np.arange(4), classes]).mean()
    assert value(losses.cross_entropy, x, classes) == near(want, "float32 sums")
    assert value(losses.cross_entropy, x, np.eye(3, dtype=np.float32)[classes]) == near(want, "float32 sums")
    smooth = soft(draw(4, 3, seed=1)).astype(np.float32)
    assert value(losses.cross_entropy, x, smooth) == near(-(smooth * np.log(soft(x))).sum(-1).mean(), "float32 sums")


def test_cross_entropy_of_huge_scores_is_finite():
    x = np.array([[1e4, -1e4]], np.float32)
    assert value(losses.cross_entropy, x, np.array([1], np.int32)) == near(2e4, "float64 through float32")


def test_binary_cross_entropy():
    x, y = draw(5, 2), (draw(5, 2, seed=1) > 0).astype(np.float32)
    p = 1 / (1 + np.exp(-x))
    want = -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()
    assert value(losses.binary_cross_entropy, x, y) == near(want, "float32 sums")


def test_distances():
    x, y = draw(4, 3), draw(4, 3, seed=1)
    d = x - y
    assert value(losses.quadratic, x, y) == near((d * d).mean(), "float32 sums")
    assert value(losses.l1, x, y) == near(np.abs(d).sum(1).mean(), "float32 sums")
    assert value(losses.l2, x, y) == near(np.sqrt((d * d).sum(1)).mean(), "float32 sums")
    far = np.where(np.abs(d) < 1, d * d / 2, np.abs(d) - 0.5)
    assert value(losses.huber, x, y) == near(far.mean(), "float32 sums")
    sign = np.sign(y)
    assert value(losses.hinge, x, sign) == near(np.maximum(0, 1 - sign * x).mean(), "float32 sums")


def test_the_gradient_of_cross_entropy_is_probability_minus_answer():
    x, classes = draw(4, 3), np.array([0, 2, 1, 1], np.int32)
    scores = cg.Var((4, 3)).assign(x)
    g = cg.compile(cg.gradient(losses.cross_entropy(scores, cg.Const(classes)), scores), engine="reference")()
    assert_near(g, (soft(x) - np.eye(3)[classes]) / 4, "float32 shares")


def test_a_loss_does_not_broadcast():
    with pytest.raises(cg.ShapeError):
        losses.quadratic(cg.Var((4, 1)), cg.Var((4,)))
    with pytest.raises(cg.ShapeError):
        losses.cross_entropy(cg.Var((4, 3)), cg.Var((3,), "int32"))
