"""Form: the channel-blocked layout of images, as a value of the graph."""

import numpy as np

from cgraph.dtypes.convert import dtype_of_code
from cgraph.ir.spec import Spec
from cgraph.kernels.kernel import View
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.record import Record, replace

Halo = tuple[int, int, int, int]
NO_HALO: Halo = (0, 0, 0, 0)


class Form(Record):
    """Images ``[n, c, h, w]`` as ``[n, c / lanes, h + halo, w + halo, lanes]``; missing channels hold `fill`.

    Fields
        n, c, h, w: the images
        lanes: channels in a block
        dtype: ``f4``, ``f8``, ``u1`` or the code of bfloat16, which convolutions on tiles read
        halo: pixels around each image ``(top, left, bottom, right)``
        fill: value of the halo; for bytes, the zero point
    """

    n: int
    c: int
    h: int
    w: int
    lanes: int
    dtype: str = "f4"
    halo: Halo = NO_HALO
    fill: int = 0

    @property
    def logical(self) -> tuple[int, ...]:
        return self.n, self.c, self.h, self.w

    @property
    def shape(self) -> tuple[int, ...]:
        top, left, bottom, right = self.halo
        return self.n, -(-self.c // self.lanes), self.h + top + bottom, self.w + left + right, self.lanes

    @property
    def spec(self) -> Spec:
        return Spec(self.shape, dtype_of_code(self.dtype))

    def at(self, view: View) -> BlockedView:
        """Return the value of a view as kernels take it, with any strides of images, blocks and rows."""
        image, plane, row = (step // view.itemsize for step in view.strides[:3])
        steps = image, plane, row
        at = view.at, self.n, self.c, self.h, self.w, self.lanes, self.halo
        return BlockedView(*at, dtype=self.dtype, steps=steps, fill=self.fill)

    def first(self, n: int) -> "Form":
        """Return the form of the first n images."""
        return replace(self, n=n)

    def rows(self, first: int, stop: int) -> "Form":
        """Return the form of block rows of the array, counted with the halo, which keep their part of it."""
        top, left, _, right = self.halo
        above, below = max(top - first, 0), max(stop - top - self.h, 0)
        return replace(self, h=stop - first - above - below, halo=(above, left, below, right))

    def strip(self, count: int) -> "Form":
        """Return the form of `count` rows of the array, without halo above and below."""
        return replace(self, h=count, halo=(0, self.halo[1], 0, self.halo[3]))

    def to_blocked(self, x: np.ndarray) -> np.ndarray:
        """Convert a plain array to this form."""
        out = np.full(self.shape, self.fill, x.dtype)
        top, left, _, _ = self.halo
        for first in range(0, self.c, self.lanes):
            block = x[:, first : first + self.lanes].transpose(0, 2, 3, 1)
            out[:, first // self.lanes, top : top + self.h, left : left + self.w, : block.shape[3]] = block
        return out

    def plain(self, x: np.ndarray) -> np.ndarray:
        """Convert an array of this form to a plain array."""
        top, left, _, _ = self.halo
        inside = x[:, :, top : top + self.h, left : left + self.w]
        return inside.transpose(0, 1, 4, 2, 3).reshape(self.n, -1, self.h, self.w)[:, : self.c]
