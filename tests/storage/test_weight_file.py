"""Weight files: where arrays lie, what the table says of them, and when a file is written anew."""

import pickle
import threading
import time
import tracemalloc

import numpy as np
import pytest

from cgraph.errors import GraphError, WeightsError
from cgraph.storage import weight_file
from cgraph.storage.weight_file import (
    ENTRY,
    PAGE,
    Checksum,
    Spool,
    StreamedWeights,
    arrays_on_disk,
    check_weights,
    contents,
    digest_of,
    header,
    pages,
    place_of,
    sums_in,
    sums_of,
    with_progress,
)
from tests.support.patience import PATIENCE

ARRAYS = [np.arange(10, dtype="f4"), np.zeros((0, 3)), np.arange(5000, dtype="i8").reshape(2, 2500), np.ones(1, "u1")]


def test_every_array_begins_at_a_page_of_its_own():
    head, places = header(ARRAYS)
    assert places == [2 * PAGE, 3 * PAGE, 3 * PAGE, 13 * PAGE, 14 * PAGE] and len(head) == PAGE + ENTRY * len(ARRAYS)
    assert len(b"".join(contents(head, places, ARRAYS))) == places[-1]
    assert header([ARRAYS[3]] * (PAGE // ENTRY + 1))[1][0] == 3 * PAGE
    assert [pages(n) for n in (0, 1, PAGE, PAGE + 1)] == [0, PAGE, PAGE, 2 * PAGE]


def test_the_table_says_where_arrays_lie_how_long_they_are_and_their_digests():
    head, places = header([ARRAYS[0], ARRAYS[2]])
    want = {place: Checksum(x.nbytes, digest_of(x.data)) for place, x in zip(places, (ARRAYS[0], ARRAYS[2]))}
    assert sums_in(head[PAGE:]) == want == sums_of(dict(zip(places, (ARRAYS[0], ARRAYS[2]))))
    entry = want[places[0]]
    raw = ARRAYS[0].tobytes()
    assert entry.fits(memoryview(raw + b"more")) and not entry.fits(memoryview(raw[:-1]))


def test_arrays_are_written_once_and_again_when_they_differ(tmp_path):
    reports = []
    weights = StreamedWeights(str(tmp_path / "w"), progress=lambda done, size: reports.append((done, size)))
    mapped = arrays_on_disk(weights, [x.T for x in ARRAYS])
    for got, want in zip(mapped, ARRAYS, strict=True):
        np.testing.assert_array_equal(got, want.T)
        assert got.dtype == want.dtype
    size = (tmp_path / "w").stat().st_size
    assert reports[-1] == (size, size) and reports == sorted(reports)
    count = len(reports)
    again = arrays_on_disk(weights, [x.T for x in ARRAYS])
    assert len(reports) == count  # the table says that the file has these arrays
    mapping, place = place_of(again[2])
    assert place == 3 * PAGE and mapping.weights is weights and place in mapping.sums
    assert place_of(ARRAYS[0]) is None and place_of(again[0])[1] == 2 * PAGE
    with (tmp_path / "w").open("ab") as file:
        file.write(b"more")
    arrays_on_disk(weights, [x.T for x in ARRAYS])
    assert (tmp_path / "w").stat().st_size == size
    count = len(reports)
    arrays_on_disk(weights, ARRAYS[:1])
    assert len(reports) > count and (tmp_path / "w").stat().st_size == 3 * PAGE


@pytest.mark.parametrize("at", [0, 8, 16, 24, PAGE, PAGE + 8, PAGE + 16, 2 * PAGE, 2 * PAGE + 39, 3 * PAGE + 39_999])
def test_damage_anywhere_is_found(tmp_path, at):
    path = tmp_path / "w"
    arrays_on_disk(StreamedWeights(str(path)), [ARRAYS[0], ARRAYS[2]])
    check_weights(path)
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)
    match = "not a weight file of this version" if at < 2 * PAGE else f"array {int(at >= 3 * PAGE)}, "
    with pytest.raises(WeightsError, match=match):
        check_weights(path)


@pytest.mark.parametrize("count", [2**32, 2**64 - 1])
def test_a_count_of_arrays_beyond_the_file_takes_no_more_memory_than_the_file(tmp_path, count):
    path = tmp_path / "w"
    arrays_on_disk(StreamedWeights(str(path)), [np.ones(1 << 16, "f4")])
    raw = path.read_bytes()
    path.write_bytes(raw[:16] + count.to_bytes(8, "little") + raw[24:])
    tracemalloc.start()
    try:
        with pytest.raises(WeightsError, match="its table is damaged"):
            check_weights(path)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(raw) + (1 << 20)
    finally:
        tracemalloc.stop()


def test_progress_counts_the_bytes_that_went_before():
    reports = []
    parts = with_progress(iter([b"abc", b"", b"de"]), 5, lambda *x: reports.append(x))
    assert b"".join(parts) == b"abcde" and reports == [(3, 5), (3, 5), (5, 5)]
    assert list(with_progress(iter([b"a"]), 1, None)) == [b"a"]


def test_small_and_mapped_arrays_stay_and_others_go_to_a_file(tmp_path):
    spool, small, large = Spool(tmp_path, 40), ARRAYS[0], ARRAYS[2]
    assert spool.keep(small) is small and spool.mapping is None
    first, second = spool.keep(large), spool.keep(large.T)
    np.testing.assert_array_equal(first, large)
    np.testing.assert_array_equal(second, large.T)
    assert first is not large and spool.keep(first) is first and spool.at == 2 * pages(large.nbytes)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("view", ["whole", "rows", "turned", "every second", "reversed"])
def test_views_of_a_mapped_array_stay_where_they_are_in_c_order_only(tmp_path, view):
    """Others are written anew: what reads a mapped array reads its bytes in order."""
    spool, place = Spool(tmp_path, 0), np.s_[1:] if view == "rows" else np.s_[:, ::2] if "second" in view else np.s_[:]
    x = spool.keep(np.arange(12, dtype="i8").reshape(3, 4))[place]
    x = x.T if view == "turned" else x[::-1] if view == "reversed" else x
    kept = spool.keep(x)
    assert (kept is x) is (view in ("whole", "rows"))
    assert kept.flags.c_contiguous
    np.testing.assert_array_equal(kept, x)


def test_a_spool_goes_on_in_another_file_and_leaves_earlier_arrays(tmp_path, monkeypatch):
    """Two pages to a file, more for a larger array; an array may end with its file."""
    monkeypatch.setattr("cgraph.storage.weight_file.SPOOL", 2 * PAGE)
    spool = Spool(tmp_path, 0)
    arrays = [np.full(n, i, "u1") for i, n in enumerate((1, PAGE, 1, PAGE + 1, 2 * PAGE, 2 * PAGE + 1, 5))]
    kept, mappings = [], []
    for x in arrays:
        kept.append(spool.keep(x))
        mappings.append(spool.mapping)
    for got, x in zip(kept, arrays, strict=True):
        np.testing.assert_array_equal(got, x)
    assert [a is b for a, b in zip(mappings, mappings[1:])] == [True, False, False, False, False, False]
    assert len(mappings[-2]) == 3 * PAGE


def test_sizes_are_numbers_or_texts_of_at_least_a_byte():
    weights = StreamedWeights("w", ring="2KiB", slice=1)
    assert weights.ring_nbytes == 2048 and weights.slice_nbytes == 1
    assert StreamedWeights("w").ring_nbytes is None and StreamedWeights("w").slice_nbytes is None
    for name in ("ring", "slice"):
        for wrong in (0, "0B", "many"):
            with pytest.raises(GraphError, match=name):
                StreamedWeights("w", **{name: wrong})


def test_files_that_are_read_stay_and_those_that_nobody_reads_are_written_anew(tmp_path):
    weights = StreamedWeights(str(tmp_path / "w"))
    draws = [[np.full(9_000, seed, "f4")] for seed in range(3)]
    mapped = [arrays_on_disk(weights if seed else weights.with_ring(PAGE), x)[0] for seed, x in enumerate(draws)]
    assert [place_of(x)[0].path for x in mapped] == [str(tmp_path / name) for name in ("w", "w-2", "w-3")]
    for seed, x in enumerate(mapped):
        assert (np.fromfile(place_of(x)[0].path, "f4", 9_000, offset=place_of(x)[1]) == seed).all()
    assert place_of(arrays_on_disk(weights, draws[1])[0])[0].path == str(tmp_path / "w-2")
    del x, mapped[1]
    assert place_of(arrays_on_disk(weights, [np.full(9_000, 5, "f4")])[0])[0].path == str(tmp_path / "w-2")
    (tmp_path / "w").write_bytes(b"of another program")
    assert place_of(arrays_on_disk(weights, draws[2])[0])[0].path == str(tmp_path / "w")


def test_options_are_copied_without_the_files_that_this_process_reads(tmp_path):
    weights = StreamedWeights(str(tmp_path / "w"), "1MiB", verify=True)
    arrays_on_disk(weights, ARRAYS)
    copy = pickle.loads(pickle.dumps(weights))
    assert copy == weights and copy.files is not weights.files


def test_another_ring_leaves_the_other_options_and_the_files():
    weights = StreamedWeights("w", "1MiB", "2KiB", print, True)
    other = weights.with_ring(5)
    assert (other.ring_nbytes, weights.ring_nbytes, other.files) == (5, 1 << 20, weights.files)
    assert (other.path, other.slice_nbytes, other.progress, other.verify) == ("w", 2048, print, True)


@pytest.mark.parametrize("portion", [7, 40, 1000, 40_000, 40_001])
def test_arrays_are_checked_to_their_last_byte_in_portions_of_any_size(tmp_path, monkeypatch, portion):
    monkeypatch.setattr("cgraph.storage.weight_file.PORTION", portion)
    path = tmp_path / "w"
    arrays_on_disk(StreamedWeights(str(path)), [ARRAYS[0], ARRAYS[2]])
    check_weights(path)
    raw = bytearray(path.read_bytes())
    raw[3 * PAGE + 39_999] ^= 1
    path.write_bytes(raw)
    with pytest.raises(WeightsError, match="array 1, 40000 bytes at 12288, is damaged"):
        check_weights(path)


@pytest.mark.parametrize(("at", "number"), [(2 * PAGE, 1), (3 * PAGE, 3)])
def test_an_array_behind_empty_ones_has_its_number_in_the_list(tmp_path, at, number):
    """An empty array begins where the next one does."""
    path = tmp_path / "w"
    arrays_on_disk(StreamedWeights(str(path)), [ARRAYS[1], ARRAYS[0], ARRAYS[1], ARRAYS[2]])
    check_weights(path)
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)
    with pytest.raises(WeightsError, match=f"array {number}, .* bytes at {at}, is damaged"):
        check_weights(path)


def test_one_compile_at_a_time_adds_a_file(tmp_path, monkeypatch):
    """While one is written, another compile with the same options waits, and takes the next path."""
    weights, busy, seen = StreamedWeights(str(tmp_path / "w")), [], []
    replace_file = weight_file.replace_file

    def slow(path, parts):
        busy.append(path)
        seen.append(len(busy))
        time.sleep(0.05)
        replace_file(path, parts)
        busy.remove(path)

    monkeypatch.setattr(weight_file, "replace_file", slow)
    found = {}

    def write(seed):
        found[seed] = arrays_on_disk(weights, [np.full(9_000, seed, "f4")])[0]

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert seen == [1, 1, 1] and sorted(path.name for path in tmp_path.iterdir()) == ["w", "w-2", "w-3"]
    assert all((x == seed).all() for seed, x in found.items()) and len(found) == 3


def test_pages_of_arrays_are_released_when_they_were_summed_and_when_they_were_written(monkeypatch):
    """Each before the next one is read, so that one array at a time is in memory."""
    released, arrays = [], [np.full(n, n, "f4") for n in (3, 5)]
    monkeypatch.setattr(weight_file, "release", released.append)
    head, places = header(arrays)
    assert [id(x) for x in released] == [id(x) for x in arrays]
    released.clear()
    seen = [len(released) for _ in contents(head, places, arrays)]
    assert seen == [0, 0, 0, 1, 1] and [id(x) for x in released] == [id(x) for x in arrays]
    released.clear()
    sums_of(dict(zip(places, arrays)))
    assert [id(x) for x in released] == [id(x) for x in arrays]
