"""Read weights in the deep-compression layout of the SqueezeNet v1.0 release.

Source: Han, Mao and Dally 2016, arXiv:1510.00149; layout: songhan/SqueezeNet-Deep-Compression. For each layer, in the
network's order: a codebook of 256 float32, a bias, the codes of the entries that are not the default, and their
distances as 4-bit numbers, low half first. Every position without an entry holds ``codebook[0]``.
"""

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.mapped import map_file

__all__ = ["read_deep_compression"]

CODES = 256
PIECE = 1 << 16  # entries that are placed at once, an even number


def read_deep_compression(path: str | Path, shapes: Sequence[tuple[int, ...]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return filters and bias of each layer.

    Parameters
        path: the ``.net`` file
        shapes: the filters' shapes ``(out, in, rows, columns)``, in the file's order
    Returns
        for each layer, float32 filters of its shape and a bias ``[out]``
    Raises
        FormatError: the file is cut off, too long, or an entry lies outside its filters
    """
    raw = map_file(path)
    reader = _Reader(raw, str(path))
    counts = reader.take(len(shapes), np.uint32)
    layers = [_layer(reader, shape, int(count)) for shape, count in zip(shapes, counts)]
    if reader.at != len(raw):
        raise FormatError(
            f"{path}: {len(raw) - reader.at} bytes are left after the last of {len(shapes)} layers. Check the shapes"
        )
    return layers


class _Reader:
    """A position in the bytes of a file. Changes as it reads."""

    def __init__(self, raw: memoryview, path: str) -> None:
        self.raw, self.path, self.at = raw, path, 0

    def take(self, count: int, dtype: type) -> np.ndarray:
        nbytes = count * np.dtype(dtype).itemsize
        if self.at + nbytes > len(self.raw):
            raise FormatError(
                f"{self.path}: needs {nbytes} bytes at {self.at}; the file has {len(self.raw)}. Check the shapes"
            )
        values: np.ndarray = np.frombuffer(self.raw[self.at : self.at + nbytes], dtype)
        self.at += nbytes
        return values


def _layer(reader: _Reader, shape: tuple[int, ...], count: int) -> tuple[np.ndarray, np.ndarray]:
    codebook = reader.take(CODES, np.float32)
    bias = reader.take(shape[0], np.float32)
    codes = reader.take(count, np.uint8)
    packed = reader.take((count + 1) // 2, np.uint8)
    filters = np.full(prod(shape), codebook[0], np.float32)
    at = -1
    for start in range(0, count, PIECE):
        part = packed[start // 2 : (start + PIECE) // 2]
        gaps = np.stack([part & 15, part >> 4], axis=1).reshape(-1)[: count - start]
        places = at + np.cumsum(gaps.astype(np.int64) + 1)
        at = int(places[-1])
        if at >= filters.size:
            raise FormatError(f"{reader.path}: an entry at {at} lies outside filters of {filters.size} values")
        filters[places] = codebook[codes[start : start + PIECE]]
    return filters.reshape(shape), bias.copy()


def __dir__() -> list[str]:
    return __all__
