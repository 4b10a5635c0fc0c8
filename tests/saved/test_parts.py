"""The files of one target: sizes and sums are those of the manifest, and what a ring's pieces may be."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.saved.layout import PAGE, sum_of
from cgraph.saved.parts import check_file, in_memory_of, is_addend, places_of
from cgraph.system.alignment import ALIGNMENT

RAW = np.arange(100, dtype=np.uint8)


def test_a_file_has_its_size_and_if_asked_its_sum():
    fits, other = {"a": [100, sum_of([RAW])]}, {"a": [100, 1]}
    assert check_file("a", RAW, fits, True) is RAW and check_file("a", RAW, other, False) is RAW
    with pytest.raises(FormatError, match="a is not what was saved"):
        check_file("a", RAW, other, True)
    for summed in (True, False):
        with pytest.raises(FormatError, match="a has 99 bytes, 100 were saved"):
            check_file("a", RAW[:99], fits, summed)
        with pytest.raises(FormatError, match="malformed"):
            check_file("b", RAW, fits, summed)


@pytest.mark.parametrize("ring", [
    [8, []], [8, None], [-1, [[0, 1]]], [True, [[0, 1]]], [8], [8, [[0]]], [8, [[0, -1]]], [8, [[0.0, 1]]], None,
    [8, [[0, 1]], 3],
], ids=str)  # fmt: skip
def test_a_ring_of_another_form_is_malformed(ring):
    with pytest.raises(FormatError, match="malformed"):
        places_of(ring, 9 * PAGE)


def test_pieces_lie_at_pages_and_fill_them():
    assert places_of([8, [[PAGE, 5], [0, PAGE]]], 2 * PAGE) == (8, [(PAGE, 5), (0, PAGE)])
    for start, nbytes, size in ((1, 1, 9 * PAGE), (PAGE, 1, 2 * PAGE - 1), (0, PAGE + 1, PAGE)):
        with pytest.raises(FormatError, match="weights outside"):
            places_of([8, [[start, nbytes]]], size)


def test_what_is_added_to_an_address_has_32_bits():
    assert all(map(is_addend, (0, -5, 2**31 - 1, 1 - 2**31)))
    assert not any(map(is_addend, (2**31, -(2**31), 1.0, True, None)))


def test_constants_in_memory_are_aligned_and_their_own():
    raw = RAW.copy()
    copy = in_memory_of(raw[1:])
    raw[:] = 0
    assert copy.ctypes.data % ALIGNMENT == 0 and copy.tolist() == list(range(1, 100))
