"""Masks of COCO's objects: polygons, runs and packed runs as arrays of pixels.

Source: cocodataset.org/#format-data; for packed runs, pycocotools' ``maskApi.c``. Segmentations are not trusted: the
work of drawing is bounded before anything is drawn, and runs must fill their picture exactly. A mask takes a byte for
each of its pixels, and for a strip of `STRIP` pixels.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from cgraph import FormatError

MOST_PIXELS = 1 << 26  # of a picture
MOST_WORK = 1 << 32  # of the masks of one picture, each unit takes up to 1 ns
OBJECT = 100_000  # units of work for an object
CALL, CROSSING = 4096, 64  # for a polygon, and for an edge in one row, where it is sorted
STRIP = 1 << 20  # pixels that are drawn at once


def mask_of(segmentation: Any, rows: int, columns: int) -> np.ndarray:
    """Return a mask bool ``[rows, columns]`` from polygons, runs or packed runs. `check_work` bounds its time."""
    if isinstance(segmentation, list):
        return fill_polygons(segmentation, rows, columns)
    counts = segmentation.get("counts") if isinstance(segmentation, dict) else None
    return fill_runs(unpack_runs(counts) if isinstance(counts, str) else counts, rows, columns)


def is_coordinates(values: Any) -> bool:
    """Return True for a list of numbers in the range of pixel coordinates."""
    return isinstance(values, list) and all(type(v) in (int, float) and abs(v) <= MOST_PIXELS for v in values)


class Outlines(NamedTuple):
    """Polygons of one object, each of three or more corners.

    Fields
        corners: x and y of all corners, int32 ``[n, 2]``
        starts: number of each polygon's first corner, and n
    """

    corners: np.ndarray
    starts: np.ndarray


def outlines_of(polygons: list[list[float]]) -> Outlines:
    """Return polygons ``[x0, y0, x1, y1, …]`` with their coordinates truncated, as Pillow truncates them."""
    for corners in polygons:
        if not is_coordinates(corners) or len(corners) % 2:
            raise FormatError(f"{corners!r:.80} is not a polygon. Use a list of x and y in turn.")
    drawn = [corners for corners in polygons if len(corners) >= 6]
    starts = np.cumsum([0, *(len(corners) // 2 for corners in drawn)])
    values = np.fromiter(chain.from_iterable(drawn), np.float64, 2 * int(starts[-1]))
    return Outlines(values.astype(np.int32).reshape(-1, 2), starts)


def work_at_most(segmentation: Any, rows: int, columns: int) -> float:
    """Return an upper bound on the work of drawing an object's mask, from its number of corners."""
    if not isinstance(segmentation, list):
        return rows * columns
    counts = [len(corners) for corners in segmentation if isinstance(corners, list)]
    return sum(CALL + n * (rows + n * rows / 2 + CROSSING * rows + columns) + rows * columns for n in counts)


def work_of(segmentation: Any, rows: int, columns: int) -> float:
    """Return the work of drawing an object's mask. FormatError for an invalid polygon.

    Pillow reads all edges of a polygon for each of its rows, and some of them again for each edge in the row.
    """
    if not isinstance(segmentation, list):
        return rows * columns
    corners, starts = outlines_of(segmentation)
    if not len(corners):
        return 0
    x, y = np.clip(corners[:, 0], 0, columns), np.clip(corners[:, 1], 0, rows)
    first, last = starts[:-1], starts[1:] - 1
    before = np.arange(-1, len(corners) - 1, dtype=np.int32)
    before[first] = last
    across, down = (np.add.reduceat(np.abs(v - v[before]), first, dtype=np.float64) for v in (x, y))
    width, height = (np.maximum.reduceat(v, first) - np.minimum.reduceat(v, first).astype(np.float64) for v in (x, y))
    edges = CALL + (starts[1:] - first) * (height + down / 2) + CROSSING * down + across
    return float((edges + height * width).sum())


def check_work(segmentations: Sequence[Any], rows: int, columns: int, name: str) -> None:
    """Raise FormatError if drawing the masks of the objects of a picture takes more than `MOST_WORK`."""
    calls = OBJECT * len(segmentations)
    if calls + sum(work_at_most(x, rows, columns) for x in segmentations) <= MOST_WORK:
        return
    work = calls + sum(work_of(x, rows, columns) for x in segmentations)
    if work > MOST_WORK:
        raise FormatError(
            f"{name}: the masks of {len(segmentations)} objects in {rows} × {columns} pixels take {work:,.0f} steps to "
            f"draw, at most {MOST_WORK:,} are allowed. Use polygons of fewer corners, or scale the picture down."
        )


def fill_polygons(polygons: list[list[float]], rows: int, columns: int) -> np.ndarray:
    """Return the mask of polygons ``[x0, y0, x1, y1, …]``. FormatError if one is invalid."""
    mask = np.zeros((rows, columns), bool)
    corners, starts = outlines_of(polygons)
    if not len(corners):
        return mask
    tops, bottoms = (f.reduceat(corners[:, 1], starts[:-1]) for f in (np.minimum, np.maximum))
    first, end = max(int(tops.min()), 0), min(int(bottoms.max()) + 1, rows)
    width = min(int(corners[:, 0].max()) + 1, columns)
    step = max(STRIP // max(width, 1), 1)
    for top in range(first, end if width > 0 else 0, step):
        strip = mask[top : min(top + step, end), :width]
        inside = np.flatnonzero((tops < top + len(strip)) & (bottoms >= top))
        strip[:] = draw_strip((corners[starts[i] : starts[i + 1]] for i in inside), top, len(strip), width)
    return mask


def draw_strip(polygons: Iterable[np.ndarray], top: int, rows: int, columns: int) -> np.ndarray:
    """Return the rows of polygons from `top` on, bool ``[rows, columns]``.

    Pillow computes where an edge crosses a row from their difference: a strip has the pixels of the whole picture.
    """
    from PIL import Image, ImageDraw

    image = Image.new("1", (columns, rows))
    pen = ImageDraw.Draw(image)
    for corners in polygons:
        pen.polygon((corners - (0, top)).ravel().tolist(), fill=1)
    return np.asarray(image)


def fill_runs(counts: Any, rows: int, columns: int) -> np.ndarray:
    """Return the mask of lengths of runs of 0 and 1 in turn, down the columns."""
    if total_of(counts) != rows * columns:
        raise FormatError(
            f"runs {counts!r:.80} do not fill a picture of {rows} × {columns}. Make their sum {rows * columns}."
        )
    values = np.zeros(len(counts), bool)
    values[1::2] = True
    return np.repeat(values, counts).reshape(columns, rows).T


def total_of(counts: Any) -> int | None:
    """Return the sum of lengths of runs; None if they are not lengths."""
    if isinstance(counts, np.ndarray):
        return int(counts.sum(dtype=np.int64))
    is_runs = isinstance(counts, list) and all(type(n) is int and n >= 0 for n in counts)
    return sum(counts) if is_runs else None


def unpack_runs(text: str) -> np.ndarray:
    """Return the lengths of runs from COCO's text, int32.

    A letter has six bits: five of the number, and one if more follow. From the fourth on, each number is the difference
    from the one before the last.
    """
    if not text.isascii():
        raise FormatError(f"{text!r:.80} is not a text of packed runs")
    lengths = array("i")
    value = shift = 0
    for letter in text.encode("ascii"):
        bits = letter - 48
        if not 0 <= bits < 64 or shift > 60:
            raise FormatError(f"{chr(letter)!r} is not a letter of packed runs")
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            value -= (1 << shift) if bits & 16 else 0
            value += lengths[-2] if len(lengths) > 2 else 0
            if not 0 <= value <= MOST_PIXELS:
                raise FormatError(f"packed runs have one of {value} pixels. Use 0 to {MOST_PIXELS}.")
            lengths.append(value)
            value = shift = 0
    if shift:
        raise FormatError("packed runs end within a number")
    return np.array(lengths, np.int32)
