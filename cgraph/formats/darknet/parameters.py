"""Sources of layer parameters: a ``.weights`` file, a seed, or Vars to be assigned."""

from math import prod, sqrt
from pathlib import Path

import numpy as np

from cgraph.errors import FormatError, bytes_text, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.formats.mapped import map_file
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const, Var

LARGEST = 1 << 40  # bytes of one parameter


class StoredParameters:
    """Parameters from a ``.weights`` file, read in sequence. Changes: its position.

    The header is three int32 (major, minor, revision) and the number of images in training: int64 from version 0.2 on,
    int32 before. Little-endian float32 values follow, layer after layer. Arrays are views of the mapped file.
    """

    def __init__(self, path: str | Path, allowance: Allowance) -> None:
        self.path = path
        self.data = data = map_file(path)
        allowance.grow(len(data))
        if len(data) < 16:
            raise FormatError(
                f"{path}: {len(data)} bytes are not a .weights file, whose header has 16 or 20. Pass the whole file"
            )
        major, minor = (int.from_bytes(data[i : i + 4], "little", signed=True) for i in (0, 4))
        self.transposed = major > 1000 or minor > 1000
        self.at = 20 if major * 10 + minor >= 2 and not self.transposed else 16
        if (len(data) - self.at) % 4:
            raise damaged_file(f"{path}: {len(data) - self.at} bytes after the header are not float32 values")

    def take(self, shape: tuple[int, ...], name: str, start: float | None) -> Node:
        """Return the next array. FormatError if the file ends before it."""
        nbytes = prod(shape) * 4
        left = len(self.data) - self.at
        if nbytes > left:
            raise FormatError(
                f"{self.path}: {name} {list(shape)} needs {nbytes} bytes, {left} are left. Pass the weights of this "
                "network"
            )
        values = np.frombuffer(self.data[self.at : self.at + nbytes], "<f4").reshape(shape)
        self.at += nbytes
        return Const(values, name=name, copy=False)

    def finish(self) -> None:
        """Raise FormatError if bytes are left."""
        left = len(self.data) - self.at
        if left:
            raise FormatError(
                f"{self.path}: {left} bytes are left after the last layer. Give the weights of this network"
            )


class RandomParameters:
    """Random filters and the initial values of training, for plans and timings. Changes: the state of its generator.

    Parameters
        drawn: the largest number of bytes of all parameters together
    """

    transposed = False

    def __init__(self, seed: int, drawn: int) -> None:
        self.generator, self.left = np.random.default_rng(seed), drawn

    def take(self, shape: tuple[int, ...], name: str, start: float | None) -> Node:
        nbytes = prod(shape) * 4
        if nbytes > self.left:
            raise FormatError(
                f"{name} {list(shape)} would draw {bytes_text(nbytes)}, {bytes_text(self.left)} are left; "
                f"raise drawn=, or omit seed= for parameters without values"
            )
        self.left -= nbytes
        return Const(random_array(self.generator, shape, start), name=name, copy=False)

    def finish(self) -> None:
        """Do nothing: no bytes can be left."""


def random_array(generator: np.random.Generator, shape: tuple[int, ...], start: float | None) -> np.ndarray:
    """Return the initial value of a parameter: full of `start`, or normally distributed (He et al. 2015)."""
    if start is not None:
        return np.full(shape, start, np.float32)
    values = generator.standard_normal(shape, np.float32)
    values *= np.float32(sqrt(2 / max(prod(shape[1:]), 1)))
    return values


class FreeParameters:
    """Parameters as Vars without a value, which need no memory. Changes: `requests` lists them with start values."""

    transposed = False

    def __init__(self) -> None:
        self.requests: list[tuple[Var, float | None]] = []

    def take(self, shape: tuple[int, ...], name: str, start: float | None) -> Node:
        if prod(shape) * 4 > LARGEST:
            raise FormatError(f"{name} {list(shape)} needs more than {LARGEST} bytes")
        self.requests.append((Var(shape, "float32", name), start))
        return self.requests[-1][0]

    def finish(self) -> None:
        """Do nothing: no bytes can be left."""


Parameters = StoredParameters | RandomParameters | FreeParameters
