"""Average pools of bytes, created by the pass `integers`."""

import numpy as np

from cgraph.errors import DTypeError
from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.kernels.pool8.rounding_margin import Mean
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.pool import Pool


class BytePool(AvgPool):
    """The mean of each window of dequantised bytes, quantised: in float32, with a rounding after each operation, added
    row by row.

    Fields
        mean: scales, zero points and bounds
    """

    mean: Mean
    work = Op.work  # type: ignore[assignment]  # lowering makes all of its images channel-blocked
    grad = Op.grad

    def infer(self, x: Spec) -> Spec:
        if x.dtype != np.uint8:
            raise DTypeError(f"average pooling of bytes needs uint8, not {x.dtype}; convert with astype first")
        return Pool.infer(self, x)

    def meaning(self, x):
        to = self.mean
        floats = (x.astype("int32") - to.x_zero).astype("f4") * np.float32(to.scale)
        windows = self.windows_of(floats)
        total = np.zeros(windows.shape[:-1], "f4")
        for tap in range(windows.shape[-1]):
            total = total + windows[..., tap]
        y = total / self.divisor(floats) / np.float32(to.last)
        return np.clip(np.rint(y) + to.zero, to.low, to.high).astype("u1")
