"""Blocks of rows write each row of theirs and no other, whatever their number."""

import numpy as np
import pytest

from cgraph.kernels.normalise.calls import layer_norm_calls
from cgraph.kernels.softmax.calls import softmax_calls
from cgraph.kernels.target import target_named
from tests.support.kernels import TARGETS, run_calls, view_of


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", range(1, 10))
def test_equal_rows_have_equal_results_up_to_the_last(target, rows):
    own, x = target_named(target), np.arange(33, dtype="f4") * np.ones((rows, 1), "f4")
    out = np.full((rows + 1, 33), -7, "f4")
    place, image = view_of(out[:rows]), view_of(x)
    for calls in (
        softmax_calls(own, "softmax", place, image, 1),
        layer_norm_calls(own, place, image, None, None, 1, 1),
    ):
        run_calls(calls, own, "single")
        assert (out[:rows] == out[0]).all() and (out[rows] == -7).all() and np.ptp(out[0]) > 0
