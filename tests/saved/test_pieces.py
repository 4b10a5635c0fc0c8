"""A file of arrays: aligned, each content once where that is asked for, found by name, summed as it grows."""

from zlib import crc32

import numpy as np

from cgraph.saved.pieces import Pieces, bytes_in
from cgraph.system.alignment import ALIGNMENT


def content(pieces: Pieces) -> bytes:
    return b"".join(map(bytes, pieces.parts))


def test_arrays_begin_at_aligned_starts_and_the_sum_is_that_of_the_file():
    pieces = Pieces()
    starts = [
        pieces.add(np.arange(3, dtype="u1")),
        pieces.add(np.ones(2)),
        pieces.add(np.zeros(0)),
        pieces.add(np.ones(1)),
    ]
    assert starts == [0, ALIGNMENT, 2 * ALIGNMENT, 2 * ALIGNMENT]
    assert pieces.add(np.ones(1), 4096) == 4096
    pieces.fill(4096)
    raw = content(pieces)
    assert pieces.nbytes == len(raw) == 8192 and pieces.crc == crc32(raw)
    assert raw[:3] == b"\0\1\2" and raw[3:ALIGNMENT] == bytes(ALIGNMENT - 3)


def test_equal_contents_lie_once_whatever_their_dtype_unless_one_is_longer():
    pieces, x = Pieces(), np.zeros(4, "f4")
    first = pieces.add_once(x)
    assert pieces.add_once(np.zeros((2, 2), "i4")) == first
    assert pieces.add_once(np.zeros(5, "f4")) != first and pieces.add_once(np.ones(4, "f4")) != first
    assert pieces.add(x) != first


def test_a_named_array_is_found_by_dtype_shape_and_start():
    pieces = Pieces()
    pieces.add(np.ones(1, "u1"))
    pieces.name("rows", [[1, 2, 3], [4, 5, 6]])
    pieces.name("bits", np.array([7, 8]), "|u1")
    assert pieces.index == {"rows": ["<i8", [2, 3], ALIGNMENT], "bits": ["|u1", [2], 2 * ALIGNMENT]}
    assert np.frombuffer(content(pieces), "<i8", 6, ALIGNMENT).tolist() == [1, 2, 3, 4, 5, 6]


def test_bytes_lie_in_c_order():
    x = np.arange(6, dtype="i2").reshape(2, 3)
    assert bytes(bytes_in(x.T)) == x.T.copy().tobytes() and bytes(bytes_in(np.float64(1))) == np.float64(1).tobytes()


def test_pages_of_an_array_are_released_once_it_is_written(monkeypatch):
    released = []
    monkeypatch.setattr("cgraph.saved.pieces.release", released.append)
    arrays, file = [np.zeros(4), np.ones(4), np.zeros(4)], Pieces()
    for x in arrays:
        file.add_once(x)
    assert [id(x) for x in released] == [id(x) for x in arrays[:2]], "the last one is there already"
