"""Positions in attention: rotary embeddings, ALiBi slopes and relative position biases."""

from math import log, log2

import numpy as np

import cgraph as cg
from cgraph import Node


def rotate(x: Node, start: Node | None = None, base: float = 10000.0) -> Node:
    """Return `x` with each pair of elements half a head apart rotated by an angle proportional to the position.

    Parameters
        x: ``[n, heads, t, d]`` with an even d
        start: int64 ``[n]``, the position of the first row; 0 by default
        base: pair i of a head is rotated by ``position / base**(2 i / d)``
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
    """Return the slope of each head: of the largest power of two of them in falling order, then of the others.

    Source
        Press et al. 2021, arXiv:2108.12409
    """
    power = 2 ** int(log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    slopes += [2 ** (-8 * (i + 0.5) / power) for i in range(heads - power)]
    return np.array(slopes, np.float32)


def relative_bias(table: Node, queries: int, keys: int, farthest: int, causal: bool, start: Node | None = None) -> Node:
    """Return the bias of the products of queries and keys by distance, ``[1 or n, heads, queries, keys]``.

    Rows of the result overlap: it is a view of one number for each distance and needs no more bytes.

    Parameters
        table: ``[heads, buckets]``
        farthest: distance from which on all keys are in the last bucket
        causal: no query attends to later keys, so these have no buckets
        start: int64 ``[n]``, the positions of the first queries among the keys; 0 by default
    Source
        Raffel et al. 2020, arXiv:1910.10683 (T5)
    """
    first = 1 - (keys if start is not None else queries)
    buckets = relative_buckets(np.arange(first, keys), table.shape[1], farthest, causal)
    line = cg.expand_dims(cg.take(table, buckets, axis=1), 0)  # [1, heads, distances]
    if start is not None:
        wide = cg.broadcast_to(line, (start.shape[0], *line.shape[1:]))
        line = cg.take_rows(wide, keys - queries - start, keys + queries - 1, axis=2)
    return cg.flip(cg.sliding(line, keys, axis=2), 2)


def relative_buckets(distances: np.ndarray, buckets: int, farthest: int, causal: bool) -> np.ndarray:
    """Return the bucket of each distance from a query to a key: one for each small distance, then logarithmic ones.

    Unless `causal`, later keys have the second half of the buckets.
    """
    later = 0 if causal else (distances > 0) * (buckets // 2)
    count = buckets if causal else buckets // 2
    far, near = np.maximum(-distances, 0) if causal else np.abs(distances), count // 2
    steps = np.log(np.maximum(far, 1) / near) / log(farthest / near) * (count - near)
    return later + np.where(far < near, far, np.minimum(near + steps.astype(np.int64), count - 1))
