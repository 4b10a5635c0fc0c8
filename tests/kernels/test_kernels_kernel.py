"""Addresses and views: equal from the same byte alone, pieces of a workspace apart, orders of elements."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer, View, contiguous, split_scratch
from cgraph.system.alignment import ALIGNMENT


@pytest.mark.parametrize("sizes", [(1, 1), (3, 0, 5), (64, 1, 65), (0, 7), (100, 100, 100)])
def test_pieces_of_a_workspace_begin_at_cache_lines_and_do_not_meet(sizes):
    memory = contiguous(Pointer("memory", 128), (4096,), "u1")
    found = split_scratch(memory, *sizes)
    assert [view is None for view in found] == [n == 0 for n in sizes]
    places = [(view.at.offset, view.at.offset + view.size) for view in found if view is not None]
    assert all(start % ALIGNMENT == 0 for start, _ in places) and places[0][0] >= 128
    assert all(stop <= start for (_, stop), (start, _) in zip(places, places[1:]))


def test_pointers_are_equal_only_from_the_same_memory_at_the_same_byte():
    base = np.zeros(3)
    assert Pointer(base, 8) == Pointer(base, 8) and hash(Pointer(base, 8)) == hash(Pointer(base, 8))
    assert Pointer(base, 8) != Pointer(base, 16) and Pointer(base, 8) != Pointer(np.zeros(3), 8)


@pytest.mark.parametrize(
    ("shape", "strides", "other", "same"),
    [
        ((2, 3), (12, 4), (12, 4), True),
        ((2, 3), (4, 8), (4, 8), True),
        ((2, 3), (4, 8), (12, 4), False),
        ((2, 3), (24, 8), (12, 4), False),
    ],
)
def test_elements_are_in_one_order_only_if_their_strides_are(shape, strides, other, same):
    first, second = (View(Pointer("a"), shape, s, "f4") for s in (strides, other))
    assert first.in_order_of(second) is same is second.in_order_of(first)
