"""Where layers take their parameters from: a ``.weights`` file, a seed, or Vars to be assigned."""

from math import prod, sqrt
from pathlib import Path

import numpy as np

from cgraph.errors import FormatError, bytes_text
from cgraph.formats.allowance import Allowance
from cgraph.formats.mapped import map_file
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const, Var

LARGEST = 1 << 40  # bytes of one parameter


class StoredParameters:
    """A ``.weights`` file, read from front to back. Changes: its position.

    The header is three int32 (major, minor, revision) and how many pictures the network has seen: int64 from version
    0.2 on, int32 before. Then float32, layer after layer, little-endian. The arrays are views of the mapped file.
    """

    def __init__(self, path: str | Path, allowance: Allowance) -> None:
        self.path = path
        self.data = data = map_file(path)
        allowance.grow(len(data))
        if len(data) < 16:
            raise FormatError(f"{path}: {len(data)} bytes are no weights")
        major, minor = (int.from_bytes(data[i : i + 4], "little", signed=True) for i in (0, 4))
        self.transposed = major > 1000 or minor > 1000
        self.at = 20 if major * 10 + minor >= 2 and not self.transposed else 16
        if (len(data) - self.at) % 4:
            raise FormatError(f"{path}: {len(data) - self.at} bytes after the header are no float32 values")

    def take(self, shape: tuple[int, ...], name: str, start: float | None) -> Node:
        """The next array. FormatError when the file ends before it does."""
        nbytes = prod(shape) * 4
        left = len(self.data) - self.at
        if nbytes > left:
            raise FormatError(f"{self.path}: {name} {list(shape)} needs {nbytes} bytes, {left} are left")
        values = np.frombuffer(self.data[self.at : self.at + nbytes], "<f4").reshape(shape)
        self.at += nbytes
        return Const(values, name=name, copy=False)

    def finish(self) -> None:
        """FormatError when something is left."""
        left = len(self.data) - self.at
        if left:
            raise FormatError(
                f"{self.path}: {left} bytes are left after the last layer; this is another network's file"
            )


class RandomParameters:
    """Filters of a normal distribution, the rest as training begins; for plans and timings. Changes: its state.

    Parameters
        drawn: bytes that all parameters may need together; the file does not tell how many are right
    """

    transposed = False

    def __init__(self, seed: int, drawn: int) -> None:
        self.generator, self.left = np.random.default_rng(seed), drawn

    def take(self, shape: tuple[int, ...], name: str, start: float | None) -> Node:
        nbytes = prod(shape) * 4
        if nbytes > self.left:
            raise FormatError(
                f"{name} {list(shape)} would draw {bytes_text(nbytes)}, {bytes_text(self.left)} are left; "
                f"more with drawn=, and without seed= parameters take no bytes"
            )
        self.left -= nbytes
        return Const(random_array(self.generator, shape, start), name=name, copy=False)

    def finish(self) -> None:
        """Nothing is ever left."""


def random_array(generator: np.random.Generator, shape: tuple[int, ...], start: float | None) -> np.ndarray:
    """A parameter as training would begin with it: full of `start`, or of a normal distribution (He et al. 2015)."""
    if start is not None:
        return np.full(shape, start, np.float32)
    values = generator.standard_normal(shape, np.float32)
    values *= np.float32(sqrt(2 / max(prod(shape[1:]), 1)))
    return values


class FreeParameters:
    """Vars without a value, which need no bytes yet. Changes: it lists what was taken, with its start."""

    transposed = False

    def __init__(self) -> None:
        self.requests: list[tuple[Var, float | None]] = []

    def take(self, shape: tuple[int, ...], name: str, start: float | None) -> Node:
        if prod(shape) * 4 > LARGEST:
            raise FormatError(f"{name} {list(shape)} needs more than {LARGEST} bytes")
        self.requests.append((Var(shape, "float32", name), start))
        return self.requests[-1][0]

    def finish(self) -> None:
        """Nothing is ever left."""


Parameters = StoredParameters | RandomParameters | FreeParameters
