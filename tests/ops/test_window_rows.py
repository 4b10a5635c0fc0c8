"""The rows of images that windows read for rows of their result, with windows that read only padding."""

import numpy as np
import pytest

from cgraph.kernels.views.window import Window
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.window_rows import WindowRows


@pytest.mark.parametrize("size, stride, pad, dilation", [(3, 1, 1, 1), (1, 1, 3, 1), (2, 2, 3, 1), (2, 1, 4, 2)])
@pytest.mark.parametrize("halo", [(0, 0), (1, 2)])
def test_spans_and_tables_have_the_readable_rows_of_the_windows(size, stride, pad, dilation, halo):
    h = 5
    extent = (size - 1) * dilation + 1
    count = (h + 2 * pad - extent) // stride + 1
    window = Window((size, 1), (stride, 1), (pad, 0, pad, 0), (dilation, 1))
    rows = WindowRows(window, h, Form(1, 4, count, 3, 4), halo)
    firsts, stops = map(np.array, rows.table(halo[0]))
    assert (np.diff(firsts) >= 0).all() and (np.diff(stops) >= 0).all() and (firsts <= stops).all()
    for first in range(count):
        for stop in range(first + 1, count + 1):
            low, high, above, below = rows.span(first, stop)
            begin = first * stride - pad
            touched = set(range(begin, (stop - 1) * stride - pad + extent))
            assert set(range(low, high)) == touched & set(range(-halo[0], h + halo[1]))
            assert above >= 0 and below >= 0 and above + (high - low) + below == len(touched)
            assert stops[stop - 1] - firsts[first] == high - low
