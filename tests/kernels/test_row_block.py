"""The last vector of a row overlaps its neighbour, and each element counts once."""

import numpy as np
import pytest

from cgraph.kernels.reduce.calls import reduce_calls
from cgraph.kernels.softmax.calls import softmax_calls
from cgraph.kernels.target import target_named
from cgraph.kernels.views.layout import CHAIN
from tests.support.kernels import TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("more", range(1, 18))
def test_each_element_counts_once(target, more):
    own = target_named(target)
    x = np.ones((5, own.lanes + more), "f4")
    out = np.full(5, np.nan, "f4")
    run_calls(reduce_calls(own, "sum", (("load", "f4", 0),), view_of(out), view_of(x), axes=(1,)), own)
    np.testing.assert_array_equal(out, own.lanes + more)


@pytest.mark.parametrize("target", TARGETS)
def test_each_element_of_a_long_row_counts_once(target):
    """A sum of floats begins a new chain after some vectors; rows end before, at and behind the end of one."""
    own = target_named(target)
    for lanes in (own.lanes, 2 * own.lanes):
        for columns in (CHAIN * lanes - 1, CHAIN * lanes + 1, 2 * CHAIN * lanes, 3 * CHAIN * lanes + lanes + 1):
            x, out = np.ones((5, columns), "f4"), np.full(5, np.nan, "f4")
            run_calls(reduce_calls(own, "sum", (("load", "f4", 0),), view_of(out), view_of(x), axes=(1,)), own)
            np.testing.assert_array_equal(out, columns)
            whole = np.full_like(x, np.nan)
            run_calls(softmax_calls(own, "softmax", view_of(whole), view_of(x), 1), own)
            assert_near(whole.sum(1, dtype="f8"), np.ones(5), "float32 sums")
