"""Places of the largest elements and sums at them: ties, NaN, infinities, windows that overlap, every layout."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.pool_indices.calls import place_calls, spread_calls
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.window import Window
from tests.kernels.test_pool import seen, values
from tests.support.images import assert_zero_frame, empty_laned, laned, plain
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of

pytestmark = pytest.mark.usefixtures("cuts")


def places_and_spread(x, g, window, target):
    """Places of the largest elements and `g` spread over them, in lanes and plain."""
    target, dtype = target_named(target), f"f{x.itemsize}"
    lanes = target.lanes_of(dtype)
    places = empty_laned(g.shape, lanes, (1, 0, 2, 1), "i4")
    spread = empty_laned(x.shape, lanes, (0, 2, 1, 0), dtype)
    run_calls(place_calls(target, places, laned(x, lanes, (0, 1, 2, 0)), window).calls, target)
    run_calls(spread_calls(target, spread, places, laned(g, lanes, (2, 0, 0, 1)), window).calls, target)
    yield plain(places), plain(spread)
    dense, out = np.full(g.shape, -9, "i4"), np.full(x.shape, np.nan, x.dtype)
    flipped = np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    run_calls(place_calls(target, view_of(dense), view_of(flipped), window).calls, target)
    run_calls(spread_calls(target, view_of(out), view_of(dense), view_of(g), window).calls, target)
    yield dense, out


@settings(max_examples=25)
@given(st.tuples(*[st.integers(1, n) for n in (2, 20, 15, 15, 4, 4, 3, 3, 3, 3)]), st.sampled_from(TARGETS))
def test_places_and_their_gradient_of_any_shape(sizes, target):
    """Against a plain loop: every axis with moves of its own."""
    n, c, h, w, r, s, *moves = sizes
    window = Window((r, s), tuple(moves[:2]), (r - 1, s // 2, r // 2, s - 1), tuple(moves[2:]))
    if min(window.result(h, w)) < 1:
        return
    x, _, size = values((n, c, h, w, window, (0, 0)))
    every = seen(x, window, size, -np.inf)
    if np.isinf(every.max(-1)).any():
        return
    want = every.argmax(-1)
    g = np.random.default_rng(4).integers(-9, 9, want.shape).astype("f4")  # whose sums are exact in any order
    image = np.zeros(x.shape, "f4")
    for (i, k, p, q), place in np.ndenumerate(want):
        row = p * window.stride[0] - window.pad[0] + place // s * window.dilation[0]
        column = q * window.stride[1] - window.pad[1] + place % s * window.dilation[1]
        image[i, k, row, column] += g[i, k, p, q]
    for places, spread in places_and_spread(x, g, window, target):
        np.testing.assert_array_equal(places, want)
        np.testing.assert_array_equal(spread, image)


def places_of(x, window):
    """The places, which are the same in lanes and plain."""
    zeros = np.zeros((*x.shape[:2], *window.result(*x.shape[2:])), x.dtype)
    (places, _), (dense, _) = places_and_spread(x, zeros, window, "host")
    np.testing.assert_array_equal(places, dense)
    return dense


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_first_of_equals_and_the_first_nan_before_all(dtype):
    rows = {
        (5, 5, 5, 5, 5, 5): 0,
        (1, 7, 3, 7, 7, 0): 1,
        (1, np.nan, np.inf, np.nan, 9, 9): 1,
        (np.inf, 0, 0, 0, 0, np.nan): 5,
        (-np.inf, -np.inf, -np.inf, -3, -np.inf, -3): 3,
        (-0.0, 0.0, -1, -1, -1, -1): 0,
    }
    x = np.array(list(rows), dtype).reshape(1, len(rows), 2, 3)
    assert places_of(x, Window((2, 3))).ravel().tolist() == list(rows.values())


@pytest.mark.parametrize("pixel", [1, -np.inf, np.nan])
def test_places_count_taps_of_the_whole_window_at_every_border(pixel):
    """Images of one row and column in the middle of windows of 3 x 4: the tap that meets the pixel, never padding."""
    x = np.full((1, 1, 1, 1), pixel, "f4")
    window = Window((3, 4), pad=(2, 3, 2, 3))
    want = [(2 - row) * 4 + 3 - column for row in range(3) for column in range(4)]
    assert places_of(x, window).ravel().tolist() == want


def test_places_of_integers():
    window = Window((2, 2), (1, 2))
    for dtype, least in (("i4", -(2**31)), ("u1", 0), ("i8", -(2**63))):
        x = np.array([[least, least, 3, 4], [least, least, 4, 4], [1, least, 2, 9]], dtype)[None, None]
        out = np.zeros((1, 1, 2, 2), "i4")
        run_calls(place_calls(host_target(), view_of(out), view_of(x), window).calls)
        assert out.ravel().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("order", ORDERS)
def test_elements_of_windows_that_overlap_are_added_up_and_the_rest_is_zero(order):
    """One pixel is the largest of all windows that see it, in more channels than lanes; the frame stays zero."""
    target = host_target()
    c, window = target.lanes_of("f4") + 3, Window((3, 2), (1, 2), (1, 0, 1, 0))
    x = np.zeros((2, c, 5, 6), "f4")
    x[:, :, 2, 3] = 1
    g = np.random.default_rng(0).integers(1, 9, (2, c, *window.result(5, 6))).astype("f4")
    want = np.zeros(x.shape, "f8")
    for n, k in np.ndindex(2, c):
        for (p, q), v in np.ndenumerate(g[n, k]):
            sees = p - 1 <= 2 <= p + 1 and 2 * q <= 3 <= 2 * q + 1
            at = (2, 3) if sees else (max(p - 1, 0), 2 * q)  # the first tap inside, where all are equal
            want[(n, k, *at)] += v
    lanes = target.lanes_of("f4")
    places, out = (empty_laned(size, lanes, (1, 2, 0, 1), kind) for size, kind in ((g.shape, "i4"), (x.shape, "f4")))
    run_calls(place_calls(target, places, laned(x, lanes), window).calls, target, order)
    run_calls(spread_calls(target, out, places, laned(g, lanes), window).calls, target, order)
    assert_zero_frame(out)
    np.testing.assert_array_equal(plain(out), want)


def test_images_without_windows_and_no_images():
    target, window = host_target(), Window((3, 3))
    x, none = np.zeros((1, 2, 5, 4), "f4"), np.zeros((0, 2, 3, 2), "f4")
    empty, out = np.zeros((1, 2, 3, 0), "i4"), np.full((1, 2, 5, 2), 7, "f4")
    assert place_calls(target, view_of(empty), view_of(x), window).calls == ()
    run_calls(spread_calls(target, view_of(out), view_of(empty), view_of(empty.astype("f4")), window).calls)
    assert not out.any()
    nothing = np.zeros((0, 2, 5, 4), "f4")
    assert not spread_calls(target, view_of(nothing), view_of(none.astype("i4")), view_of(none), window).calls
