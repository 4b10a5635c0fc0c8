"""Running sums and products against NumPy, to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.scan.calls import scan_calls
from cgraph.kernels.target import target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.strided import filled

HOW = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 17, 70]), min_size=1, max_size=3).map(tuple)


@given(
    data=st.data(),
    shape=SHAPES,
    how=st.sampled_from(sorted(HOW)),
    dtype=st.sampled_from(["f4", "f8", "i4", "i8"]),
    target=st.sampled_from(TARGETS),
    order=st.sampled_from(ORDERS),
)
def test_scans_are_numpys_accumulate(data, shape, how, dtype, target, order):
    axis = data.draw(st.integers(0, len(shape) - 1))
    axes = data.draw(st.permutations(range(len(shape))))
    base = (np.random.default_rng(11).random([shape[a] for a in axes]) * 4 - 2).astype(dtype)
    x = base.transpose(np.argsort(axes))
    if x.size and dtype[0] == "f" and data.draw(st.booleans()):
        base.reshape(-1)[base.size // 2] = np.nan
    want = HOW[how].accumulate(x, axis, dtype=dtype)
    out = filled(np.ascontiguousarray(want))
    target = target_named(target)
    run_calls(
        scan_calls(target, view_of(out), View(Pointer(base), x.shape, x.strides, dtype), axis, how), target, order
    )
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape, axis", [((3, 40_000), 1), ((40_000, 3), 0), ((40_000, 70), 0), ((2, 40_000, 2), 1)])
def test_lines_longer_than_a_task(shape, axis, order):
    """Whole numbers, whose sums are exact."""
    x = np.random.default_rng(0).integers(-9, 9, shape).astype("f4")
    out = np.full(shape, np.nan, "f4")
    run_calls(scan_calls(target_named("host"), view_of(out), view_of(x), axis), order=order)
    np.testing.assert_array_equal(out, np.cumsum(x, axis))
