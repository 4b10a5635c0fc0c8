"""Calls of depthwise convolution on plain images: where vectors of columns lie."""

import numpy as np
import pytest

from cgraph.kernels.depthwise.plain_calls import MOST_STEP, VECTORS, plain_depthwise_calls
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import target_named
from cgraph.kernels.views.window import Window
from tests.support.kernels import TARGETS, view_of


def params_of(columns, window, target, flipped=False, n=1):
    """The columns of a vector and their step in the only call; None without a call."""
    x = np.zeros((n, 3, 9, columns), "f4")
    out = np.zeros((n, 3, *window.result(9, columns)), "f4")
    images = x[..., ::-1] if flipped else x
    numbers = Pointer(np.zeros(27, "f4"))
    calls = plain_depthwise_calls(target, view_of(out), view_of(images), numbers, numbers, window).calls
    return calls[0].kernel.params[1:] if calls else None


@pytest.mark.parametrize("name", TARGETS)
def test_vectors_hold_the_columns_whose_taps_are_all_inside(name):
    target = target_named(name)
    window, most = Window((3, 3), pad=(1, 1, 1, 1)), VECTORS * target.lanes
    assert params_of(most + 2, window, target) == (most, 1)
    assert params_of(most + 1, window, target) == (most // 2, 1)
    assert params_of(2, window, target) == (1, 1), "no column has all taps inside"


@pytest.mark.parametrize("step", range(1, MOST_STEP + 2))
def test_columns_are_computed_one_by_one_if_they_are_far_apart_or_run_backwards(step):
    window, target = Window((3, 3), (1, step)), target_named(TARGETS[0])
    assert (params_of(99, window, target)[0] == 1) == (step > MOST_STEP)
    assert params_of(99, window, target, flipped=True)[0] == 1


def test_no_images_need_no_call():
    assert params_of(20, Window((3, 3)), target_named(TARGETS[0]), n=0) is None
