"""Bands of rows: images of enough pixels are cut in four, tasks include rows beyond the last."""

import pytest

from cgraph.kernels.views.row_bands import LEAST_PIXELS, band_of, banded_tasks


@pytest.mark.parametrize(
    ("rows", "columns", "band"),
    [
        (12, 12, 3),
        (13, 12, 4),
        (16, 9, 4),
        (11, 13, 11),
        (143, 1, 143),
        (144, 1, 36),
        (1, 144, 1),
        (0, 10, 1),
        (10, 0, 10),
    ],
)
def test_images_of_enough_pixels_are_cut_into_four_bands(rows, columns, band):
    assert (rows * columns >= LEAST_PIXELS) == (band < rows or rows == 1 and columns >= LEAST_PIXELS)
    assert band_of(rows, columns) == band


@pytest.mark.parametrize(
    ("n", "planes", "rows", "band", "tasks"), [(2, 3, 12, 3, 72), (2, 3, 13, 4, 96), (1, 5, 7, 7, 35), (3, 2, 0, 1, 0)]
)
def test_each_band_has_as_many_tasks(n, planes, rows, band, tasks):
    assert banded_tasks(n, planes, rows, band) == tasks
