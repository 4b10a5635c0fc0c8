"""Between floats and what stands for them."""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.tflite.context import Context, operator
from cgraph.formats.tflite.value import Value


@operator("DEQUANTIZE")
def dequantize(c: Context) -> Value:
    """A constant of float16 as float32."""
    x = c[0].array
    if x is None or x.dtype != np.float16:
        raise FormatError("only constants of float16 are supported")
    c.known.allowance.spend("it", nbytes=2 * x.nbytes)
    return Value(array=x.astype("float32"))
