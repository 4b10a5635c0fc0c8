"""Form: how images lie in lanes, as a value of the graph."""

import numpy as np

from cgraph.ir.spec import Spec
from cgraph.kernels.calls.blocked import Blocked
from cgraph.kernels.kernel import Pointer
from cgraph.record import Record

Halo = tuple[int, int, int, int]
NO_HALO: Halo = (0, 0, 0, 0)


class Form(Record):
    """Images ``[n, c, h, w]`` as ``[n, c / lanes, h + halo, w + halo, lanes]``, zero where there is no channel.

    Fields
        n, c, h, w: the images
        lanes: channels side by side
        dtype: ``f4`` or ``f8``
        halo: zero pixels around each image ``(top, left, bottom, right)``
    """

    n: int
    c: int
    h: int
    w: int
    lanes: int
    dtype: str = "f4"
    halo: Halo = NO_HALO

    @property
    def logical(self) -> tuple[int, ...]:
        return self.n, self.c, self.h, self.w

    @property
    def shape(self) -> tuple[int, ...]:
        top, left, bottom, right = self.halo
        return self.n, -(-self.c // self.lanes), self.h + top + bottom, self.w + left + right, self.lanes

    @property
    def spec(self) -> Spec:
        return Spec(self.shape, np.dtype(self.dtype))

    def at(self, address: Pointer) -> Blocked:
        """The value at an address, as kernels take it."""
        return Blocked(address, self.n, self.c, self.h, self.w, self.lanes, self.halo, dtype=self.dtype)

    def laid(self, x: np.ndarray) -> np.ndarray:
        """A plain array in this form."""
        out = np.zeros(self.shape, x.dtype)
        top, left, _, _ = self.halo
        for first in range(0, self.c, self.lanes):
            some = x[:, first : first + self.lanes].transpose(0, 2, 3, 1)
            out[:, first // self.lanes, top : top + self.h, left : left + self.w, : some.shape[3]] = some
        return out

    def plain(self, x: np.ndarray) -> np.ndarray:
        """The plain array of one in this form."""
        top, left, _, _ = self.halo
        inside = x[:, :, top : top + self.h, left : left + self.w]
        return inside.transpose(0, 1, 4, 2, 3).reshape(self.n, -1, self.h, self.w)[:, : self.c]
