"""Chunks of HDF5 files: filters undone one by one, edges, fills, and what is refused before it is unpacked."""

import zlib

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.hdf5_chunks import (
    DEFLATE,
    FLETCHER32,
    SHUFFLE,
    Chunk,
    check_place,
    filters_of,
    fletcher32,
    inflate,
    read_chunks,
    strip_checksum,
    undo_filters,
    unshuffle,
)

h5py = pytest.importorskip("h5py")


def dataset(folder, data=None, shape=None, **options):
    """A dataset of an open file."""
    path = folder / f"{len(list(folder.iterdir()))}.h5"
    return h5py.File(path, "w").create_dataset("x", shape, data=data, **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "gzip"},
        {"shuffle": True},
        {"fletcher32": True},
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["<f4", ">i2", "<f8", "u1"])
def test_an_array_whose_chunks_reach_beyond_it_comes_back(tmp_path, options, dtype):
    values = np.random.default_rng(0).integers(0, 99, (7, 5)).astype(dtype)
    x = dataset(tmp_path, values, chunks=(3, 4), **options)
    got = read_chunks("x", x, 1000, Allowance(0))
    assert got.dtype == values.dtype
    np.testing.assert_array_equal(got, values)


def test_chunks_that_are_not_stored_have_the_fill_value(tmp_path):
    x = dataset(tmp_path, shape=(4, 6), dtype="<i4", chunks=(2, 3), fillvalue=9)
    x[2:, :3] = 1
    want = np.full((4, 6), 9)
    want[2:, :3] = 1
    np.testing.assert_array_equal(read_chunks("x", x, 1000, Allowance(0)), want)


def test_an_array_may_declare_so_many_times_what_it_stores(tmp_path):
    x = dataset(tmp_path, shape=(40,), dtype="u1", chunks=(10,))
    x[:10] = 1
    assert read_chunks("x", x, 4, Allowance(0)).sum() == 10
    with pytest.raises(FormatError, match="x declares 40 bytes and stores 10, less than 1/3"):
        read_chunks("x", x, 3, Allowance(0))


def test_memory_is_charged_for_the_array_and_work_for_each_chunk(tmp_path):
    x, allowance = dataset(tmp_path, np.ones(40, "<f4"), chunks=(10,)), Allowance(0)
    nbytes, work = allowance.nbytes, allowance.work
    read_chunks("x", x, 9, allowance)
    assert nbytes - allowance.nbytes == 160 + 3 * 40 + 4 * 400 and work - allowance.work == 4 * 4 * 40
    allowance.nbytes = 4 * 400 + 160 + 3 * 40 - 1
    with pytest.raises(FormatError, match="^x would take 280 bytes"):
        read_chunks("x", x, 9, allowance)


def test_filters_are_listed_as_they_were_applied_and_others_are_named(tmp_path):
    x = dataset(tmp_path, np.ones(9, "<f8"), chunks=(9,), compression="gzip", shuffle=True, fletcher32=True)
    assert [number for number, _ in filters_of("x", x)] == [SHUFFLE, DEFLATE, FLETCHER32]
    assert filters_of("x", x)[0][1] == (8,)
    with pytest.raises(
        FormatError, match="w has the filters 32000 b'lzf': use gzip, shuffle and fletcher32, each once"
    ):
        filters_of("w", dataset(tmp_path, np.ones(9), chunks=(9,), compression="lzf"))
    twice = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    twice.set_chunk((9,))
    twice.set_shuffle()
    twice.set_shuffle()
    space = h5py.h5s.create_simple((9,))
    raw = h5py.h5d.create(h5py.File(tmp_path / "y.h5", "w").id, b"x", h5py.h5t.NATIVE_FLOAT, space, twice)
    with pytest.raises(FormatError, match="each once"):
        filters_of("x", h5py.Dataset(raw))


@pytest.mark.parametrize("count", [0, 1, 2, 5, 1000, 3 * 2**16 + 1])
def test_a_checksum_is_that_of_the_library(tmp_path, count):
    body = np.random.default_rng(count).integers(0, 256, max(count, 1), dtype="u1")
    if count == 0:
        assert fletcher32(b"") == (0, 0)
        return
    x = dataset(tmp_path, body, chunks=(count,), fletcher32=True)
    _, raw = x.id.read_direct_chunk((0,))
    total, expected = fletcher32(body.tobytes()), int.from_bytes(raw[-4:], "little")
    assert total == ((expected >> 16) % 65535, (expected & 0xFFFF) % 65535)
    assert strip_checksum("x", raw) == body.tobytes()
    flipped = bytes([raw[0] ^ 1]) + raw[1:]
    with pytest.raises(FormatError, match="x has a chunk that is damaged: its checksum differs"):
        strip_checksum("x", flipped)


def test_a_chunk_shorter_than_its_checksum_is_damaged():
    for raw in (b"", b"\0\0\0"):
        with pytest.raises(FormatError, match="checksum differs"):
            strip_checksum("x", raw)
    assert strip_checksum("x", bytes(4)) == b""


def test_shuffled_bytes_return_to_their_elements_and_a_part_of_one_stays():
    assert unshuffle(b"acebdf", 2) == b"abcdef" and unshuffle(b"adbecf", 3) == b"abcdef"
    assert unshuffle(b"acbd" + b"z", 2) == b"abcdz"
    for size in (0, 1, -1, 6):
        assert unshuffle(b"abcde", size) == b"abcde"


def test_no_more_is_unpacked_than_declared():
    raw = zlib.compress(bytes(100))
    assert inflate("x", raw, 100) == bytes(100)
    for packed, most in ((raw, 99), (raw[:-1], 100), (b"", 100)):
        with pytest.raises(FormatError, match=f"truncated or unpacks to more than its {most} bytes"):
            inflate("x", packed, most)
    with pytest.raises(FormatError, match="x has a chunk that is damaged: "):
        inflate("x", b"nonsense", 100)


def test_filters_are_undone_from_the_last_except_those_skipped():
    body = b"abcdefgh"
    shuffled = b"acegbdfh"
    packed = zlib.compress(shuffled)
    filters = [(SHUFFLE, (2,)), (DEFLATE, (4,))]
    assert undo_filters("x", packed, filters, 0, 8) == body
    assert undo_filters("x", shuffled, filters, 0b10, 8) == body
    assert undo_filters("x", zlib.compress(body), filters, 0b01, 8) == body
    assert undo_filters("x", body, filters, 0b11, 8) == body
    assert undo_filters("x", shuffled, [(SHUFFLE, ())], 0, 8) == shuffled
    assert undo_filters("x", shuffled, [(SHUFFLE, (2, 4, 1))], 0, 8) == body, "the size of an element comes first"
    for size in (7, 9):
        with pytest.raises(FormatError, match=f"x has a chunk that unpacks to 8 bytes, not {size}"):
            undo_filters("x", body, [], 0, size)


def test_a_checksum_may_be_packed_with_its_chunk_and_a_chunk_may_skip_filters(tmp_path):
    body = np.random.default_rng(0).integers(0, 256, 8, dtype="u1")
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk((8,))
    properties.set_fletcher32()
    properties.set_deflate(4)
    space = h5py.h5s.create_simple((16,))
    raw = h5py.h5d.create(h5py.File(tmp_path / "y.h5", "w").id, b"x", h5py.h5t.NATIVE_UINT8, space, properties)
    x = h5py.Dataset(raw)
    x[:8] = body
    x.id.write_direct_chunk((8,), body.tobytes(), 0b11)
    np.testing.assert_array_equal(read_chunks("x", x, 9, Allowance(0)), [*body, *body])


def test_a_chunk_lies_in_its_array_and_has_no_more_bytes_than_it_can_need(tmp_path):
    x = dataset(tmp_path, np.ones((4, 6)), chunks=(2, 3))
    check_place("x", x, Chunk((3, 5), 0, 48), 48)
    for offset in ((4, 0), (0, 6), (-1, 0)):
        with pytest.raises(FormatError, match="x has a chunk at .*, outside the shape"):
            check_place("x", x, Chunk(offset, 0, 48), 48)
    with pytest.raises(FormatError, match="x stores 49 bytes for a chunk"):
        check_place("x", x, Chunk((0, 0), 0, 49), 48)
