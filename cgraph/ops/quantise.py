"""Numbers as small whole numbers with a scale and a zero point, and back, as in ONNX."""

from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import dtype_of
from cgraph.kernels.expression import code_of
from cgraph.ops.arithmetic import to_integers
from cgraph.ops.family import Pointwise, broadcast
from cgraph.ops.leaf import as_node


class Quantize(Pointwise):
    """``clip(rint(x / scale) + zero)`` within the dtype; halves go to the even number.

    Operands
        x, scale: of one float dtype
        zero: of the result's dtype
    Fields
        to: the result's dtype, of whole numbers
    """

    to: np.dtype

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        if dtypes[0].kind != "f" or dtypes[1] != dtypes[0] or dtypes[2] != self.to or self.to.kind not in "iu":
            raise DTypeError(
                f"{dtypes[0]} with a scale {dtypes[1]} and a zero point {dtypes[2]} do not become {self.to}"
            )
        return self.to

    def meaning(self, x, scale, zero):
        limits = np.iinfo(self.to)
        whole = np.rint(x / scale) + zero.astype(x.dtype)
        return to_integers(np.clip(whole, float(limits.min), float(limits.max)), self.to)

    def scalar(self, m, x, scale, zero):
        limits = np.iinfo(self.to)
        whole = m.rint(x / scale) + m.cast(zero, x.dtype)
        return m.cast(m.max(m.min(whole, float(limits.max)), float(limits.min)), code_of(self.to))


class Dequantize(Pointwise):
    """``(x - zero) * scale`` in the dtype of the scale.

    Operands
        x, zero: whole numbers of at most 32 bits, of one dtype
        scale: floats
    """

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        x, scale, zero = dtypes
        if x.kind not in "iu" or x.itemsize > 4 or zero != x or scale.kind != "f":
            raise DTypeError(f"{x} with a scale {scale} and a zero point {zero} does not become a float")
        return scale

    def meaning(self, x, scale, zero):
        return (x.astype("int32") - zero.astype("int32")).astype(scale.dtype) * scale

    def scalar(self, m, x, scale, zero):
        return m.cast(m.cast(x, "i4") - m.cast(zero, "i4"), scale.dtype) * scale

    def grad(self, node, g):
        x, scale, zero = node.operands
        return None, g * (x.astype("int32") - zero.astype("int32")).astype(scale.dtype), None


@public
def quantize(x: Any, scale: Any, zero: Any = 0, dtype: Any = "uint8") -> Node:
    """`x` as whole numbers of `dtype`: ``clip(rint(x / scale) + zero)``. Scale and zero point broadcast to `x`.

    Raises
        DTypeError: `x` is no float, or `dtype` no whole number
    """
    x, dtype = as_node(x), dtype_of(dtype)
    if x.dtype.kind != "f":
        raise DTypeError(f"{x.dtype} is quantized already; use astype first")
    return parts(Quantize(dtype), x, as_node(scale, x.dtype).astype(x.dtype), as_node(zero, dtype).astype(dtype))


@public
def dequantize(x: Any, scale: Any, zero: Any = 0) -> Node:
    """The floats that whole numbers stand for: ``(x - zero) * scale``. Scale and zero point broadcast to `x`.

    Raises
        DTypeError: `x` are no whole numbers of at most 32 bits, or `scale` no float
    """
    x = as_node(x)
    return parts(Dequantize(), x, as_node(scale), as_node(zero, x.dtype).astype(x.dtype))


def parts(op: Pointwise, x: Node, scale: Node, zero: Node) -> Node:
    """The op on operands of the shape of `x`."""
    wide = broadcast(x, scale, zero)
    if wide[0] is not x and wide[0].shape != x.shape:
        raise ShapeError(f"a scale {scale.spec} and a zero point {zero.spec} are larger than {x.spec}")
    return apply(op, *wide)
