"""ALIGNMENT: at multiples of how many bytes values, workspaces and code begin: a cache line, and the widest vector."""

import numpy as np

ALIGNMENT = 64


def round_up(n: int, multiple: int) -> int:
    """`n`, or the next number after it that is a multiple."""
    return -(-n // multiple) * multiple


def aligned(nbytes: int) -> int:
    """Bytes up to the next multiple of the alignment."""
    return round_up(nbytes, ALIGNMENT)


def aligned_memory(nbytes: int) -> np.ndarray:
    """Uninitialised bytes, the first of which lies at a multiple of the alignment."""
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes]
