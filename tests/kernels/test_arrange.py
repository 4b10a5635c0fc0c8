"""Padding, tiling, repeating, flipping and joining against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.kernels.calls.arrange import pad_calls, repeat_calls, tile_calls
from cgraph.kernels.calls.move import concat_calls, copy_calls, flipped
from tests.support.kernels import ORDERS, run_calls, view_of
from tests.support.strided import filled, strided

SHAPES = st.lists(st.sampled_from([1, 2, 3, 5, 12]), min_size=1, max_size=4).map(tuple)
WIDTH = st.integers(0, 11)


@given(
    data=st.data(),
    mode=st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]),
    order=st.sampled_from(ORDERS),
)
def test_pad_is_numpys(data, mode, order):
    x, x_view = data.draw(strided(data.draw(SHAPES), data.draw(st.sampled_from(["u1", "i4", "f8"]))))
    widths = tuple((data.draw(WIDTH), data.draw(WIDTH)) for _ in x.shape[:2]) + ((0, 1),) * (x.ndim - 2)
    options = {"constant_values": 3} if mode == "constant" else {}
    want = np.pad(x, widths, mode, **options)
    out = filled(want)
    run_calls(pad_calls(view_of(out), x_view, widths, mode, 3), order=order)
    assert out.tobytes() == np.ascontiguousarray(want).tobytes()


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_an_empty_axis_cannot_be_extended(mode):
    with pytest.raises(ValueError, match="needs an element"):
        pad_calls(view_of(np.zeros((2, 2))), view_of(np.zeros((2, 0))), ((0, 0), (1, 1)), mode)


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="mode 'mean'"):
        pad_calls(view_of(np.zeros(2)), view_of(np.zeros(2)), ((0, 0),), "mean")


@given(data=st.data(), order=st.sampled_from(ORDERS))
def test_tile_and_repeat_are_numpys(data, order):
    x, x_view = data.draw(strided(data.draw(SHAPES), "f4"))
    times = tuple(data.draw(st.integers(0, 3)) for _ in x.shape)
    want = np.tile(x, times)
    out = filled(want)
    run_calls(tile_calls(view_of(out), x_view, times), order=order)
    assert out.tobytes() == want.tobytes()
    axis = data.draw(st.integers(0, x.ndim - 1))
    want = np.repeat(x, times[0], axis)
    out = filled(want)
    run_calls(repeat_calls(view_of(out), x_view, times[0], axis), order=order)
    assert out.tobytes() == want.tobytes()


@given(data=st.data(), order=st.sampled_from(ORDERS))
def test_joined_and_flipped_parts_are_numpys(data, order):
    shape = data.draw(SHAPES)
    axis = data.draw(st.integers(0, len(shape) - 1))
    pairs = [data.draw(strided((*shape[:axis], n, *shape[axis + 1 :]), "i2")) for n in (3, 0, 1, 8)]
    want = np.concatenate([x for x, _ in pairs], axis)
    out = filled(want)
    run_calls(concat_calls(view_of(out), [view for _, view in pairs], axis), order=order)
    assert out.tobytes() == want.tobytes()
    back = filled(want)
    run_calls(copy_calls(view_of(back), flipped(view_of(out), (axis,))), order=order)
    assert back.tobytes() == np.ascontiguousarray(np.flip(want, axis)).tobytes()
