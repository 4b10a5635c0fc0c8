"""Fourier transforms. There is no complex dtype: a complex number is a last axis of two, real and imaginary part.

Each op runs as one Python call into NumPy, in the operand's precision.
"""

from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ir.spec import Spec
from cgraph.ops.family import float_dtype
from cgraph.ops.host import OnHost
from cgraph.ops.leaf import as_node
from cgraph.ops.pad import pad
from cgraph.ops.shape import axis_of, moveaxis


def as_complex(x: np.ndarray) -> np.ndarray:
    """``[..., 2]`` as complex numbers ``[...]``."""
    return x[..., 0] + np.asarray(1j, np.result_type(x.dtype, np.complex64)) * x[..., 1]


def as_pairs(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Complex numbers ``[...]`` as ``[..., 2]``."""
    return np.stack([x.real, x.imag], -1).astype(dtype)


def check(x: Spec, pairs: bool) -> None:
    if x.dtype.kind != "f":
        raise DTypeError(f"{x.dtype} is no float")
    if x.ndim < 1 + pairs or (pairs and x.shape[-1] != 2) or x.shape[-1 - pairs] == 0:
        what = "complex numbers [..., n, 2]" if pairs else "[..., n]"
        raise ShapeError(f"the operand must be {what} with n >= 1, not {list(x.shape)}")


class Fft(OnHost):
    """``y[k] = sum over j of x[j] * exp(-2 pi i j k / n)`` along the axis before the pairs; or its inverse."""

    inverse: bool

    def infer(self, x: Spec) -> Spec:
        check(x, pairs=True)
        return x

    def meaning(self, x):
        found = (np.fft.ifft if self.inverse else np.fft.fft)(as_complex(x), axis=-1)
        return as_pairs(found, x.dtype)

    def grad(self, node, g):
        n = float(g.shape[-2])
        return (apply(Fft(not self.inverse), g) * (1 / n if self.inverse else n),)


class Rfft(OnHost):
    """The transform of real numbers ``[..., n]``, its first half: ``[..., n // 2 + 1, 2]``."""

    def infer(self, x: Spec) -> Spec:
        check(x, pairs=False)
        return Spec((*x.shape[:-1], x.shape[-1] // 2 + 1, 2), x.dtype)

    def meaning(self, x):
        return as_pairs(np.fft.rfft(x, axis=-1), x.dtype)

    def grad(self, node, g):
        n = node.operands[0].shape[-1]
        return (apply(Irfft(n), g * (n / shares(n)).astype(g.dtype)),)


class Irfft(OnHost):
    """The inverse of Rfft: ``[..., n // 2 + 1, 2]`` gives n real numbers."""

    n: int

    def infer(self, x: Spec) -> Spec:
        check(x, pairs=True)
        if self.n < 1 or x.shape[-2] != self.n // 2 + 1:
            raise ShapeError(f"{self.n} real numbers come from {self.n // 2 + 1} complex ones, not {x.shape[-2]}")
        return Spec((*x.shape[:-2], self.n), x.dtype)

    def meaning(self, x):
        return np.fft.irfft(as_complex(x), self.n, axis=-1).astype(x.dtype)

    def grad(self, node, g):
        return (apply(Rfft(), g) * (shares(self.n) / self.n).astype(g.dtype),)


def shares(n: int) -> np.ndarray:
    """How often each number of the half stands in the whole transform: ``[n // 2 + 1, 1]``."""
    found = np.full((n // 2 + 1, 1), 2.0)
    found[0] = 1
    if n % 2 == 0:
        found[-1] = 1
    return found


# -- public functions -------------------------------------------------------------------------------------------------


def fitted(x: Node, n: int | None) -> Node:
    """The last axis cut, or padded with zeros, to n elements."""
    have = x.shape[-1]
    if n is None or n == have:
        return x
    return x[..., :n] if n < have else pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - have)])


def floats(x: Any) -> Node:
    x = as_node(x)
    return x.astype(float_dtype(x.dtype))


def transformed(x: Any, n: int | None, axis: int, inverse: bool) -> Node:
    x = floats(x)
    axis = axis_of(axis, x.ndim - 1)
    moved = fitted(moveaxis(x, axis, -1), n)  # [..., 2, n]
    return moveaxis(apply(Fft(inverse), moveaxis(moved, -1, -2)), -2, axis)


@public
def fft(x: Any, n: int | None = None, axis: int = -1) -> Node:
    """The Fourier transform of complex numbers ``[..., 2]`` along an axis (counted without that of the pairs)."""
    return transformed(x, n, axis, False)


@public
def ifft(x: Any, n: int | None = None, axis: int = -1) -> Node:
    """The inverse of `fft`."""
    return transformed(x, n, axis, True)


@public
def rfft(x: Any, n: int | None = None, axis: int = -1) -> Node:
    """The first half of the transform of real numbers along an axis: ``[..., n // 2 + 1, ..., 2]``."""
    x = floats(x)
    axis = axis_of(axis, x.ndim)
    return moveaxis(apply(Rfft(), fitted(moveaxis(x, axis, -1), n)), -2, axis)


@public
def irfft(x: Any, n: int | None = None, axis: int = -1) -> Node:
    """The inverse of `rfft`: n real numbers, ``2 * (m - 1)`` by default for m complex ones."""
    x = floats(x)
    axis = axis_of(axis, x.ndim - 1)
    moved = moveaxis(x, axis, -1)  # [..., 2, m]
    n = 2 * (moved.shape[-1] - 1) if n is None else n
    return moveaxis(apply(Irfft(int(n)), moveaxis(fitted(moved, n // 2 + 1), -1, -2)), -1, axis)
