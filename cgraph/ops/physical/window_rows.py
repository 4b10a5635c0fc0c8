"""Which rows of images a window reads for some rows of its result."""

from cgraph.ir.cut import Table
from cgraph.kernels.calls.window import Window
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

    def table(self, origin: int) -> Table:
        """The rows read for each row of the result, with row 0 of the images in row `origin` of their array."""
        top, rows = self.result.halo[0], self.result.shape[2]
        inside = (min(max(row, top), top + self.result.h - 1) for row in range(rows))
        spans = [self.span(row, row + 1) for row in inside]
        return tuple(origin + low for low, *_ in spans), tuple(origin + high for _, high, *_ in spans)


def rows_inside(form: Form, origin: int = 0) -> Table:
    """The same rows of other images, whose row 0 lies in row `origin` of their array, for each row of this form."""
    inside = [origin + min(max(row - form.halo[0], 0), form.h - 1) for row in range(form.shape[2])]
    return tuple(inside), tuple(row + 1 for row in inside)
