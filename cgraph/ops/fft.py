"""Fourier transforms of pairs: a complex number is a last axis of two, real and imaginary part, as in ONNX.

`np.fft` on nodes uses complex numbers. These functions convert to them, apply `cgraph.ops.fourier`, and convert back.
"""

from typing import Any

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ops.complex import AsPairs, complex
from cgraph.ops.family import float_dtype
from cgraph.ops.fourier import from_half_spectrum, half_spectrum, transform
from cgraph.ops.leaf import as_node


def floats(x: Any) -> Node:
    """Convert the operand to a float dtype. DTypeError if it is complex."""
    x = as_node(x)
    if x.dtype.kind == "c":
        raise DTypeError(f"{x.name} {x.spec} is complex; pass pairs [..., 2] of floats, or use np.fft")
    return x.astype(float_dtype(x.dtype))


def complex_of_pairs(x: Any) -> Node:
    """Convert ``[..., 2]`` to complex numbers ``[...]``."""
    x = floats(x)
    if x.ndim < 2 or x.shape[-1] != 2:
        raise ShapeError(f"the operand has shape {list(x.shape)}; pass pairs [..., n, 2]")
    return complex(x[..., 0], x[..., 1])


@public
def fft(x: Any, n: int | None = None, axis: int = -1) -> Node:
    """Return the Fourier transform of pairs ``[..., 2]`` along an axis, counted without the axis of pairs."""
    return apply(AsPairs(), transform(complex_of_pairs(x), [n], [axis], False, None))


@public
def ifft(x: Any, n: int | None = None, axis: int = -1) -> Node:
    """Return the inverse Fourier transform of pairs; see `fft`."""
    return apply(AsPairs(), transform(complex_of_pairs(x), [n], [axis], True, None))


@public
def rfft(x: Any, n: int | None = None, axis: int = -1) -> Node:
    """Return the first half of the transform of real numbers along an axis, as pairs ``[..., n // 2 + 1, ..., 2]``."""
    return apply(AsPairs(), half_spectrum(floats(x), n, axis, None))


@public
def irfft(x: Any, n: int | None = None, axis: int = -1) -> Node:
    """Return the n real numbers whose `rfft` is `x`; n is ``2 * (m - 1)`` by default for m pairs."""
    return from_half_spectrum(complex_of_pairs(x), n, axis, None)
