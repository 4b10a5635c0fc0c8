"""Gradients where differences say nothing: at ties, corners, zeros and negatives, with the gradient of the gradient.

The convention is PyTorch's, as `docs/gradients.md` says. Nothing that is finite nearby is a NaN.
"""

from collections.abc import Callable
from math import exp, inf, log, nan

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import NoGradientError
from cgraph.record import Record
from nn import losses
from tests.support.tolerance import assert_near

THIRD = 1 / 3


class Point(Record):
    """A function of arrays at a special point.

    Fields
        f, at: the function, and the values of its operands
        first: the gradient of the sum of its elements for each operand
        second: of the sum of the elements of the first one of these, for the first operand; None where it is infinite
    """

    f: Callable[..., cg.Node]
    at: tuple
    first: tuple
    second: list | None


def power(y: float) -> Callable[[cg.Node], cg.Node]:
    return lambda x: x**y


POINTS = {
    "maximum": Point(cg.maximum, ([1, 2, 3], [3, 2, 1]), ([0, 0.5, 1], [1, 0.5, 0]), [0, 0, 0]),
    "minimum": Point(cg.minimum, ([1, 2, 3], [3, 2, 1]), ([1, 0.5, 0], [0, 0.5, 1]), [0, 0, 0]),
    "max": Point(
        lambda x: cg.max(x, 1), ([[1, 3, 3], [0, 0, 0]],), ([[0, 0.5, 0.5], [THIRD] * 3],), [[0] * 3, [0] * 3]
    ),
    "min": Point(
        lambda x: cg.min(x, 1), ([[1, 3, 1], [0, 0, 0]],), ([[0.5, 0, 0.5], [THIRD] * 3],), [[0] * 3, [0] * 3]
    ),
    "max of all": Point(cg.max, ([[1, 3], [3, -1]],), ([[0, 0.5], [0.5, 0]],), [[0, 0], [0, 0]]),
    "max_pool2d": Point(
        lambda x: cg.max_pool2d(x, 2, 2), ([[[[1, 1], [1, 1]]]],), ([[[[1, 0], [0, 0]]]],), [[[[0] * 2] * 2]]
    ),
    "sort": Point(lambda x: cg.sort(x) * np.array([1.0, 2, 3]), ([2, 1, 1],), ([3, 1, 2],), [0, 0, 0]),
    "abs": Point(cg.abs, ([-2, 0, 2],), ([-1, 0, 1],), [0, 0, 0]),
    "sign": Point(cg.sign, ([-2, 0, 2],), ([0, 0, 0],), [0, 0, 0]),
    "relu": Point(cg.relu, ([-2, 0, 2],), ([0, 0, 1],), [0, 0, 0]),
    "relu6": Point(cg.relu6, ([-1, 0, 3, 6, 7],), ([0, 0, 1, 0, 0],), [0] * 5),
    "clip": Point(lambda x: cg.clip(x, -1, 1), ([-2, -1, 0, 1, 2],), ([0, 1, 1, 1, 0],), [0] * 5),
    "leaky_relu": Point(lambda x: cg.leaky_relu(x, 0.25), ([-1, 0, 1],), ([0.25, 0.25, 1],), [0, 0, 0]),
    "elu": Point(cg.elu, ([-1, 0, 1],), ([exp(-1), 1, 1],), [exp(-1), 1, 0]),
    "celu": Point(lambda x: cg.celu(x, 2.0), ([-2, 0, 1],), ([exp(-1), 1, 1],), [exp(-1) / 2, 0.5, 0]),
    "softplus": Point(cg.softplus, ([-800, 0, 800],), ([0, 0.5, 1],), [0, 0.25, 0]),
    "sigmoid": Point(cg.sigmoid, ([-800, 0, 800],), ([0, 0.25, 0],), [0, 0, 0]),
    "tanh": Point(cg.tanh, ([-800, 0, 800],), ([0, 1, 0],), [0, 0, 0]),
    "where": Point(lambda x: cg.where(x > 0, x, 2 * x), ([-1, 0, 1],), ([2, 2, 1],), [0, 0, 0]),
    "square": Point(cg.square, ([-3, 0],), ([-6, 0],), [2, 2]),
    "reciprocal": Point(cg.reciprocal, ([-2, 4],), ([-0.25, -0.0625],), [-0.25, 2 / 64]),
    "sqrt": Point(cg.sqrt, ([0, 4],), ([inf, 0.25],), None),
    "x ** 0": Point(power(0), ([-2, 0, 2],), ([0, 0, 0],), [0, 0, 0]),
    "x ** 1": Point(power(1), ([-2, 0, 2],), ([1, 1, 1],), [0, 0, 0]),
    "x ** 2": Point(power(2), ([-2, 0, 2],), ([-4, 0, 4],), [2, 2, 2]),
    "x ** 3": Point(power(3), ([-2, 0, 2],), ([12, 0, 12],), [-12, 0, 12]),
    "x ** 4": Point(power(4), ([-2, 0],), ([-32, 0],), [48, 0]),
    "x ** -1": Point(power(-1), ([-2, 2],), ([-0.25, -0.25],), [-0.25, 0.25]),
    "x ** 1.5": Point(power(1.5), ([0, 4],), ([0, 3],), None),
    "0 ** y": Point(lambda y: 0.0**y, ([0.5, 1, 2],), ([0, 0, 0],), [0, 0, 0]),
    "x ** y": Point(
        cg.power, ([0, 0, 0, 2, -2], [0, 1, 2, 0, 2]), ([0, 1, 0, 0, -4], [0, 0, 0, log(2), 0]), [0, 0, 2, 0, 2]
    ),
    "prod": Point(
        lambda x: cg.prod(x, 1), ([[1, 2, 3], [0, 2, 3], [0, 0, 3]],), ([[6, 3, 2], [6, 0, 0], [0, 0, 0]],),
        [[5, 4, 3], [5, 3, 2], [3, 3, 0]],
    ),
    "cumprod": Point(lambda x: cg.cumprod(x, 0), ([0, 2, 3],), ([9, 0, 0],), [6, 4, 2]),
    "remainder": Point(cg.remainder, ([4, -4, 5], [2, 2, 3]), ([1, 1, 1], [-2, 2, -1]), [0, 0, 0]),
    "logsumexp": Point(lambda x: cg.logsumexp(x, 0), ([1, 1, -inf],), ([0.5, 0.5, 0],), [0, 0, 0]),
    "softmax": Point(
        lambda x: cg.softmax(x, 0) * np.array([1.0, 0, 0]), ([1, 1, -inf],), ([0.25, -0.25, 0],), [0, 0, 0]
    ),
    "arctan2": Point(cg.arctan2, ([0, -1, 0], [-1, 0, 0]), ([-1, 0, 0], [0, 1, 0]), [0, 0, 0]),
    "maximum with NaN": Point(cg.maximum, ([nan, 1, nan], [1, nan, nan]), ([1, 1, 1], [1, 1, 1]), [0, 0, 0]),
    "minimum with NaN": Point(cg.minimum, ([nan, 1, nan], [1, nan, nan]), ([1, 1, 1], [1, 1, 1]), [0, 0, 0]),
    "maximum of infinities": Point(cg.maximum, ([inf, -inf], [inf, -inf]), ([0.5, 0.5], [0.5, 0.5]), [0, 0]),
    "fmax": Point(lambda x, y: np.fmax(x, y), ([nan, 1, 2], [1, nan, 2]), ([0, 1, 0.5], [1, 0, 0.5]), [0, 0, 0]),
    "np.clip": Point(lambda x: np.clip(x, -1, 1), ([-2, -1, 0, 1, 2],), ([0, 1, 1, 1, 0],), [0] * 5),
    "clip by values": Point(
        lambda x, low, high: cg.clip(x, low, high), ([-2, -1, 0, 1, 2], [-1] * 5, [1] * 5),
        ([0, 1, 1, 1, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]), [0] * 5,
    ),
    "hard_sigmoid": Point(lambda x: cg.hard_sigmoid(x, 0.25, 0.5), ([-2, 0, 2],), ([0, 0.25, 0],), [0, 0, 0]),
    "hard_swish": Point(lambda x: x * cg.hard_sigmoid(x, 0.25, 0.5), ([-4, -2, 0, 2, 4],), ([0, 0, 0.5, 1, 1],), None),
    "prelu": Point(cg.prelu, ([-2, 0, 2], [0.5] * 3), ([0.5, 0.5, 1], [-2, 0, 0]), [0, 0, 0]),
    "thresholded_relu": Point(lambda x: cg.thresholded_relu(x, 1.0), ([0, 1, 2],), ([0, 0, 1],), [0, 0, 0]),
    "softsign": Point(cg.softsign, ([-1, 0, 1],), ([0.25, 1, 0.25],), None),
    "selu": Point(lambda x: cg.selu(x, 2.0, 3.0), ([0, 1],), ([6, 3],), [6, 0]),
    **{
        f"norm {order}": Point(lambda x, order=order: cg.norm(x, order, 1), ([[0, 0], [3, 0]],), (slope,), second)
        for order, slope, second in [
            (None, [[0, 0], [1, 0]], [[0, 0], [0, 1 / 3]]), (2, [[0, 0], [1, 0]], [[0, 0], [0, 1 / 3]]),
            (1, [[0, 0], [1, 0]], [[0, 0], [0, 0]]), (inf, [[0, 0], [1, 0]], None), (3, [[0, 0], [1, 0]], None),
            (1.5, [[0, 0], [1, 0]], None), (0.5, [[0, 0], [1, 0]], None), (-1, [[0, 0], [0, 0]], None),
            (-inf, [[0, 0], [0, 0]], None),
        ]
    },
    "norm fro": Point(lambda x: cg.norm(x, "fro", (0, 1)), ([[0, 0], [0, 0]],), ([[0, 0], [0, 0]],), [[0, 0], [0, 0]]),
    "norm inf at a tie": Point(lambda x: cg.norm(x, inf, 0), ([2, -2, 1],), ([0.5, -0.5, 0],), [0, 0, 0]),
    "std": Point(lambda x: cg.std(x, 1), ([[2, 2], [1, 3]],), ([[0, 0], [-0.5, 0.5]],), [[0, 0], [0, 0]]),
    "np.std": Point(lambda x: np.std(x, 1), ([[2, 2], [1, 3]],), ([[0, 0], [-0.5, 0.5]],), [[0, 0], [0, 0]]),
    "np.nanstd": Point(lambda x: np.nanstd(x, 1), ([[2, nan], [1, 3]],), ([[0, 0], [-0.5, 0.5]],), [[0, 0], [0, 0]]),
    "var": Point(lambda x: cg.var(x, 1), ([[2, 2], [1, 3]],), ([[0, 0], [-1, 1]],), [[0, 0], [0, 0]]),
    "hypot": Point(cg.hypot, ([0, 3, 0], [0, 0, -2]), ([0, 1, 0], [0, 0, -1]), [0, 0, 0.5]),
    "cbrt": Point(cg.cbrt, ([0, 8],), ([inf, 1 / 12],), None),
    "log": Point(cg.log, ([0, 2],), ([inf, 0.5],), None),
    "arcsin": Point(cg.arcsin, ([0, 1],), ([1, inf],), None),
    "top_k": Point(lambda x: cg.top_k(x, 2)[0] * np.array([1.0, 2]), ([1, 2, 2, 2],), ([0, 1, 2, 0],), [0] * 4),
    "ptp": Point(lambda x: cg.ptp(x, 0), ([1, 1, 3, 3],), ([-0.5, -0.5, 0.5, 0.5],), [0] * 4),
    "max_pool1d": Point(lambda x: cg.max_pool1d(x, 2, 1), ([[[1, 1, 1]]],), ([[[1, 1, 0]]],), [[[0, 0, 0]]]),
    "logaddexp": Point(np.logaddexp, ([1, -inf, 0], [1, -inf, -inf]), ([0.5, 0.5, 1], [0.5, 0.5, 0]), None),
    "logaddexp2": Point(np.logaddexp2, ([1, -inf, 0], [1, -inf, -inf]), ([0.5, 0.5, 1], [0.5, 0.5, 0]), None),
    "fmod": Point(
        cg.fmod, ([4, -4, 5, -5, 7, -7], [2, 2, 3, 3, -2.5, -2.5]), ([1] * 6, [-2, 2, -1, 1, 2, -2]), [0] * 6
    ),
    "copysign": Point(cg.copysign, ([-2, 2, 2], [3, -3, 0]), ([-1, -1, 1], [0, 0, 0]), [0, 0, 0]),
    "floor": Point(cg.floor, ([-1, 0, 1.5],), ([0, 0, 0],), [0, 0, 0]),
    "cumprod of zeros": Point(lambda x: cg.cumprod(x, 0), ([2, 0, 3, 0],), ([1, 8, 0, 0],), None),
    "l1": Point(losses.l1, ([[1.0], [2]], [[1.0], [3]]), ([[0], [-0.5]], [[0], [0.5]]), [[0], [0]]),
    "huber": Point(losses.huber, ([0, 1, -1, 3], [0] * 4), ([0, 0.25, -0.25, 0.25], [0, -0.25, 0.25, -0.25]), None),
    "hinge": Point(losses.hinge, ([1, 0, 2], [1] * 3), ([0, -THIRD, 0], [0, 0, 0]), [0, 0, 0]),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True], ids=["reference", "compiled"])
@pytest.mark.parametrize("name", POINTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gradients_at_special_points(name, compiled):
    point = POINTS[name]
    values = [np.array(x, np.float64) for x in point.at]
    xs = [cg.Var(value.shape, "float64", f"x{i}").assign(value) for i, value in enumerate(values)]
    first = cg.gradient(cg.sum(point.f(*xs)), xs)
    wanted, want = list(first), list(point.first)
    if point.second is not None:
        wanted.append(cg.gradient(cg.sum(first[0]), xs[0]))
        want.append(point.second)
    found = cg.compile(wanted)() if compiled else evaluate(wanted)
    for got, value in zip(found, want):
        assert_near(got, np.array(value, np.float64), "float64 special points")


def test_what_has_no_gradient_says_so():
    x = cg.Var((2,), "float64", "x")
    with pytest.raises(NoGradientError, match="floor_divide has no gradient"):
        cg.gradient(cg.sum(cg.floor_divide(x, 2.0)), x)
