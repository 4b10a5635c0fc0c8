"""Importers of Fourier transforms (products with constant matrices), windows and mel weights."""

from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.tensors import dtype_of_number
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const

WINDOWS = {"HannWindow": (0.5, 0.5, 0.0), "HammingWindow": (25 / 46, 21 / 46, 0.0), "BlackmanWindow": (0.42, 0.5, 0.08)}


@operator(*WINDOWS)
def window(c: Context) -> Node:
    """Import a window: a sum of cosines, periodic or symmetric."""
    size = int(c.number(0))
    c.spend(64 * max(size, 0))
    a, b, d = WINDOWS[c.kind]
    n = np.arange(size) / (size if c.attribute("periodic", 1) else size - 1)
    values = a - b * np.cos(2 * np.pi * n) + d * np.cos(4 * np.pi * n)
    return Const(values.astype(dtype_of_number(c.attribute("output_datatype", 1))))


def fourier_transform(x: Node, length: int, inverse: bool, onesided: bool) -> Node:
    """Return the Fourier transform of ``[..., n, 1 or 2]`` along n: real and imaginary part, ``[..., m, 2]``."""
    n = min(x.shape[-2], length)
    x = x[..., :n, :]
    m = length // 2 + 1 if onesided else length
    angle = 2 * np.pi / length * np.outer(np.arange(n), np.arange(m) % length) * (1 if inverse else -1)
    cosines, sines = (v.astype(x.dtype) for v in (np.cos(angle), np.sin(angle)))
    if inverse:
        cosines, sines = cosines / x.dtype.type(length), sines / x.dtype.type(length)
    real = x[..., 0]
    if x.shape[-1] == 1:
        return cg.stack([rotate_axis(real, cosines), rotate_axis(real, sines)], -1)
    imaginary = x[..., 1]
    return cg.stack(
        [
            rotate_axis(real, cosines) - rotate_axis(imaginary, sines),
            rotate_axis(real, sines) + rotate_axis(imaginary, cosines),
        ],
        -1,
    )


def rotate_axis(x: Node, matrix: np.ndarray) -> Node:
    """Multiply the last axis by a matrix."""
    return cg.matmul(x, matrix) if x.ndim > 1 else cg.reshape(cg.matmul(cg.reshape(x, (1, -1)), matrix), (-1,))


@operator("DFT")
def dft(c: Context) -> Node:
    x = c[0]
    axis = c.attribute("axis", 1) if c.opset < 20 else int(c.number(2, -2))
    axis = axis + x.ndim if axis < 0 else axis
    inverse, onesided = bool(c.attribute("inverse", 0)), bool(c.attribute("onesided", 0))
    moved = cg.moveaxis(x, axis, -2)
    if inverse and onesided:
        length = int(c.number(1, 2 * (x.shape[axis] - 1)))
        c.spend(64 * length * length)
        spectrum = real_inverse(moved, length)
    else:
        length = int(c.number(1, x.shape[axis]))
        c.spend(64 * min(length, x.shape[axis]) * length)
        spectrum = fourier_transform(moved, length, inverse, onesided)
    return cg.moveaxis(spectrum, -2, axis)


def real_inverse(x: Node, length: int) -> Node:
    """Return real values ``[..., length, 1]`` from the first half of their transform, whose other half is conjugate."""
    half = length // 2 + 1
    x = x[..., :half, :]
    if x.shape[-2] < half:
        x = cg.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, half - x.shape[-2]), (0, 0)])
    mirrored = cg.flip(x[..., 1 : length - half + 1, :], -2) * np.array([1, -1], x.dtype)
    return fourier_transform(cg.concat([x, mirrored], -2), length, True, False)[..., :1]


@operator("STFT")
def stft(c: Context) -> Node:
    """Import STFT: the transform of windowed frames of a signal ``[n, length, 1 or 2]``: ``[n, frames, m, 2]``."""
    x, step, shape = c[0], int(c.number(1)), c.get(2)
    if shape is None and c.value(3) is None:
        raise FormatError("neither a window nor a frame length is given: give one of them")
    length = shape.shape[0] if shape is not None else int(c.number(3))
    if length > x.shape[1] or step < 1:
        raise FormatError(f"frames of {length} every {step} do not fit a signal of {x.shape[1]}")
    frames = (x.shape[1] - length) // step + 1
    c.spend(64 * length * (length + frames), work=64 * length * (length + frames))
    index = np.arange(frames)[:, None] * step + np.arange(length)
    windows: Any = cg.take(x, index, 1)  # [n, frames, length, 1 or 2]
    if shape is not None:
        windows = windows * cg.reshape(shape, (-1, 1))
    return fourier_transform(windows, length, False, bool(c.attribute("onesided", 1)))


@operator("MelWeightMatrix")
def mel_weights(c: Context) -> Node:
    """Import MelWeightMatrix: triangular filters ``[bins, triangles]``, evenly spaced on the mel scale.

    By the operator's specification, the step is the range over ``triangles + 2``, so the last filter ends below it.
    """
    count, length, rate = (int(c.number(i)) for i in range(3))
    c.spend(64 * max(count, 0) * max(length, 0))
    low, high = (2595 * np.log10(1 + float(c.number(i)) / 700) for i in (3, 4))
    mel = np.linspace(low, high, count + 2, endpoint=False)
    edges = ((length + 1) * (700 * (10 ** (mel / 2595) - 1)) // rate).astype(np.int64)
    k = np.arange(length // 2 + 1)[:, None]
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    rising = np.where(k <= middle, (k - left) / np.maximum(middle - left, 1), 0)
    falling = np.where(k >= middle, (right - k) / np.maximum(right - middle, 1), 0)
    weights = np.clip(np.where(k == middle, 1, rising + falling), 0, None)
    return Const(weights.astype(dtype_of_number(c.attribute("output_datatype", 1))))
