"""Constants in huge pages: equal arrays at cache lines, side by side, freed together."""

import gc
import weakref

import numpy as np
import pytest

from cgraph.kernels import huge_pages
from cgraph.kernels.huge_pages import FIRST, LARGE, PAGE, HugePages
from cgraph.system.alignment import aligned_zeros


def arrays(*sizes):
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, n, "u1") for n in sizes]


def keep_all(xs):
    pages = HugePages()
    return [pages.keep(x) for x in xs]


@pytest.mark.parametrize("has", [False, True])
def test_arrays_stay_equal_and_begin_with_a_cache_line(has, monkeypatch):
    monkeypatch.setattr(huge_pages, "has_huge_pages", lambda: has)
    raw = np.zeros(1 << 10, "f4")[1:]
    xs = [raw.reshape(11, 93), *arrays(0, 7, FIRST, 1, 65, *[LARGE - 1] * 20, 100), np.array(3.0)]
    for x, y in zip(xs, keep_all(xs), strict=True):
        assert y.ctypes.data % 64 == 0 and y.shape == x.shape and y.dtype == x.dtype
        np.testing.assert_array_equal(x, y)


def test_what_follows_the_first_bytes_lies_side_by_side_from_a_huge_page_on():
    _, first, second, third = keep_all(arrays(FIRST - 1, 100, 64, 1))
    assert first.ctypes.data % PAGE == 0
    assert [y.ctypes.data - first.ctypes.data for y in (second, third)] == [128, 192]


def test_few_bytes_stay_where_they_are():
    raw = np.zeros(1 << 16, "u1")
    lines = raw[-raw.ctypes.data % 64 :]
    assert HugePages().keep(lines) is lines


def test_large_arrays_are_not_copied():
    (large,) = arrays(LARGE)
    pages = HugePages()
    assert pages.keep(large) is large and pages.keep(large[1:]) is not large


def test_a_chunk_lives_as_long_as_an_array_in_it():
    first, second = keep_all(arrays(FIRST, 9))
    chunk = weakref.ref(second.base)
    del first
    gc.collect()
    assert chunk() is not None and len(second) == 9
    del second
    gc.collect()
    assert chunk() is None


@pytest.mark.parametrize("shape", [(), (0,), (3, 5)])
@pytest.mark.parametrize("dtype", ["f4", "u1", "f8"])
def test_aligned_zeros(shape, dtype):
    x = aligned_zeros(shape, np.dtype(dtype))
    assert x.shape == shape and x.dtype == dtype and x.ctypes.data % 64 == 0 and not x.any() and x.flags.c_contiguous


def test_a_chunk_is_filled_to_its_last_byte_and_then_there_is_another(monkeypatch):
    monkeypatch.setattr(huge_pages, "CHUNK", 1 << 12)
    monkeypatch.setattr(huge_pages, "FIRST", 0)
    pages = HugePages()
    if not huge_pages.has_huge_pages():
        pytest.skip("the system has no huge pages")
    (first,) = arrays(64)
    place = pages.keep(first).ctypes.data
    rest = pages._chunk.nbytes - 64
    (whole,) = arrays(rest)
    monkeypatch.setattr(huge_pages, "LARGE", rest + 1)
    kept = pages.keep(whole)
    assert kept.ctypes.data == place + 64
    np.testing.assert_array_equal(kept, whole)
    chunk = pages._chunk
    assert pages.keep(first).ctypes.data % PAGE == 0 and pages._chunk is not chunk


def test_a_chunk_has_at_least_the_bytes_that_are_asked_for(monkeypatch):
    monkeypatch.setattr(huge_pages, "CHUNK", 1 << 12)
    for nbytes in (1, 1 << 12, (1 << 12) + 1, 3 * PAGE + 5):
        chunk = huge_pages.new_chunk(nbytes)
        assert chunk.nbytes >= max(nbytes, 1 << 12) and chunk.ctypes.data % PAGE == 0 and not chunk[-1]
