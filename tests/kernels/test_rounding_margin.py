"""Outside the margin, integers and floats give the same byte for all windows."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cgraph.kernels.pool8.rounding_margin import Mean, rounding_margin
from tests.kernels.test_pool8 import MEANS, float_quotients, integer_quotients

SCALES = st.floats(2.0**-50, 2.0**50).map(lambda x: float(np.float32(x)))
BYTES = st.integers(0, 255)


@settings(max_examples=200)
@given(
    st.tuples(SCALES, BYTES, SCALES, BYTES),
    st.integers(1, 30),
    st.integers(1, 3),
    st.integers(0, 1 << 30),
    st.booleans(),
)
def test_where_the_margin_is_kept_both_quotients_round_to_one_integer(numbers, taps, longer, seed, is_near):
    """`longer`: the divisor over the taps; `is_near`: scales near each other, whose results are bytes."""
    scale, x_zero, last, zero = numbers
    mean = Mean(scale, x_zero, float(np.float32(scale * (0.3 + seed % 1000 / 1000))) if is_near else last, zero)
    assume(2.0**-50 <= mean.last <= 2.0**50)
    edge, slope = rounding_margin(mean, taps)
    rng = np.random.default_rng(seed)
    x = rng.integers(0, rng.integers(1, 257), (4096, taps)) - x_zero
    counts = np.full(4096, taps * longer)
    floats, integers = (f(x, counts, mean) for f in (float_quotients, integer_quotients))
    near = np.abs(integers - np.rint(integers)) + np.float32(slope) * np.abs(integers) <= np.float32(edge)
    np.testing.assert_array_equal(np.rint(floats)[near], np.rint(integers)[near])
    if is_near and mean.last > 0.5 * mean.scale and taps < 10:
        assert near.mean() > 0.4  # integers suffice for all quotients except halves


def test_windows_of_too_many_taps_are_computed_in_floats():
    edge, _ = rounding_margin(MEANS["one scale"], 1 << 24)
    assert edge < 0
