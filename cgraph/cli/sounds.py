"""Sounds as inputs: the samples of a .wav file, -1 to 1. Nothing is resampled, cut or mixed.

Source: RIFF's PCM samples: 8-bit samples are unsigned, those of 16, 24 and 32 bits signed, lowest byte first.
"""

import os
import stat
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cgraph.cli.arguments import why
from cgraph.errors import FormatError
from cgraph.storage.cell import Variable

SOUNDS = (".wav",)
WIDTHS = (1, 2, 3, 4)  # bytes of a sample
BLOCK = 1 << 20  # bytes that are converted at once


def read_sound(path: Path, x: Variable) -> np.ndarray:
    """Return a sound as an input of its samples ``[..., n]``, or of several channels ``[..., c, n]`` or ``[..., n,
    c]``."""
    samples, rate = samples_of(path)
    channels, n = samples.shape
    shape = x.spec.shape
    axes = tuple(size for size in shape if size != 1) if channels > 1 else shape
    if samples.size == x.spec.size and (channels == 1 or axes in (samples.shape, (n, channels))):
        laid_out = samples if axes != (n, channels) else samples.T
        return np.ascontiguousarray(laid_out, x.spec.dtype).reshape(shape)
    raise FormatError(
        f"{path}: {n} samples of {channels} channels at {rate} Hz do not fit {x.name} {x.spec}. "
        "Cut or resample the sound first"
    )


def shape_of_sound(path: Path, shape: Sequence[int | str]) -> tuple[int, ...]:
    """Return the shape of an input with open axes for this sound. FormatError if there are channels without an axis."""
    channels, n = samples_of(path)[0].shape
    if channels == 1:
        return (*[1] * (len(shape) - 1), n) if shape else ()
    ones = [1] * (len(shape) - 2)
    if len(shape) > 1 and shape[-1] == channels:
        return (*ones, n, channels)
    if len(shape) > 1 and (shape[-2] == channels or isinstance(shape[-2], str)):
        return (*ones, channels, n)
    raise FormatError(
        f"{path}: a sound of {channels} channels does not fit an input [{','.join(map(str, shape))}]. "
        "Mix it to one channel"
    )


def samples_of(path: Path) -> tuple[np.ndarray, int]:
    """Return the samples ``[channels, n]`` as float32 from -1 to 1, and the sampling rate. FormatError if there are
    none.

    Memory: the result and a block of frames.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise FormatError(f"{path} is not a regular file")
    try:
        with wave.open(str(path), "rb") as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            if width not in WIDTHS:
                raise FormatError(
                    f"{path}: samples of {8 * width} bits; those of 8, 16, 24 and 32 bits are read. Convert the file"
                )
            frames = min(file.getnframes(), status.st_size // (channels * width))
            samples = np.empty((channels, frames), np.float32)
            done = 0
            while raw := file.readframes(max(BLOCK // (channels * width), 1)):
                block = from_pcm(raw, channels, width)[:, : frames - done]
                samples[:, done : done + block.shape[1]] = block
                done += block.shape[1]
                if not block.shape[1]:
                    break
    except FormatError:
        raise
    except (wave.Error, EOFError, RuntimeError, ValueError, ArithmeticError) as error:  # of a header's numbers
        raise FormatError(f"{path}: {why(error)}") from None
    return samples[:, :done], rate


def from_pcm(raw: bytes, channels: int, width: int) -> np.ndarray:
    """Return the whole frames of PCM bytes, ``[channels, n]`` from -1 to 1."""
    data = np.frombuffer(raw, np.uint8)
    samples = data[: len(raw) // (channels * width) * channels * width].reshape(-1, width)
    wide = np.zeros((len(samples), 4), np.uint8)  # samples in the highest bytes of 32 bits
    wide[:, 4 - width :] = samples ^ np.uint8(0x80) if width == 1 else samples
    return (wide.view("<i4") / 2.0**31).reshape(-1, channels).T
