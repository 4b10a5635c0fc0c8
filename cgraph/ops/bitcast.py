"""Reinterpretation of bits as another dtype of the same size: a view."""

from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import DTypeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import Spec, dtype_of
from cgraph.kernels.kernel import View
from cgraph.ops.compare import not_equal
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import ViewOp
from cgraph.record import replace


class Bitcast(ViewOp):
    """Each element's bits read as another dtype, little-endian. DTypeError if the sizes differ."""

    to: np.dtype

    def infer(self, x: Spec) -> Spec:
        if x.dtype.itemsize != self.to.itemsize or self.to.kind == "b":
            raise DTypeError(
                f"{x.dtype} has {x.dtype.itemsize} bytes, {self.to} has {self.to.itemsize}; use astype for values"
            )
        return Spec(x.shape, self.to)

    def meaning(self, x):
        return np.ascontiguousarray(x).view(self.to).reshape(x.shape)

    def alias(self, x: View) -> View:
        return replace(x, dtype=code_of(self.to))


@public
def bitcast(x: Any, dtype: Any) -> Node:
    """Reinterpret the bits of `x` as another dtype of the same size; return `x` itself if it has that dtype already.

    A bool is stored as 0 or 1, so a nonzero byte becomes True.

    Raises
        DTypeError: the dtypes differ in size
    """
    x, dtype = as_node(x), dtype_of(dtype)
    if dtype.kind == "b" and x.dtype.itemsize == 1:
        return not_equal(x, 0) if x.dtype != dtype else x
    return x if x.dtype == dtype else apply(Bitcast(dtype), x)
