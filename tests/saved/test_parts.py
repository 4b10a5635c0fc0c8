"""The files of one target: sizes and sums are those of the manifest, and what a ring's pieces may be."""

from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.kernels.code_image import ADDRESS_BYTES
from cgraph.saved.layout import PAGE, sum_of
from cgraph.saved.manifest import FileArrays
from cgraph.saved.parts import Parts, check_file, in_memory_of, is_addend, places_of
from cgraph.saved.pieces import Pieces
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


CODE = np.zeros(64, np.uint8)
LAST = len(CODE) - ADDRESS_BYTES


def image_of(inner=((0, 3),), starts=(0, 63), outer=(("f", 8, 0),), code=CODE):
    """The image of some machine code, with addresses in it and of functions elsewhere."""
    pieces = Pieces()
    pieces.name("kernels.inner", np.array(inner, np.int64).reshape(-1, 2))
    pieces.name("kernels.starts", np.array(starts, np.int64))
    arrays = FileArrays(np.frombuffer(b"".join(map(bytes, pieces.parts)), np.uint8), pieces.index)
    entry = {"kernels.outer": [list(x) for x in outer]}
    return Parts.image(
        SimpleNamespace(files={"kernels-t.bin": code}, target="t", arrays=arrays, entry=entry), "kernels"
    )


def test_an_image_has_its_starts_by_number_and_both_kinds_of_addresses():
    image = image_of([[0, 3], [LAST, 63]], [5, 0, 63], [["f", LAST, -4], ["g", 0, 2**31 - 1]])
    assert image.code is CODE and image.symbols == {"0": 5, "1": 0, "2": 63}
    assert image.inner.tolist() == [[0, 3], [LAST, 63]]
    assert image.outer == (("f", LAST, -4), ("g", 0, 2**31 - 1))
    empty = image_of([], [], [])
    assert empty.symbols == {} and empty.inner.shape == (0, 2) and empty.outer == ()


OUTSIDE = {
    "an address inside, partly behind the end": {"inner": [[0, 3], [LAST + 1, 0]]},
    "an address inside, before the beginning": {"inner": [[-1, 0]]},
    "what an address inside leads to": {"inner": [[0, 64]]},
    "a start": {"starts": [0, 64]},
    "a start before the beginning": {"starts": [-1]},
    "an address of a function, partly behind the end": {"outer": [["f", 0, 0], ["g", LAST + 1, 0]]},
    "an address of a function before the beginning": {"outer": [["f", -1, 0]]},
    "a function without a name": {"outer": [[1, 0, 0]]},
    "an addend of more than 32 bits": {"outer": [["f", 0, 2**31]]},
    "an addend that is no integer": {"outer": [["f", 0, 0.0]]},
    "a place that is no integer": {"outer": [["f", True, 0]]},
    "an address of a function in two parts": {"outer": [["f", 0]]},
    "an address in no code": {"inner": [[0, 0]], "starts": [], "outer": [], "code": CODE[:0]},
    "an address of a function in no code": {"inner": [], "starts": [], "outer": [["f", 0, 0]], "code": CODE[:0]},
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_addresses_lie_in_the_code_to_their_last_byte(name):
    with pytest.raises(FormatError, match="malformed"):
        image_of(**OUTSIDE[name])
