"""The rows of images that a window reads for some rows of its result."""

import numpy as np

from cgraph.ir.cut import RowTable, index_array
from cgraph.kernels.views.window import Window
from cgraph.ops.physical.form import Form
from cgraph.record import Record


class WindowRows(Record):
    """A window over images, and the form of its result.

    Fields
        window: its geometry
        h: rows of the images
        result: form of the result, whose rows are counted with the halo
        halo: readable halo rows above and below the images
    """

    window: Window
    h: int
    result: Form
    halo: tuple[int, int] = (0, 0)

    def span(self, first: int, stop: int) -> tuple[int, int, int, int]:
        """Return the rows of the images for rows ``first..stop`` of the result, and the rows missing above and below.

        Rows in the halo are negative, or after the last.
        """
        top = self.result.halo[0]
        p, q = max(first - top, 0), min(stop - top, self.result.h)
        stride, pad, extent = self.window.stride[0], self.window.pad[0], self.window.extent[0]
        begin, end = p * stride - pad, (q - 1) * stride - pad + extent
        low, high = (int(row) for row in self.readable(np.array((begin, end))))
        # windows that lie completely in the padding read no rows: all of their rows are missing above
        return (low, high, low - begin, end - high) if low < high else (low, low, end - begin, 0)

    def table(self, origin: int) -> RowTable:
        """Return the rows read for each row of the result, if row 0 of the images is row `origin` of their array."""
        stride, pad, extent = self.window.stride[0], self.window.pad[0], self.window.extent[0]
        begin = inside(self.result) * stride - pad
        return index_array(origin + self.readable(begin)), index_array(origin + self.readable(begin + extent))

    def readable(self, rows: np.ndarray) -> np.ndarray:
        """Return the nearest readable row, or the end of these rows, for each row."""
        return np.clip(rows, -self.halo[0], self.h + self.halo[1])


def rows_inside(form: Form, origin: int = 0) -> RowTable:
    """Return, for each row of this form, the same row of images whose row 0 is row `origin` of their array."""
    rows = origin + inside(form)
    return index_array(rows), index_array(rows + 1)


def inside(form: Form) -> np.ndarray:
    """Return, for each row of a form, its row of the images; the nearest one for halo rows."""
    return np.clip(np.arange(form.shape[2]) - form.halo[0], 0, form.h - 1)
