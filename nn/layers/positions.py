"""Positions in attention: queries and keys that are turned, and slopes by which distance counts."""

from math import log2

import numpy as np

import cgraph as cg
from cgraph import Node


def rotated(x: Node, start: Node | None = None, base: float = 10000.0) -> Node:
    """Each pair of elements half a head apart is turned by an angle in proportion to the position.

    Parameters
        x: ``[n, heads, t, d]`` with an even d
        start: int64 ``[n]``, the position of the first row; 0 by default
        base: pair i of a head is turned by ``position / base**(2 i / d)``
    Source
        Su et al. 2021, arXiv:2104.09864, in the order of GPT-NeoX and Llama
    """
    t, half = x.shape[2], x.shape[3] // 2
    speeds = base ** (-np.arange(half) / half)
    places = cg.arange(t) if start is None else cg.reshape(start, (-1, 1, 1, 1)) + np.arange(t)[:, None]
    angles = cg.astype(cg.reshape(places, (-1, 1, t, 1)), "float64") * speeds
    cosines, sines = (cg.astype(f(angles), "float32") for f in (cg.cos, cg.sin))
    a, b = x[..., :half], x[..., half:]
    return cg.concat([a * cosines - b * sines, b * cosines + a * sines], 3)


def alibi_slopes(heads: int) -> np.ndarray:
    """The slope of each head, from steep to flat.

    Source
        Press et al. 2021, arXiv:2108.12409
    """
    power = 2 ** int(log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    slopes += [2 ** (-8 * (i + 0.5) / power) for i in range(heads - power)]
    return np.array(slopes, np.float32)
