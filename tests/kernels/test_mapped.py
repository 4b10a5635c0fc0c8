"""Arrays in mapped files: copied in pieces, and forgotten without losing anything."""

import mmap

import numpy as np
import pytest

import cgraph as cg
from cgraph.kernels.mapped import (
    PIECE,
    aligned,
    copy_to,
    in_c_order,
    in_memory,
    is_finite,
    mapping_of,
    release,
    release_rows,
    written_mapping_of,
)

SHAPE = (37, 150, 101)  # two pieces and a rest


@pytest.fixture
def mapped(tmp_path):
    """An array in a mapped file, whose elements do not lie aligned."""
    values = np.random.default_rng(0).standard_normal(SHAPE).astype("f4")
    path = tmp_path / "x"
    path.write_bytes(b"odd" + values.tobytes() + b"behind")
    with path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(memoryview(mapping)[3:-6], "f4").reshape(SHAPE), values


VIEWS = {
    "whole": lambda x: x,
    "transposed": lambda x: x.transpose(2, 0, 1),
    "columns": lambda x: x[:, :, 90:],
    "backwards": lambda x: x[::-1, ::2],
    "spread": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x.reshape(-1), 3)[: x.size // 2],
    "one": lambda x: x[3, 4, 5:6],
    "none": lambda x: x[:0],
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_copy_has_the_values_of_the_file(mapped, view):
    x, values = (VIEWS[view](a) for a in mapped)
    out = np.full(x.shape, np.nan, "f4")
    copy_to(out, x)
    np.testing.assert_array_equal(out, values)
    np.testing.assert_array_equal(in_c_order(x), values)
    assert in_c_order(x).flags.c_contiguous


@pytest.mark.parametrize(
    "copied", [lambda x: copy_to(np.empty(x.shape, "f4"), x), in_c_order, in_memory, aligned, is_finite]
)
@pytest.mark.parametrize("view", VIEWS)
def test_all_bytes_that_a_copy_has_read_are_released(mapped, view, copied, monkeypatch):
    x, mapping = VIEWS[view](mapped[0]), mapping_of(mapped[0])
    read = VIEWS[view](np.arange(3, 3 + mapped[0].nbytes, 4).reshape(SHAPE)).ravel()
    released = np.zeros(len(mapping), bool)

    def note(_, first, nbytes):
        released[first : first + nbytes] = True

    monkeypatch.setattr("cgraph.kernels.mapped.release_range", note)
    monkeypatch.setattr("cgraph.kernels.mapped.AROUND", mmap.PAGESIZE)
    if copied is aligned and not x.flags.c_contiguous:
        return  # it takes arrays in C order
    assert copied(x) is x or released[read].all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0, 0), (18, 149, 100), (-1, -1, -1)])
def test_one_number_that_is_not_finite_is_found_wherever_it_is(tmp_path, place, value):
    values = np.zeros(SHAPE, "f4")
    assert is_finite(values) and is_finite(values[:0]) and is_finite(values[0, 0, 0])
    values[place] = value
    np.save(tmp_path / "x.npy", values)
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert mapping_of(x) is not None
    assert not is_finite(x) and not is_finite(values) and not is_finite(values[place])
    assert is_finite(np.where(np.isfinite(values), values, 1))


def test_what_is_forgotten_is_read_again(mapped):
    x, values = mapped
    assert x.nbytes > 2 * PIECE and mapping_of(x[1:].T) is mapping_of(x) is not None
    for part in (x, x[3:4], x.T[5], x[:0]):
        release(part)
        np.testing.assert_array_equal(x, values)


def test_unaligned_elements_are_copied_and_no_others(mapped):
    x, values = mapped
    assert not x.flags.aligned
    found = aligned(x)
    assert found.flags.aligned and aligned(found) is found
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("access", [mmap.ACCESS_COPY, mmap.ACCESS_WRITE])
def test_what_was_written_into_a_mapping_stays(tmp_path, access):
    path = tmp_path / "x"
    path.write_bytes(bytes(4 * mmap.PAGESIZE))
    with path.open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=access)
    x = np.frombuffer(mapping, "u1")
    x[:] = 7
    x.flags.writeable = False
    assert mapping_of(x) is None
    release(x)
    assert (x == 7).all()


@pytest.mark.parametrize(("mode", "is_written"), [("r", False), ("r+", True), ("w+", True), ("c", False)])
@pytest.mark.parametrize("view", VIEWS)
def test_numpys_mappings_are_written_into_their_file_or_read_only_or_neither(tmp_path, view, mode, is_written):
    path = tmp_path / "x"
    path.write_bytes(bytes(4 * np.prod(SHAPE)))
    x = VIEWS[view](np.memmap(path, "f4", mode, shape=SHAPE))
    assert (written_mapping_of(x) is not None) == is_written or not isinstance(x, np.memmap)
    assert (mapping_of(x) is not None) == (mode == "r")
    assert written_mapping_of(np.array(x)) is None is mapping_of(np.array(x))


def test_small_constants_do_not_stay_in_a_file(mapped):
    x, values = mapped
    small, large = (cg.Const(part, copy=False).op.array for part in (x[0], x))
    assert mapping_of(small) is None and small.flags.aligned and mapping_of(large) is not None
    np.testing.assert_array_equal(small, values[0])


def test_an_array_in_memory_is_left_alone():
    x = np.arange(8.0)
    release(x)
    assert mapping_of(x) is None and all(f(x) is x for f in (aligned, in_c_order, in_memory))


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)])
def test_what_does_not_lie_in_c_order_is_copied_into_it(axes):
    """Fortran's order among others, which is contiguous as well; an array in C order is given back."""
    x = np.arange(24.0).reshape(2, 3, 4).transpose(axes)
    found = in_c_order(x)
    assert found.flags.c_contiguous and (found is x) == x.flags.c_contiguous
    np.testing.assert_array_equal(found, x)


def noted(monkeypatch, mapping):
    """The bytes of a mapping that are released, page by page."""
    released = np.zeros(-(-len(mapping) // mmap.PAGESIZE) * mmap.PAGESIZE, bool)

    def note(of, first, nbytes):
        assert of is mapping and first % mmap.PAGESIZE == 0
        released[first : first + nbytes] = True

    monkeypatch.setattr("cgraph.kernels.mapped.release_range", note)
    monkeypatch.setattr("cgraph.kernels.mapped.AROUND", mmap.PAGESIZE)
    return released


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_rows_of_each_image_and_channel_are_released_and_no_others(tmp_path, mode, monkeypatch):
    path, shape = tmp_path / "x", (2, 3, 9, mmap.PAGESIZE)  # a row is a page
    path.write_bytes(bytes(np.prod(shape)))
    x = np.memmap(path, "u1", mode, shape=shape)
    released = noted(monkeypatch, mapping_of(x) or written_mapping_of(x))
    release_rows(x[:, :, 2:5])
    want = np.zeros(shape[:3], bool)
    want[:, :, 2:5] = True
    np.testing.assert_array_equal(released.reshape(shape).any(3), want)
    assert released.reshape(-1, mmap.PAGESIZE).sum() == want.sum() * mmap.PAGESIZE


def test_nothing_is_released_of_other_arrays_or_of_no_rows(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(bytes(4 * mmap.PAGESIZE))
    monkeypatch.setattr("cgraph.kernels.mapped.release_range", lambda *_: pytest.fail("released"))
    for x in (np.memmap(path, "u1", "c", shape=(1, 1, 4, mmap.PAGESIZE)), np.zeros((1, 1, 4, 5))):
        release_rows(x)
    release_rows(np.memmap(path, "u1", "r", shape=(1, 1, 4, mmap.PAGESIZE))[:, :, :0])
    release(np.memmap(path, "u1", "r", shape=(1, 1, 4, mmap.PAGESIZE))[:, :, :0])


@pytest.mark.parametrize("count", [1, 2, 7])
def test_numbers_are_checked_a_piece_at_a_time(count, tmp_path, monkeypatch):
    """A piece has whole rows, one at least; a number that is not finite ends the reading."""
    np.save(tmp_path / "x.npy", values := np.zeros((7, 5), "f4"))
    values[3, 4] = np.inf
    np.save(tmp_path / "y.npy", values)
    pieces = []
    monkeypatch.setattr("cgraph.kernels.mapped.release", lambda x: pieces.append(len(x)))
    for piece in (20 * count, 20 * count + 19):
        monkeypatch.setattr("cgraph.kernels.mapped.PIECE", piece)
        pieces.clear()
        assert is_finite(np.load(tmp_path / "x.npy", mmap_mode="r"))
        assert pieces == [min(count, 7 - i) for i in range(0, 7, count)]
        pieces.clear()
        assert not is_finite(np.load(tmp_path / "y.npy", mmap_mode="r"))
        assert sum(pieces) == min(-(-4 // count) * count, 7)
    monkeypatch.setattr("cgraph.kernels.mapped.PIECE", 1)
    pieces.clear()
    assert is_finite(np.load(tmp_path / "x.npy", mmap_mode="r")) and pieces == [1] * 7
