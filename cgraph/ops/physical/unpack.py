"""Unpacking of packed constants, for the reference implementation."""

from collections.abc import Callable
from math import prod

import numpy as np

STEP = 4096  # splits positions below its square into two numbers exact in float32


def unpack(packed: np.ndarray, shape: tuple[int, ...], pack: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the array of this shape from which `pack`, which moves elements and adds zeros, made `packed`."""
    size = prod(shape)
    probes = (np.ones(size), np.arange(size) % STEP, np.arange(size) // STEP)
    used, low, high = (pack(x.astype(packed.dtype).reshape(shape)).ravel().astype(int) for x in probes)
    out = np.zeros(size, packed.dtype)
    out[(low + STEP * high)[used == 1]] = packed.ravel()[used == 1]
    return out.reshape(shape)
