"""Quantisation: floats as small integers with a scale and a zero point, and back, as in ONNX."""

from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import dtype_of
from cgraph.ops.arithmetic import to_integers
from cgraph.ops.family import Pointwise, broadcast
from cgraph.ops.leaf import as_node


class Quantize(Pointwise):
    """``clip(rint(x / scale) + zero)`` to the range of the dtype; halves round to even.

    Operands
        x, scale: of one float dtype
        zero: of the result's dtype
    Fields
        to: the result's dtype, an integer dtype
    """

    to: np.dtype

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        if dtypes[0].kind != "f" or dtypes[1] != dtypes[0] or dtypes[2] != self.to or self.to.kind not in "iu":
            raise DTypeError(
                f"x {dtypes[0]}, scale {dtypes[1]} and zero point {dtypes[2]} cannot become {self.to}; "
                "pass floats and an integer dtype"
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
        x, zero: integers of at most 32 bits, of one dtype
        scale: floats
    """

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        x, scale, zero = dtypes
        if x.kind not in "iu" or x.itemsize > 4 or zero != x or scale.kind != "f":
            raise DTypeError(
                f"x {x}, scale {scale} and zero point {zero} cannot become a float; pass integers and a float scale"
            )
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
    """Return `x` as integers: ``clip(rint(x / scale) + zero)``. Scale and zero point broadcast to `x`.

    Raises
        DTypeError: `x` is not a float, or `dtype` is not an integer dtype
    """
    x, dtype = as_node(x), dtype_of(dtype)
    if x.dtype.kind != "f":
        raise DTypeError(f"{x.name} {x.spec} is not a float; convert it with astype first")
    return parts(Quantize(dtype), x, as_node(scale, x.dtype).astype(x.dtype), as_node(zero, dtype).astype(dtype))


@public
def dequantize(x: Any, scale: Any, zero: Any = 0) -> Node:
    """Return the floats that integers represent: ``(x - zero) * scale``. Scale and zero point broadcast to `x`.

    Raises
        DTypeError: `x` is not an integer of at most 32 bits, or `scale` is not a float
    """
    x = as_node(x)
    return parts(Dequantize(), x, as_node(scale), as_node(zero, x.dtype).astype(x.dtype))


def parts(op: Pointwise, x: Node, scale: Node, zero: Node) -> Node:
    """Apply the op to operands broadcast to the shape of `x`."""
    wide = broadcast(x, scale, zero)
    if wide[0] is not x and wide[0].shape != x.shape:
        raise ShapeError(
            f"scale {scale.spec} and zero point {zero.spec} do not broadcast to {x.spec}; use smaller ones"
        )
    return apply(op, *wide)
