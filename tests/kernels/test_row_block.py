"""The last vector of a row overlaps its neighbour, and each element counts once."""

import numpy as np
import pytest

from cgraph.kernels.reduce.calls import reduce_calls
from cgraph.kernels.target import target_named
from tests.support.kernels import TARGETS, run_calls, view_of


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("more", range(1, 18))
def test_each_element_counts_once(target, more):
    own = target_named(target)
    x = np.ones((5, own.lanes + more), "f4")
    out = np.full(5, np.nan, "f4")
    run_calls(reduce_calls(own, "sum", (("load", "f4", 0),), view_of(out), view_of(x), axes=(1,)), own)
    np.testing.assert_array_equal(out, own.lanes + more)
