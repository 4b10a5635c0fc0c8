"""The geometry of a filter or pooling window over an image."""

from cgraph.record import Record


class Window(Record):
    """A window of ``kernel`` taps over an image.

    Fields
        kernel: taps down and across, >= 1
        stride: pixels from one window to the next, down and across, >= 1
        pad: pixels around the image ``(top, left, bottom, right)``, each >= 0
        dilation: pixels from one tap to the next, down and across, >= 1
    """

    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    @property
    def extent(self) -> tuple[int, int]:
        """Pixels that one window spans, down and across."""
        (r, s), (down, across) = self.kernel, self.dilation
        return (r - 1) * down + 1, (s - 1) * across + 1

    @property
    def is_point(self) -> bool:
        """True for one tap, stride 1, no padding: every pixel is independent."""
        return self.taps == 1 and self.stride == (1, 1) and self.pad == (0, 0, 0, 0)

    def result(self, h: int, w: int) -> tuple[int, int]:
        """Return the rows and columns of the result for an `h` x `w` image; 0 if the window does not fit."""
        (down, across), (top, left, bottom, right) = self.extent, self.pad
        rows = (h + top + bottom - down) // self.stride[0] + 1
        columns = (w + left + right - across) // self.stride[1] + 1
        return max(rows, 0), max(columns, 0)

    def halo(self, h: int, w: int) -> tuple[int, int, int, int]:
        """Return the rows and columns that windows read beyond an `h` x `w` image: ``(top, left, bottom, right)``."""
        p, q = self.result(h, w)
        last_row = (p - 1) * self.stride[0] + self.extent[0] - self.pad[0]
        last_column = (q - 1) * self.stride[1] + self.extent[1] - self.pad[1]
        return self.pad[0], self.pad[1], max(last_row - h, 0), max(last_column - w, 0)
