"""Sounds as inputs: the samples of a .wav file, -1 to 1. Nothing is resampled, cut or mixed.

Source: RIFF's PCM samples: of 8 bits they have no sign, of 16, 24 and 32 they have one, lowest byte first.
"""

import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cgraph.cell import Variable
from cgraph.cli.arguments import why
from cgraph.errors import FormatError

SOUNDS = (".wav",)


def read_sound(path: Path, x: Variable) -> np.ndarray:
    """A sound as an input of its samples ``[..., n]``, or of several channels ``[..., c, n]`` or ``[..., n, c]``."""
    samples, rate = samples_of(path)
    channels, n = samples.shape
    shape = x.spec.shape
    axes = tuple(size for size in shape if size != 1) if channels > 1 else shape
    if samples.size == x.spec.size and (channels == 1 or axes in (samples.shape, (n, channels))):
        laid_out = samples if axes != (n, channels) else samples.T
        return np.ascontiguousarray(laid_out, x.spec.dtype).reshape(shape)
    raise FormatError(f"{path}: {n} samples of {channels} channels at {rate} Hz do not fit {x.name} {x.spec}")


def shape_of_sound(path: Path, shape: Sequence[int | str]) -> tuple[int, ...]:
    """The shape of an input that takes it, of which some axes are open. FormatError where channels have no axis."""
    channels, n = samples_of(path)[0].shape
    if channels == 1:
        return (*[1] * (len(shape) - 1), n) if shape else ()
    ones = [1] * (len(shape) - 2)
    if len(shape) > 1 and shape[-1] == channels:
        return (*ones, n, channels)
    if len(shape) > 1 and (shape[-2] == channels or isinstance(shape[-2], str)):
        return (*ones, channels, n)
    raise FormatError(f"{path}: a sound of {channels} channels does not fit an input [{','.join(map(str, shape))}]")


def samples_of(path: Path) -> tuple[np.ndarray, int]:
    """The samples ``[channels, n]`` as float32 from -1 to 1, and how many there are a second. FormatError if none."""
    try:
        with wave.open(str(path), "rb") as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            raw = np.frombuffer(file.readframes(file.getnframes()), np.uint8)
    except (wave.Error, EOFError) as error:
        raise FormatError(f"{path}: {why(error)}") from None
    frames = raw[: len(raw) // (channels * width) * channels * width].reshape(-1, width)
    wide = np.zeros((len(frames), 4), np.uint8)  # samples in the highest bytes of 32 bits
    wide[:, 4 - width :] = frames ^ np.uint8(0x80) if width == 1 else frames
    values = wide.view("<i4").astype(np.float64) / 2.0**31
    return np.ascontiguousarray(values.reshape(-1, channels).T, np.float32), rate
