"""Sums of windows along one axis, beside the same sums by NumPy."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.ops.fold import fold_axis
from cgraph.ops.leaf import Const
from tests.support.tolerance import assert_close

rng = np.random.default_rng(0)


def test_one_axis_is_added_and_the_others_stay():
    x = rng.standard_normal((1, 2, 3, 4, 5, 6)).astype("f4")  # elements 3 and 4, windows 5 and 6
    y = fold_axis(Const(x), 2, (7, 0), 1, 1)
    assert y.shape == (1, 2, 4, 7, 6)
    want = np.zeros((1, 2, 4, 7, 6), "f4")
    for a in range(3):
        want[:, :, :, a : a + 5] += x[:, :, a]
    assert_close(evaluate((y,), {})[0], want)


@pytest.mark.parametrize("stride, dilation", [(1, 1), (2, 1), (1, 3), (3, 2), (5, 1), (2, 4)])
@pytest.mark.parametrize("before", [0, 1, 4])
def test_strides_dilations_and_padding(stride, dilation, before):
    windows, taps = 4, 3
    x = rng.standard_normal((2, 1, taps, windows))
    whole = np.zeros((2, 1, 40))
    for i in range(windows):
        for a in range(taps):
            whole[:, :, i * stride + a * dilation] += x[:, :, a, i]
    for length in ((windows - 1) * stride + (taps - 1) * dilation + 1 - before, 2):
        y = fold_axis(Const(x), 1, (length, before), stride, dilation)
        assert_close(evaluate((y,), {})[0], whole[:, :, before : before + length])
