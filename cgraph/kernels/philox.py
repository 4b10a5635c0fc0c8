"""Philox 4x32-10 in NumPy: random numbers that depend only on a key and an index.

This is the reference implementation of the random kernels.

The counter of a block of four 32-bit words is a 64-bit number. Words are assigned to elements so that vectors of any
width up to 16 store neighbouring elements: with ``g, r = divmod(i, 16 * E)`` and ``part, lane = divmod(r, 16)``,
element i takes part `part` of block ``16 * g + lane``; a block has E = 4 parts of one word, or E = 2 parts of two words
for 8-byte values.

Source
    Salmon, Moraes, Dror and Shaw 2011, Parallel random numbers: as easy as 1, 2, 3
"""

from math import pi

import numpy as np

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
LANES = 16
LOW = np.uint64(0xFFFFFFFF)


def words(key: np.ndarray, counters: np.ndarray) -> np.ndarray:
    """Return the four words of each block: uint32 ``[4, n]`` for a key of two uint32 and n uint64 counters."""
    c0, c1 = counters & LOW, counters >> np.uint64(32)
    c2, c3 = np.zeros_like(c0), np.zeros_like(c0)
    k0, k1 = int(key[0]), int(key[1])
    for _ in range(ROUNDS):
        x, y = c0 * np.uint64(MULTIPLIERS[0]), c2 * np.uint64(MULTIPLIERS[1])
        c0, c1, c2, c3 = (
            (y >> np.uint64(32)) ^ c1 ^ np.uint64(k0),
            y & LOW,
            (x >> np.uint64(32)) ^ c3 ^ np.uint64(k1),
            x & LOW,
        )
        k0, k1 = (k0 + STEPS[0]) & 0xFFFFFFFF, (k1 + STEPS[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3]).astype(np.uint32)


def parts(key: np.ndarray, size: int, itemsize: int) -> np.ndarray:
    """Return the words of the blocks that `size` elements need: ``[groups, 4, 16]``."""
    groups = -(-size // (LANES * 16 // itemsize))
    blocks = words(np.asarray(key, np.uint32), np.arange(groups * LANES, dtype=np.uint64))
    return np.moveaxis(blocks.reshape(4, groups, LANES), 0, 1)


def bits(key: np.ndarray, size: int, itemsize: int) -> np.ndarray:
    """Return uniform integers: uint32 or uint64 ``[size]``."""
    blocks = parts(key, size, itemsize)
    return (blocks if itemsize == 4 else join_words(blocks)).reshape(-1)[:size]


def join_words(blocks: np.ndarray) -> np.ndarray:
    """Return two 64-bit integers made of the four words of each block."""
    wide = blocks.astype(np.uint64)
    return wide[:, 0::2] | wide[:, 1::2] << np.uint64(32)


def uniform(key: np.ndarray, size: int, dtype: str) -> np.ndarray:
    """Return uniform multiples of 2**-24 (float32) or 2**-53 (float64) in [0, 1)."""
    if dtype == "f4":
        return (bits(key, size, 4) >> np.uint32(8)).astype("f4") * np.float32(2.0**-24)
    return (bits(key, size, 8) >> np.uint64(11)).astype("f8") * 2.0**-53


def normal(key: np.ndarray, size: int, dtype: str) -> np.ndarray:
    """Return standard normal values by Box and Muller: two from each pair of nonzero uniform values."""
    u: np.ndarray
    angle: np.ndarray
    if dtype == "f4":
        blocks = parts(key, size, 4).astype("f4")
        u = (blocks[:, 0::2] + np.float32(0.5)) * np.float32(2.0**-32)
        angle = blocks[:, 1::2] * np.float32(2.0**-32 * 2 * pi)
    else:
        whole = join_words(parts(key, size, 8)) >> np.uint64(11)
        u = (whole[:, 0:1].astype("f8") + 0.5) * 2.0**-53
        angle = whole[:, 1:2].astype("f8") * (2.0**-53 * 2 * pi)
    radius = np.sqrt(-2 * np.log(u))
    pair = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 2)  # [groups, pairs, 2, lanes]
    return pair.reshape(-1)[:size].astype(dtype)


def bernoulli(key: np.ndarray, size: int, probability: float) -> np.ndarray:
    """Return booleans that are True with a probability, rounded to a multiple of 2**-32."""
    return bits(key, size, 4) < np.float64(probability) * 2.0**32
