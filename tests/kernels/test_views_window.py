"""The geometry of windows, down and across apart: extents, results, and what windows read beyond an image."""

import numpy as np
import pytest

from cgraph.kernels.views.window import Window

WINDOWS = [
    Window(),
    Window((3, 2)),
    Window((3, 2), (2, 3)),
    Window((3, 2), (2, 3), (1, 2, 3, 4)),
    Window((2, 3), (3, 1), (2, 0, 0, 1), (2, 3)),
    Window((1, 4), (1, 2), (0, 1, 5, 0), (7, 1)),
]
IMAGES = [(9, 7), (7, 9), (5, 12), (1, 1)]


def read(window, h, w):
    """For each axis the first and last position that windows which fit read, in the coordinates of the image."""
    reads, counts = [], []
    for axis, size in enumerate((h, w)):
        before, whole = window.pad[axis], window.pad[axis] + size + window.pad[axis + 2]
        taps = np.arange(window.kernel[axis]) * window.dilation[axis]
        starts = [s for s in range(0, whole, window.stride[axis]) if s + taps[-1] < whole]
        counts.append(len(starts))
        reads.append([s + t - before for s in starts for t in taps])
    return counts, reads


@pytest.mark.parametrize("size", IMAGES)
@pytest.mark.parametrize("window", WINDOWS)
def test_results_are_the_windows_that_fit_and_halos_what_they_read_beyond(window, size):
    counts, reads = read(window, *size)
    assert window.result(*size) == tuple(counts)
    if all(counts):
        below, right = (max(max(r) - n + 1, 0) for r, n in zip(reads, size))
        assert window.halo(*size) == (*window.pad[:2], below, right)


@pytest.mark.parametrize("window", WINDOWS)
def test_an_extent_is_from_the_first_tap_to_the_last(window):
    assert window.taps == window.kernel[0] * window.kernel[1]
    assert window.extent == tuple((n - 1) * d + 1 for n, d in zip(window.kernel, window.dilation))


def test_a_window_larger_than_the_image_has_no_result_on_its_axis_alone():
    assert Window((4, 1)).result(3, 5) == (0, 5) and Window((1, 4)).result(5, 3) == (5, 0)
    assert Window((9, 9)).result(1, 1) == (0, 0)


@pytest.mark.parametrize(
    ("window", "is_point"),
    [
        (Window(), True),
        (Window(dilation=(3, 2)), True),  # of one tap
        (Window((1, 2)), False),
        (Window((2, 1)), False),
        (Window(stride=(1, 2)), False),
        (Window(stride=(2, 1)), False),
        *((Window(pad=tuple(int(i == side) for i in range(4))), False) for side in range(4)),
    ],
)
def test_every_pixel_is_independent_only_for_one_tap_at_each_pixel(window, is_point):
    assert window.is_point is is_point
