"""Which rows of images a window reads for some rows of its result."""

import numpy as np

from cgraph.ir.cut import RowTable, index_array
from cgraph.kernels.views.window import Window
from cgraph.ops.physical.form import Form
from cgraph.record import Record


class WindowRows(Record):
    """A window over images, and the form of its result.

    Fields
        window: how it moves
        h: rows of the images
        result: where the result lies; rows of it count with the frame
        frame: rows of zeros above and below the images that can be read
    """

    window: Window
    h: int
    result: Form
    frame: tuple[int, int] = (0, 0)

    def span(self, first: int, stop: int) -> tuple[int, int, int, int]:
        """For rows ``first..stop`` of the result the rows of the images that are there, and how many are missing above
        and below; in the frame rows are negative, or behind the last.
        """
        top = self.result.halo[0]
        p, q = max(first - top, 0), min(stop - top, self.result.h)
        stride, pad, extent = self.window.stride[0], self.window.pad[0], self.window.extent[0]
        begin, end = p * stride - pad, (q - 1) * stride - pad + extent
        low, high = max(begin, -self.frame[0]), min(end, self.h + self.frame[1])
        return low, high, low - begin, end - high

    def table(self, origin: int) -> RowTable:
        """The rows read for each row of the result, with row 0 of the images in row `origin` of their array."""
        stride, pad, extent = self.window.stride[0], self.window.pad[0], self.window.extent[0]
        begin = inside(self.result) * stride - pad
        low, high = np.maximum(begin, -self.frame[0]), np.minimum(begin + extent, self.h + self.frame[1])
        return index_array(origin + low), index_array(origin + high)


def rows_inside(form: Form, origin: int = 0) -> RowTable:
    """The same rows of other images, whose row 0 lies in row `origin` of their array, for each row of this form."""
    rows = origin + inside(form)
    return index_array(rows), index_array(rows + 1)


def inside(form: Form) -> np.ndarray:
    """For each row of a form its row of the images; that of the frame is the nearest one."""
    return np.clip(np.arange(form.shape[2]) - form.halo[0], 0, form.h - 1)
