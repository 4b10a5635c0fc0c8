"""Bounds and slopes of activations, and the words that kernels get of them."""

from math import inf, nan

import numpy as np
import pytest

from cgraph.kernels.activation.calls import NONE, RELU, RELU6, BoundedActivation, clip, leaky
from cgraph.kernels.activation.signature import ACTIVATION


@pytest.mark.parametrize(
    ("activation", "want"),
    [
        (NONE, (0, -inf, inf, 1)),
        (RELU, (0, 0, inf, 1)),
        (RELU6, (1, 0, 6, 1)),
        (leaky(0.1), (1, -inf, inf, 0.1)),
        (clip(-2, 3), (1, -2, 3, 1)),
        (BoundedActivation(-3, slope=1), (0, -3, inf, 1)),  # a lower bound alone needs no general form
        (BoundedActivation(-1, 2, 0.5), (1, -1, 2, 0.5)),
    ],
    ids=str,
)
def test_arguments_have_the_names_and_dtypes_of_the_signature(activation, want):
    args = activation.args
    assert dict(zip(("general", "low", "high", "slope"), want)) == args and list(args) == list(ACTIVATION)
    kinds = {name: f"{np.dtype(type(value)).kind}8" for name, value in args.items()}
    assert kinds == ACTIVATION  # whole numbers for bounds would be passed as other bits


@pytest.mark.parametrize(("low", "high"), [(0.5, 1), (-2, -1), (1, -1), (nan, 1), (-1, nan)])
def test_bounds_that_exclude_zero_are_refused_with_their_values(low, high):
    with pytest.raises(ValueError, match=rf"bounds \[{low}, {high}\] exclude 0.*clip in an op of its own"):
        clip(low, high)


def test_zero_may_be_a_bound_itself():
    assert clip(0, 0).args == {"general": 1, "low": 0.0, "high": 0.0, "slope": 1.0}
    assert clip(-1.5, 0).high == 0 and clip(0, 1.5).low == 0


def test_equal_bounds_and_slopes_make_equal_activations():
    """They are parts of the keys of calls."""
    assert clip(0, 6) == RELU6 and hash(clip(0.0, 6.0)) == hash(RELU6) and leaky(1) == NONE
    assert len({NONE, RELU, RELU6, leaky(0.1), leaky(0.2), clip(-1, 6), clip(0, 5)}) == 7
