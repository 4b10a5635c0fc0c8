"""Sounds as inputs: the samples of a .wav file, -1 to 1. Nothing is resampled, cut or mixed.

Source: RIFF's PCM samples: 8-bit samples are unsigned, those of 16, 24 and 32 bits signed, lowest byte first.
"""

import os
import stat
import wave
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cgraph.cli.arguments import why
from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.record import Record
from cgraph.storage.cell import Variable

SOUNDS = (".wav",)
WIDTHS = (1, 2, 3, 4)  # bytes of a sample
BLOCK = 1 << 20  # bytes that are converted at once


def read_sound(path: Path, x: Variable) -> np.ndarray:
    """Return a sound as an input of its samples ``[..., n]``, or of several channels ``[..., c, n]`` or ``[..., n,
    c]``."""
    with open_sound(path) as sound:
        channels, n = sound.shape
        shape = x.spec.shape
        axes = tuple(size for size in shape if size != 1) if channels > 1 else shape
        if channels * n != x.spec.size or not (channels == 1 or axes in (sound.shape, (n, channels))):
            raise FormatError(
                f"{n} samples of {channels} channels at {sound.rate} Hz do not fit {x.name} {x.spec}. "
                "Cut or resample the sound first"
            )
        if channels > 1 and axes == (n, channels):
            return sound.samples(x.spec.dtype, "F").T.reshape(shape)
        return sound.samples(x.spec.dtype).reshape(shape)


def shape_of_sound(path: Path, shape: Sequence[int | str]) -> tuple[int, ...]:
    """Return the shape of an input with open axes for this sound. FormatError if there are channels without an axis."""
    with open_sound(path) as sound:
        channels, n = sound.shape
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

    Memory: the result, which is charged as in `cgraph.formats.allowance`, and a block of frames.
    """
    with open_sound(path) as sound:
        return sound.samples("float32"), sound.rate


class Sound(Record, eq=False):
    """An open .wav file.

    Fields
        shape: channels, and whole frames that the file has
        width: bytes of a sample
        rate: frames a second
        file: at its first frame
        allowance: of the file
    """

    shape: tuple[int, int]
    width: int
    rate: int
    file: wave.Wave_read
    allowance: Allowance

    def samples(self, dtype: Any, order: Literal["C", "F"] = "C") -> np.ndarray:
        """Read all samples, ``[channels, n]`` from -1 to 1. FormatError if they take more memory than the file may."""
        channels, frames = self.shape
        self.allowance.spend(f"a sound of {frames} samples", nbytes=channels * frames * np.dtype(dtype).itemsize)
        samples = np.empty(self.shape, dtype, order)
        step = max(BLOCK // (channels * self.width), 1)
        for start in range(0, frames, step):
            block = from_pcm(self.file.readframes(min(step, frames - start)), channels, self.width)
            if block.shape[1] != min(step, frames - start):
                raise FormatError(f"its header declares {frames} samples, but they end earlier. Write the file again")
            samples[:, start : start + step] = block
        return samples


@contextmanager
def open_sound(path: Path) -> Iterator[Sound]:
    """Open a .wav file, as a context manager of a `Sound`. FormatError, which names the file, for other files."""
    with errors_of(path), open(path, "rb") as stream, wave.open(stream) as file:
        channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
        if width not in WIDTHS:
            raise FormatError(f"samples of {8 * width} bits; those of 8, 16, 24 and 32 bits are read. Convert the file")
        size = os.fstat(stream.fileno()).st_size
        frames = min(file.getnframes(), (size - stream.tell()) // (channels * width))
        yield Sound((channels, frames), width, rate, file, Allowance(size))


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Raise errors about a sound as FormatErrors that name it."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise FormatError("it is not a regular file")
        yield
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    except (wave.Error, EOFError, RuntimeError, ValueError, ArithmeticError) as error:  # of a header's numbers
        raise FormatError(f"{path}: {why(error)}") from None


def from_pcm(raw: bytes, channels: int, width: int) -> np.ndarray:
    """Return the whole frames of PCM bytes, ``[channels, n]`` from -1 to 1."""
    data = np.frombuffer(raw, np.uint8)
    samples = data[: len(raw) // (channels * width) * channels * width].reshape(-1, width)
    wide = np.zeros((len(samples), 4), np.uint8)  # samples in the highest bytes of 32 bits
    wide[:, 4 - width :] = samples ^ np.uint8(0x80) if width == 1 else samples
    return (wide.view("<i4") / 2.0**31).reshape(-1, channels).T
