"""What ops with options mean, element by element in NumPy, for `tests/ops/test_options.py` and layers of nn."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Numbers = int | Sequence[int]


def each(value: Numbers, axes: int) -> tuple[int, ...]:
    """One number for each axis."""
    return (value,) * axes if isinstance(value, int) else tuple(value)


def around(pad: Numbers, axes: int) -> tuple[tuple[int, int], ...]:
    """What is put before and behind each axis."""
    numbers = each(pad, 2 * axes) if isinstance(pad, int) else tuple(pad)
    numbers = numbers * 2 if len(numbers) == axes else numbers
    return tuple(zip(numbers[:axes], numbers[axes:], strict=True))


def conv(x, f, stride: Numbers = 1, pad: Numbers = 0, dilation: Numbers = 1, groups: int = 1) -> np.ndarray:
    """The cross-correlation of ``[n, c, ...]`` with filters ``[k, c / groups, ...]``, a filter position at a time."""
    axes = x.ndim - 2
    steps, gaps = each(stride, axes), each(dilation, axes)
    x = np.pad(x, ((0, 0), (0, 0), *around(pad, axes)))
    shape = [(n - (w - 1) * d - 1) // s + 1 for n, w, s, d in zip(x.shape[2:], f.shape[2:], steps, gaps)]
    out = np.zeros((len(x), len(f), *shape))
    inside, filters = x.shape[1] // groups, len(f) // groups
    for g in range(groups):
        for at in np.ndindex(*f.shape[2:]):
            window = tuple(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, gaps, shape, steps))
            part = x[(slice(None), slice(g * inside, (g + 1) * inside), *window)]
            weights = f[(slice(g * filters, (g + 1) * filters), slice(None), *at)]
            out[:, g * filters : (g + 1) * filters] += np.einsum("nc...,kc->nk...", part, weights)
    return out


def conv_transpose(
    x, f, stride: Numbers = 1, pad: Numbers = 0, dilation: Numbers = 1, groups: int = 1, output_pad: Numbers = 0
) -> np.ndarray:
    """Each pixel of ``[n, k, ...]`` spreads its filter ``[k, c / groups, ...]`` over the result, which is then cut."""
    axes = x.ndim - 2
    steps, gaps, more, cuts = each(stride, axes), each(dilation, axes), each(output_pad, axes), around(pad, axes)
    full = [(n - 1) * s + (w - 1) * d + 1 for n, w, s, d in zip(x.shape[2:], f.shape[2:], steps, gaps)]
    out = np.zeros((len(x), f.shape[1] * groups, *(n + m for n, m in zip(full, more))))
    inside, filters = x.shape[1] // groups, f.shape[1]
    for g in range(groups):
        for at in np.ndindex(*f.shape[2:]):
            window = tuple(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, gaps, x.shape[2:], steps))
            part = x[:, g * inside : (g + 1) * inside]
            weights = f[(slice(g * inside, (g + 1) * inside), slice(None), *at)]
            out[(slice(None), slice(g * filters, (g + 1) * filters), *window)] += np.einsum(
                "nk...,kc->nc...", part, weights
            )
    return out[(slice(None), slice(None), *(slice(a, n - b) for (a, b), n in zip(cuts, out.shape[2:])))]


def pool(
    combine: Callable[..., Any],
    x: np.ndarray,
    window: Numbers,
    stride: Numbers | None = None,
    pad: Numbers = 0,
    ceil: bool = False,
    dilation: Numbers = 1,
    count_pad: bool = False,
) -> np.ndarray:
    """`combine` of the elements of each window; padding counts as a 0 or not at all, what lies behind it never does."""
    axes = x.ndim - 2
    sizes, gaps, pads = each(window, axes), each(dilation, axes), around(pad, axes)
    steps = each(window if stride is None else stride, axes)
    shape = []
    for n, w, s, d, (a, b) in zip(x.shape[2:], sizes, steps, gaps, pads):
        room = n + a + b - (w - 1) * d - 1
        count = (-(-room // s) if ceil else room // s) + 1
        shape.append(count - (ceil and (count - 1) * s >= n + a))  # a window begins in front of the end
    out = np.zeros((*x.shape[:2], *shape))
    for at in np.ndindex(*shape):
        places = [[o * s - a + i * d for i in range(w)] for o, s, (a, _), w, d in zip(at, steps, pads, sizes, gaps)]
        kept = [[p for p in row if 0 <= p < n] for row, n in zip(places, x.shape[2:])]
        part = x[np.ix_(range(len(x)), range(x.shape[1]), *kept)].reshape(*x.shape[:2], -1)
        if count_pad:
            counted = [[p for p in row if p < n + b] for row, n, (_, b) in zip(places, x.shape[2:], pads)]
            zeros = int(np.prod([len(row) for row in counted])) - part.shape[2]
            part = np.concatenate([part, np.zeros((*x.shape[:2], zeros))], 2)
        out[(slice(None), slice(None), *at)] = combine(part, axis=2)
    return out


def max_pool(x, window: Numbers, **options: Any) -> np.ndarray:
    return pool(np.max, x, window, **options)


def avg_pool(x, window: Numbers, **options: Any) -> np.ndarray:
    return pool(np.mean, x, window, **options)


def normalised(x, axes, eps: float = 0) -> np.ndarray:
    """x with mean 0 and variance 1 along axes."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis: int = -1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def lrn(x, size: int, alpha: float, beta: float, bias: float) -> np.ndarray:
    before = (size - 1) // 2
    wide = np.pad(x * x, ((0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)))
    sums = sum(wide[:, i : i + x.shape[1]] for i in range(size))
    return x / (bias + alpha / size * sums) ** beta


def attention(q, k, v, mask=0.0, scale=None, softcap=0.0, window=0, start=0, causal=False) -> np.ndarray:
    """Weights of keys by softmax; what is hidden has none."""
    products = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    products = softcap * np.tanh(products / softcap) if softcap else products
    products = products + mask
    if causal:
        place, key = np.arange(q.shape[-2])[:, None] + start, np.arange(k.shape[-2])
        hidden = (key > place) | ((key <= place - window) & (window > 0))
        products = np.where(hidden, -np.inf, products)
    return softmax(products) @ v


def gru(x, h, w, u, b, b_hidden=0.0) -> np.ndarray:
    wz, wr, wn = np.split(w, 3, 1)
    uz, ur, un = np.split(u, 3, 1)
    bz, br, bn = np.split(b, 3)
    z, r = sigmoid(x @ wz + h @ uz + bz), sigmoid(x @ wr + h @ ur + br)
    return (1 - z) * np.tanh(x @ wn + bn + r * (h @ un + b_hidden)) + z * h


def leaves(x, roots, features, thresholds, below, above, equal, missing) -> np.ndarray:
    """The leaf that each tree leads each row to."""
    out = np.zeros((len(x), len(roots)), "int32")
    for i, t in np.ndindex(*out.shape):
        node = roots[t]
        while features[node] >= 0:
            value = x[i, features[node]]
            goes = value == thresholds[node] if equal[node] else value <= thresholds[node]
            node = below[node] if goes or (missing[node] and np.isnan(value)) else above[node]
        out[i, t] = node
    return out
