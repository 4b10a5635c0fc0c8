"""Windows over axes: which of them see padding alone, counted and derived."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.errors import ShapeError
from cgraph.ops import window
from cgraph.ops.window import Windows


@given(
    n=st.integers(1, 9),
    r=st.integers(1, 6),
    stride=st.integers(1, 5),
    dilation=st.integers(1, 12),
    pad=st.tuples(st.integers(0, 30), st.integers(0, 30)),
)
def test_windows_that_see_padding_alone_are_found_without_counting(n, r, stride, dilation, pad):
    moves = Windows((r,), (stride,), pad, (dilation,))
    try:
        results = (moves.result((n,)), moves.ceil_result((n,)))
    except ShapeError:
        return
    for found in results:
        assert moves.leave_out((n,), found) == bool((moves.counts((n,), found, False) == 0).any())


def test_small_windows_are_found_without_counting_one_by_one():
    for n, r, stride, dilation, before, behind in product(range(1, 4), (1, 2), range(1, 5), (1, 3), range(4), range(5)):
        moves = Windows((r,), (stride,), (before, behind), (dilation,))
        if n + before + behind < moves.extent[0]:
            continue
        for found in (moves.result((n,)), moves.ceil_result((n,))):
            assert moves.leave_out((n,), found) == bool((moves.counts((n,), found, False) == 0).any()), moves


def test_an_axis_without_windows_has_none_in_the_padding():
    assert not Windows((1, 1), (1, 1), (9, 0, 9, 0), (1, 1)).leave_out((3, 3), (0, 3))


def test_huge_windows_and_images_are_looked_at_without_counting(monkeypatch):
    wide = Windows((3,), (1,), (1, 1), (1,))
    assert not wide.leave_out((1 << 50,), wide.result((1 << 50,)))
    full = Windows((1 << 40,), (1,), ((1 << 40) - 1,) * 2, (1,))
    assert not full.leave_out((8,), full.result((8,)))
    monkeypatch.setattr(window, "MOST_BEFORE", 9)
    stepped = Windows((2,), (1,), (11, 0), (11,))
    with pytest.raises(ShapeError, match="10 windows of 12 begin in the padding of 11; at most 9 may"):
        stepped.leave_out((10,), stepped.result((10,)))
