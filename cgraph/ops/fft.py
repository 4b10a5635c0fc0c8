"""Fourier transforms of pairs: a complex number is a last axis of two, real and imaginary part, as in ONNX.

`np.fft` of nodes has complex numbers; these are its transforms (`cgraph.ops.fourier`) between two changes of form.
"""

from typing import Any

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ops.complex import AsPairs, complex
from cgraph.ops.family import float_dtype
from cgraph.ops.fourier import from_half_spectrum, half_spectrum, transform
from cgraph.ops.leaf import as_node


def floats(x: Any) -> Node:
    """The operand in a float dtype."""
    x = as_node(x)
    if x.dtype.kind == "c":
        raise DTypeError(f"pairs of floats are transformed, not {x.dtype}; use np.fft for complex numbers")
    return x.astype(float_dtype(x.dtype))


def complex_of_pairs(x: Any) -> Node:
    """``[..., 2]`` as complex numbers ``[...]``."""
    x = floats(x)
    if x.ndim < 2 or x.shape[-1] != 2:
        raise ShapeError(f"the operand must be complex numbers [..., n, 2], not {list(x.shape)}")
    return complex(x[..., 0], x[..., 1])


@public
def fft(x: Any, n: int | None = None, axis: int = -1) -> Node:
    """The Fourier transform of complex numbers ``[..., 2]`` along an axis (counted without that of the pairs)."""
    return apply(AsPairs(), transform(complex_of_pairs(x), [n], [axis], False, None))


@public
def ifft(x: Any, n: int | None = None, axis: int = -1) -> Node:
    """The inverse of `fft`."""
    return apply(AsPairs(), transform(complex_of_pairs(x), [n], [axis], True, None))


@public
def rfft(x: Any, n: int | None = None, axis: int = -1) -> Node:
    """The first half of the transform of real numbers along an axis: ``[..., n // 2 + 1, ..., 2]``."""
    return apply(AsPairs(), half_spectrum(floats(x), n, axis, None))


@public
def irfft(x: Any, n: int | None = None, axis: int = -1) -> Node:
    """The inverse of `rfft`: n real numbers, ``2 * (m - 1)`` by default for m complex ones."""
    return from_half_spectrum(complex_of_pairs(x), n, axis, None)
