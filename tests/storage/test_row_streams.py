"""Rows come in pieces of any height and go out band by band; too few, too many and others are refused by name."""

import numpy as np
import pytest

from cgraph.errors import InputError
from cgraph.ir.spec import Spec
from cgraph.storage import row_streams
from cgraph.storage.row_streams import RowSink, RowSource

IMAGE = np.arange(2 * 3 * 7 * 5, dtype="float32").reshape(2, 3, 7, 5)
SPEC = Spec(IMAGE.shape, IMAGE.dtype)


def read(source: RowSource, heights: list[int]) -> np.ndarray:
    """The image that bands of these heights give."""
    bands = [np.full((2, 3, height, 5), np.nan, "float32") for height in heights]
    for band in bands:
        source(band)
    return np.concatenate(bands, 2)


def cut(*heights: int) -> list[np.ndarray]:
    """The image in pieces of these heights; single rows without their axis."""
    ends = np.cumsum(heights)
    parts = [IMAGE[:, :, end - height : end] for height, end in zip(heights, ends)]
    return [part[:, :, 0] if part.shape[2] == 1 else part for part in parts]


@pytest.mark.parametrize("heights", [[7], [1] * 7, [3, 4], [2, 2, 2, 1], [6, 1]], ids=str)
@pytest.mark.parametrize("pieces", [(7,), (1,) * 7, (3, 1, 3), (5, 2), (2, 5)], ids=str)
def test_pieces_of_any_heights_fill_bands_of_any_heights(heights, pieces):
    np.testing.assert_array_equal(read(RowSource(iter(cut(*pieces)), SPEC, "x"), heights), IMAGE)
    np.testing.assert_array_equal(read(RowSource(IMAGE, SPEC, "x"), heights), IMAGE)


def test_too_few_and_too_many_rows_are_counted():
    with pytest.raises(InputError, match=r"x float32\[2,3,7,5\]: its rows end after 5 of 7"):
        read(RowSource(iter(cut(3, 2)), SPEC, "x"), [4, 3])
    for pieces in ([*cut(7), IMAGE[:, :, 0]], [*cut(3, 3), IMAGE[:, :, :2]]):
        source = RowSource(iter(pieces), SPEC, "x")
        with pytest.raises(InputError, match="more than its 7 rows"):
            read(source, [3, 4])
    source = RowSource(iter(cut(7)), SPEC, "x")
    read(source, [3])
    assert source.position == 3


@pytest.mark.parametrize(("rows", "match"), [
    (IMAGE[:, :, 0].astype("float64"), r"float32\[2,3,5\] or float32\[2,3,rows,5\], got float64\[2,3,5\]"),
    (IMAGE[:, :, 0, :4], r"got float32\[2,3,4\]"), (IMAGE[:1], r"got float32\[1,3,7,5\]"), (IMAGE[:, :, :0], "got"),
    (IMAGE[0, 0], r"got float32\[7,5\]"), ([1.0], r"must yield arrays, got \[1.0\]"), (IMAGE[:, :, None], "got"),
])  # fmt: skip
def test_rows_that_do_not_fit_are_refused_with_what_they_are(rows, match):
    with pytest.raises(InputError, match=match):
        read(RowSource(iter([rows]), SPEC, "x"), [7])


def test_whole_arrays_and_what_is_no_iterator_are_checked_at_once():
    for wrong in (IMAGE.astype("float64"), IMAGE[:1], 3.0, None):
        with pytest.raises(InputError, match="x expects float32"):
            RowSource(wrong, SPEC, "x")


def test_an_error_of_the_iterator_names_the_input():
    def rows():
        yield IMAGE[:, :, :2]
        raise OSError("gone")

    with pytest.raises(OSError, match="gone") as caught:
        read(RowSource(rows(), SPEC, "photo"), [7])
    assert caught.value.__notes__ == ["while reading rows of photo"]


def test_bands_go_into_an_array_one_below_the_other_or_each_to_a_function():
    whole, calls, band = np.zeros_like(IMAGE), [], np.empty((2, 3, 2, 5), "float32")
    into, to = RowSink(whole), RowSink(calls.append)
    for at in (0, 2, 4):
        band[...] = IMAGE[:, :, at : at + 2]
        into(band)
        to(band)
    into(IMAGE[:, :, 6:])
    np.testing.assert_array_equal(whole, IMAGE)
    np.testing.assert_array_equal(np.concatenate(calls, 2), IMAGE[:, :, :6])


@pytest.mark.parametrize("heights", [(7,), (3, 4), (2, 2, 2, 1)])
def test_pages_of_rows_are_released_as_they_were_read_and_as_they_were_written(monkeypatch, heights):
    released = []
    monkeypatch.setattr(row_streams, "release_rows", lambda x: released.append(x.shape))
    source, whole = RowSource(IMAGE.copy(), SPEC, "x"), np.zeros_like(IMAGE)
    sink = RowSink(whole)
    for n in heights:
        band = np.empty((2, 3, n, 5), "f4")
        source(band)
        sink(band)
    assert released == [(2, 3, n, 5) for n in heights for _ in range(2)]
    np.testing.assert_array_equal(whole, IMAGE)
