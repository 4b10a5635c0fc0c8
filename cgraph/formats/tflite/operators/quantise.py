"""Importers of quantisation and dequantisation."""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.fixed import as_bytes, bytes_of, floats_for, scale_factor, subtract_zero
from cgraph.formats.tflite.value import TfliteValue


@operator("DEQUANTIZE", on_bytes=True, on_words=True)
def dequantize(c: TfliteContext) -> TfliteValue:
    """Import DEQUANTIZE; constants (also float16) stay constants."""
    x = c[0]
    if x.array is not None:
        c.spend(nbytes=4 * x.array.size, work=x.array.size)
        return TfliteValue(array=floats_of(x))
    return TfliteValue(floats_for(x, x.node), first=x.first)


def floats_of(x: TfliteValue) -> np.ndarray:
    """Return the dequantised value of a constant."""
    assert x.array is not None
    if x.array.dtype == np.float16:
        return x.array.astype("float32")
    if x.quantised is None:
        raise FormatError(f"{x.array.dtype} without a scale is not a quantised value")
    along = [-1 if i == x.quantised.axis else 1 for i in range(x.array.ndim)] if x.quantised.scales.size > 1 else []
    scales, zeros = (y.reshape(along) if y.size > 1 else y.reshape(()) for y in (x.quantised.scales, x.quantised.zeros))
    return (x.array.astype("int32") - zeros.astype("int32")).astype("float32") * scales


@operator("QUANTIZE", on_bytes=True, on_words=True)
def quantize(c: TfliteContext) -> TfliteValue:
    """Import QUANTIZE of floats, or of integers with another scale; halves of floats round away from zero."""
    x, tensor, to = c[0], c.tensors[0], c.results[0].integers
    x = TfliteValue(x.node, first=x.first, quantised=None if tensor is None else tensor.integers)
    if x.quantised is not None and to is not None:
        ratio = np.float64(x.bytes.scale) / np.float64(to.scale)
        return TfliteValue(as_bytes(scale_factor(subtract_zero(x), ratio), to), first=x.first)
    if x.node.dtype != np.float32:
        raise FormatError(f"{x.node.dtype} is not float32")
    return TfliteValue(bytes_of(x.node / c.result.scale, c.result), first=x.first)
