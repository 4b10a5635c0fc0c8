"""Lanes of several rows are joined in the order of one row: halves with halves."""

import numpy as np
import pytest

from cgraph.kernels.llvm.flow import total
from cgraph.kernels.llvm.row_totals import totals
from cgraph.kernels.reduce.calls import reduce_calls
from cgraph.kernels.target import target_named
from tests.support.emitted import every_target, run_emitted
from tests.support.kernels import TARGETS, run_calls, view_of


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_two_vectors_are_halved(target):
    own = target_named(target)
    x = np.random.default_rng(0).standard_normal((4, 2 * own.lanes)).astype("f4")
    out = np.full(4, np.nan, "f4")
    run_calls(reduce_calls(own, "sum", (("load", "f4", 0),), view_of(out), view_of(x), axes=(1,)), own)
    while x.shape[1] > 1:
        x = x[:, : x.shape[1] // 2] + x[:, x.shape[1] // 2 :]
    np.testing.assert_array_equal(out, x[:, 0])


@every_target
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_totals_have_the_bits_of_each_total(count, lanes, target):
    x = np.random.default_rng(lanes).standard_normal((count, lanes)).astype("f4")
    out, each = np.zeros(count, "f4"), np.zeros(count, "f4")

    def write(k, source, place, other):
        rows = [source.load(i * lanes, lanes) for i in range(count)]
        for i, y in enumerate(totals(k, rows)):
            place.store(y, i)
            other.store(total(k, rows[i]), i)

    run_emitted(write, target, x, out, each)
    assert out.tobytes() == each.tobytes() and out.any()
