"""ALIGNMENT of values, workspaces and code in bytes: a cache line, and the widest vector."""

from math import prod

import numpy as np

from cgraph.system.addresses import address_of

ALIGNMENT = 64


def round_up(n: int, multiple: int) -> int:
    """Return `n` rounded up to a multiple."""
    return -(-n // multiple) * multiple


def aligned(nbytes: int) -> int:
    """Return bytes rounded up to the alignment."""
    return round_up(nbytes, ALIGNMENT)


def aligned_memory(nbytes: int) -> np.ndarray:
    """Return uninitialised bytes; the address of the first is a multiple of the alignment."""
    return aligned_array((nbytes,), np.dtype(np.uint8), nbytes)


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return zeros in C order; the address of the first is a multiple of the alignment."""
    raw = np.zeros(prod(shape) * dtype.itemsize + ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, raw, -address_of(raw) % ALIGNMENT)  # type: ignore[arg-type]


def aligned_array(shape: tuple[int, ...], dtype: np.dtype, nbytes: int) -> np.ndarray:
    """Return an uninitialised array of `nbytes` bytes in C order; its address is a multiple of the alignment."""
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, raw, -address_of(raw) % ALIGNMENT)  # type: ignore[arg-type]
