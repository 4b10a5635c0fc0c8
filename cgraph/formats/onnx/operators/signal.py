"""Importers of Fourier transforms, windows and mel weights."""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.tensors import dtype_of_number
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const

POINT = 64  # bytes for each point of a transform longer than its operand
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
    if x.shape[-1] == 1 and not inverse:
        half = cg.rfft(x[..., 0], length)
        return half if onesided else cg.concat([half, conjugates(half[..., 1 : (length + 1) // 2, :])], -2)
    if x.shape[-1] == 1:
        x = cg.concat([x, cg.zeros_like(x)], -1)
    spectrum = (cg.ifft if inverse else cg.fft)(x, length)
    return spectrum[..., : length // 2 + 1, :] if onesided else spectrum


def conjugates(x: Node) -> Node:
    """Return the conjugates of pairs ``[..., n, 2]`` in reverse order, which are the other half of a real spectrum."""
    return cg.flip(x, -2) * np.array([1, -1], x.dtype)


@operator("DFT")
def dft(c: Context) -> Node:
    x = c[0]
    axis = c.attribute("axis", 1) if c.opset < 20 else int(c.number(2, -2))
    axis = axis + x.ndim if axis < 0 else axis
    inverse, onesided = bool(c.attribute("inverse", 0)), bool(c.attribute("onesided", 0))
    moved = cg.moveaxis(x, axis, -2)
    real_result = inverse and onesided
    length = int(c.number(1, 2 * (x.shape[axis] - 1) if real_result else x.shape[axis]))
    c.spend(POINT * max(length - x.shape[axis], 0))
    if real_result:
        spectrum = cg.expand_dims(cg.irfft(moved, length), -1)
    else:
        spectrum = fourier_transform(moved, length, inverse, onesided)
    return cg.moveaxis(spectrum, -2, axis)


@operator("STFT")
def stft(c: Context) -> Node:
    """Import STFT: the transform of windowed frames of a signal ``[n, length]`` or ``[n, length, 1 or 2]``.

    The result is ``[n, frames, m, 2]``.
    """
    x, step, shape = c[0], int(c.number(1)), c.get(2)
    if shape is None and c.value(3) is None:
        raise FormatError("neither a window nor a frame length is given: give one of them")
    length = shape.shape[0] if shape is not None else int(c.number(3))
    if length < 1 or length > x.shape[1] or step < 1:
        raise FormatError(f"frames of {length} every {step} do not fit a signal of {x.shape[1]}")
    x = x if x.ndim == 3 else cg.expand_dims(x, -1)
    frames = cg.moveaxis(cg.sliding(x, length, 1)[:, ::step], -1, 2)  # [n, frames, length, 1 or 2]
    if shape is not None:
        frames = frames * cg.reshape(shape, (-1, 1))
    return fourier_transform(frames, length, False, bool(c.attribute("onesided", 1)))


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
