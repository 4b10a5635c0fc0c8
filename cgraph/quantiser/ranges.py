"""Ranges of values, scales for them, and weights as integers.

Source: onnxruntime's static quantiser (as documented) for scales; Migacz 2017, 8-bit inference with TensorRT, for the
range of least divergence.
"""

from collections.abc import Callable

import numpy as np

from cgraph.quantiser.layers import WeightLayer
from cgraph.record import Record

BINS = 8192
LEVELS = 128  # of a value's size, by which two distributions are compared
PERCENTILE = 99.999
LARGEST = 127  # steps of a weight
MOST_BIAS = 2.0**30  # in units of the sums, half of the range of int32
LEAST = np.finfo(np.float32).tiny

Range = tuple[float, float]


class Quantum(Record):
    """Scale and zero point of integers that represent floats: ``(number - zero) * scale``."""

    scale: np.float32
    zero: int


class ByteForm(Record):
    """The 8-bit form of images.

    Fields
        dtype: uint8 or int8
        symmetric: the zero point is the middle of the range
    """

    dtype: str = "uint8"
    symmetric: bool = False

    def quantum(self, limits: Range) -> Quantum:
        """Return the scale for a range, widened until it contains 0."""
        least = int(np.iinfo(self.dtype).min)
        low, high = min(limits[0], 0.0), max(limits[1], 0.0)
        if self.symmetric:
            high = max(-low, high)
            scale = np.float32(high / LARGEST)
            return Quantum(scale, least + LARGEST + 1) if scale >= LEAST else Quantum(np.float32(1), least)
        scale = np.float32((high - low) / 255)
        if scale < LEAST:
            return Quantum(np.float32(1), least)
        return Quantum(scale, least + int(np.rint(-low / np.float64(scale))))


# -- ranges of samples -------------------------------------------------------------------------------------------------


def percentile(counts: np.ndarray, low: float, high: float, p: float = PERCENTILE) -> Range:
    """Return the range without ``(100 - p) / 2`` per cent of the values on each side.

    Parameters
        counts: number of values in each of equal bins from `low` to `high`
    """
    edges = np.linspace(low, high, len(counts) + 1)
    share = np.cumsum(counts) / max(counts.sum(), 1)
    tail = (100 - p) / 200
    first = int(np.searchsorted(share, tail, side="right"))
    last = int(np.searchsorted(share, 1 - tail, side="left"))
    return float(edges[min(first, len(counts) - 1)]), float(edges[min(last, len(counts) - 1) + 1])


def entropy(counts: np.ndarray, low: float, high: float) -> Range:
    """Return the range around 0 whose quantised values have the least Kullback-Leibler divergence from all values.

    Parameters
        counts: number of values in each of equal bins from `-high` to `high`, with `low` being `-high`
    """
    middle = len(counts) // 2
    counts = counts.copy()
    counts[middle] = min(counts[middle], counts[middle + 1])  # 0, which a relu often returns, is exact in any range
    halves = range(LEVELS // 2, middle + 1, LEVELS // 2)
    best = min(halves, key=lambda half: divergence(counts, middle - half, middle + half))
    return float(low * best / middle), float(high * best / middle)


def divergence(counts: np.ndarray, first: int, stop: int) -> float:
    """Return the divergence of bins `first` to `stop`, with all others added to the ends, from the same in LEVELS
    steps."""
    inside = counts[first:stop].astype(np.float64)
    p = inside.copy()
    p[0] += counts[:first].sum()
    p[-1] += counts[stop:].sum()
    there = p > 0
    groups, has = inside.reshape(LEVELS, -1), there.reshape(LEVELS, -1)
    level = groups.sum(1, keepdims=True) / np.maximum(has.sum(1, keepdims=True), 1)
    q = np.where(has, level, 0.0).reshape(-1)
    p, q = smooth(p), smooth(q)
    return float((p * np.log(p / q)).sum()) if p.sum() and q.sum() else np.inf


def smooth(x: np.ndarray) -> np.ndarray:
    """Return a distribution without zeros: each zero takes 1e-4 from the others."""
    zero = x == 0
    if zero.all():
        return x
    share = x / x.sum()
    return np.where(zero, 1e-4 / x.size, share * (1 - 1e-4 * zero.sum() / x.size))


METHODS: dict[str, Callable[[np.ndarray, float, float], Range] | None] = {
    "minmax": None,
    "percentile": percentile,
    "entropy": entropy,
}


# -- weights -----------------------------------------------------------------------------------------------------------


class IntegerWeights(Record, eq=False):
    """Weights as integers.

    Fields
        numbers: int8, as the op reads them
        scale: float32 for each channel of the result
        unit: float32 for each channel: the value of a bias of 1
        axis: axis of `numbers` that counts channels
    """

    numbers: np.ndarray
    scale: np.ndarray
    unit: np.ndarray
    axis: int

    @property
    def wide(self) -> np.ndarray:
        """The scales, shaped to broadcast to the numbers."""
        return np.expand_dims(self.scale, [i for i in range(self.numbers.ndim) if i != self.axis])

    @property
    def floats(self) -> np.ndarray:
        """The floats that the numbers represent."""
        return self.numbers.astype("float32") * self.wide

    def bias(self, x: np.ndarray) -> np.ndarray:
        """Return a bias in the unit of the sums."""
        limit = np.iinfo("int32").max
        return np.clip(np.rint(x / self.unit.astype("float64")), -limit, limit).astype("int32")


def weights_of(layer: WeightLayer, x: Quantum) -> IntegerWeights:
    """Return a layer's integer weights by channel, in larger steps where the bias would overflow int32."""
    others = tuple(i for i in range(layer.weights.ndim) if i != layer.axis)
    size = np.abs(layer.weights).max(others).astype("float64") / LARGEST
    scale = np.maximum(size, np.abs(layer.bias) / (np.float64(x.scale) * MOST_BIAS)).astype("float32")
    scale[scale * x.scale < LEAST] = 1
    wide = np.expand_dims(scale, others)
    numbers = np.clip(np.rint(layer.weights / wide), -LARGEST, LARGEST).astype("int8")
    return IntegerWeights(numbers, scale, x.scale * scale, layer.axis)
