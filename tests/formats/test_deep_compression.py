"""The deep-compression layout: entries where they are said to be, the default elsewhere; and no byte too many."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats import deep_compression
from cgraph.formats.deep_compression import CODES, read_deep_compression

SHAPES = ((2, 3, 1, 1), (1, 2, 2, 5))
CODEBOOKS = [np.arange(CODES, dtype="f4") + i for i in (10, 500)]
ENTRIES = [{0: 7, 2: 255, 5: 1}, {3: 2, 19: 200}]  # place → code, of each layer
BIASES = [np.array([0.5, -0.5], "f4"), np.array([2.0], "f4")]


def packed(entries: list[dict[int, int]] = ENTRIES) -> bytes:
    """A file; distances are of 4 bits, so places lie at most 16 apart."""
    raw = np.array([len(x) for x in entries], "<u4").tobytes()
    for codebook, bias, places in zip(CODEBOOKS, BIASES, entries):
        gaps = np.diff([-1, *places]) - 1
        halves = [*gaps.tolist(), *[0] * (len(gaps) % 2)]
        raw += codebook.tobytes() + bias.tobytes() + bytes(places.values())
        raw += bytes(low | high << 4 for low, high in zip(halves[::2], halves[1::2]))
    return raw


def read(tmp_path, raw: bytes):
    (tmp_path / "x.net").write_bytes(raw)
    return read_deep_compression(tmp_path / "x.net", SHAPES)


def test_entries_lie_at_their_distances_and_the_default_elsewhere(tmp_path):
    found = read(tmp_path, packed())
    for (filters, bias), shape, codebook, want_bias, places in zip(found, SHAPES, CODEBOOKS, BIASES, ENTRIES):
        want = np.full(int(np.prod(shape)), codebook[0])
        want[list(places)] = codebook[list(places.values())]
        np.testing.assert_array_equal(filters, want.reshape(shape))
        np.testing.assert_array_equal(bias, want_bias)


@pytest.mark.parametrize("piece", [2, 4, 6, 1 << 16])
@pytest.mark.parametrize("count", [5, 6, 7])
def test_entries_placed_in_pieces_of_any_size_lie_where_they_belong(tmp_path, monkeypatch, piece, count):
    monkeypatch.setattr(deep_compression, "PIECE", piece)
    places = {at: 3 + at for at in [0, 3, 4, 9, 11, 15, 19][:count]}
    _, (filters, _) = read(tmp_path, packed([{}, places]))
    want = np.full(20, CODEBOOKS[1][0])
    want[list(places)] = CODEBOOKS[1][list(places.values())]
    np.testing.assert_array_equal(filters.reshape(-1), want)
    with pytest.raises(FormatError, match="an entry at 20 lies outside filters of 20 values"):
        read(tmp_path, packed([{}, {**places, 20: 1}]))


def test_a_layer_may_be_all_default(tmp_path):
    (filters, _), _ = read(tmp_path, packed([{}, ENTRIES[1]]))
    assert (filters == CODEBOOKS[0][0]).all()


def test_the_last_place_is_inside_and_the_next_is_not(tmp_path):
    assert read(tmp_path, packed([{5: 9}, ENTRIES[1]]))[0][0].reshape(-1)[5] == CODEBOOKS[0][9]
    with pytest.raises(FormatError, match="an entry at 6 lies outside filters of 6 values"):
        read(tmp_path, packed([{6: 9}, ENTRIES[1]]))


def test_every_file_cut_off_and_every_longer_one_is_refused(tmp_path):
    raw = packed()
    for length in range(0, len(raw), 29):
        with pytest.raises(FormatError, match="bytes at"):
            read(tmp_path, raw[:length])
    with pytest.raises(FormatError, match="1 bytes are left after the last of 2 layers"):
        read(tmp_path, raw + b"\0")


@pytest.mark.parametrize("last", [6, 7, 20, 15])
def test_an_entry_far_outside_is_named_by_its_place(tmp_path, last):
    with pytest.raises(FormatError, match=f"an entry at {last} lies outside filters of 6 values"):
        read(tmp_path, packed([{5: 9, last: 1}, ENTRIES[1]]))


@pytest.mark.parametrize("last", [20, 24, 35])
def test_an_entry_outside_is_found_in_the_piece_that_it_ends(tmp_path, monkeypatch, last):
    monkeypatch.setattr(deep_compression, "PIECE", 2)
    with pytest.raises(FormatError, match=f"an entry at {last} lies outside filters of 20 values"):
        read(tmp_path, packed([{}, {3: 1, 9: 2, 19: 3, last: 4}]))
