"""``np.fft``: Fourier transforms of complex and real numbers, and frequency shifts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.graph import Node
from cgraph.numpy.table import of
from cgraph.ops.complex import conj
from cgraph.ops.fourier import REVERSED, from_half_spectrum, half_spectrum, norm_of, transform
from cgraph.ops.join import roll
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import axes_of, axis_of

__all__ = [
    "fft", "fft2", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2",
    "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip

Axes = Sequence[int] | None
Lengths = Sequence[int] | None


@of(np.fft.fft)
def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Node:
    """Return the transform along an axis."""
    return transform(as_node(a), [n], [axis], False, norm)


@of(np.fft.ifft)
def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Node:
    """Return the inverse transform along an axis."""
    return transform(as_node(a), [n], [axis], True, norm)


@of(np.fft.rfft)
def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Node:
    """Return the first half of the transform of real numbers along an axis."""
    return half_spectrum(as_node(a), n, axis, norm)


@of(np.fft.irfft)
def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Node:
    """Return real numbers from the first half of their transform."""
    return from_half_spectrum(as_node(a), n, axis, norm)


@of(np.fft.hfft)
def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Node:
    """Return the real transform of a signal with conjugate symmetry, from its first half."""
    return from_half_spectrum(conj(a), n, axis, REVERSED[norm_of(norm)])


@of(np.fft.ihfft)
def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Node:
    """Return the inverse of `hfft`."""
    return conj(half_spectrum(as_node(a), n, axis, REVERSED[norm_of(norm)]))


@of(np.fft.fftn)
def fftn(a: Any, s: Lengths = None, axes: Axes = None, norm: str | None = None) -> Node:
    """Return the transform along axes, all by default."""
    a = as_node(a)
    return along_axes(a, *lengths_of(a, s, axes), False, norm)


@of(np.fft.ifftn)
def ifftn(a: Any, s: Lengths = None, axes: Axes = None, norm: str | None = None) -> Node:
    """Return the inverse transform along axes, all by default."""
    a = as_node(a)
    return along_axes(a, *lengths_of(a, s, axes), True, norm)


@of(np.fft.rfftn)
def rfftn(a: Any, s: Lengths = None, axes: Axes = None, norm: str | None = None) -> Node:
    """Return the transform of real numbers along axes, half of it along the last one."""
    a = as_node(a)
    (*lengths, last), (*others, axis) = lengths_of(a, s, axes)
    return along_axes(half_spectrum(a, last, axis, norm), lengths, others, False, norm)


@of(np.fft.irfftn)
def irfftn(a: Any, s: Lengths = None, axes: Axes = None, norm: str | None = None) -> Node:
    """Return the inverse of `rfftn`; ``2 * (m - 1)`` numbers along the last axis by default."""
    a = as_node(a)
    (*lengths, last), (*others, axis) = lengths_of(a, s, axes)
    return from_half_spectrum(along_axes(a, lengths[::-1], others[::-1], True, norm), last, axis, norm)


@of(np.fft.fft2)
def fft2(a: Any, s: Lengths = None, axes: Axes = (-2, -1), norm: str | None = None) -> Node:
    """Return the transform along two axes."""
    return fftn(a, s, axes, norm)


@of(np.fft.ifft2)
def ifft2(a: Any, s: Lengths = None, axes: Axes = (-2, -1), norm: str | None = None) -> Node:
    """Return the inverse transform along two axes."""
    return ifftn(a, s, axes, norm)


@of(np.fft.rfft2)
def rfft2(a: Any, s: Lengths = None, axes: Axes = (-2, -1), norm: str | None = None) -> Node:
    """Return the transform of real numbers along two axes, half of it along the last one."""
    return rfftn(a, s, axes, norm)


@of(np.fft.irfft2)
def irfft2(a: Any, s: Lengths = None, axes: Axes = (-2, -1), norm: str | None = None) -> Node:
    """Return the inverse of `rfft2`."""
    return irfftn(a, s, axes, norm)


def lengths_of(a: Node, s: Lengths, axes: Axes) -> tuple[list[int | None], list[int]]:
    """Return the length to which each axis is cut or padded, None for its own; without `axes` for the last axes."""
    if axes is None:
        axes = range(a.ndim) if s is None else range(-len(s), 0)
    lengths: list[int | None] = [None] * len(axes) if s is None else list(s)
    if len(lengths) != len(axes) or not lengths:
        raise ShapeError(
            f"{len(lengths)} lengths for {len(axes)} axes of {a.name} {a.spec}; give as many of each, at least one"
        )
    own = [a.shape[axis_of(i, a.ndim)] for i in axes]
    if s is None and is_repeated(a, axes):  # a transform may change the length that the next one finds
        lengths = [*own[:-1], None]
    return [m if n == -1 else n for n, m in zip(lengths, own)], list(axes)


def is_repeated(a: Node, axes: Axes) -> bool:
    """Return True if one axis is named twice."""
    return axes is not None and len({axis_of(i, a.ndim) for i in axes}) < len(axes)


def along_axes(a: Node, lengths: list[int | None], axes: list[int], inverse: bool, norm: str | None) -> Node:
    """Return the transform along axes, the last one first; an axis that is named twice is transformed twice."""
    if not is_repeated(a, axes):
        return transform(a, lengths, axes, inverse, norm)
    for n, axis in zip(lengths[::-1], axes[::-1]):
        a = transform(a, [n], [axis], inverse, norm)
    return a


@of(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Node:
    """Return the frequency 0 moved to the middle along axes, all by default."""
    return shift(x, axes, 1)


@of(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Node:
    """Return the inverse of `fftshift`."""
    return shift(x, axes, -1)


def shift(x: Any, axes: Any, way: int) -> Node:
    x = as_node(x)
    axis_numbers = axes_of(axes, x.ndim)
    return roll(x, [way * (x.shape[a] // 2) for a in axis_numbers], axis_numbers)
