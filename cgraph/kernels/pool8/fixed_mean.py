"""Means of bytes by a product of 16 bits, where every sum has the byte of the float mean.

The byte of a window depends only on the sum of its bytes, except near the middle between two integers
(`cgraph.kernels.pool8.rounding_margin`). A window of few taps has few sums, so all of them are tried.
"""

from collections.abc import Iterator

import numpy as np

from cgraph.kernels.pool8.rounding_margin import LARGEST, Mean, rounding_margin
from cgraph.record import Record

WORD = 1 << 16
MOST_FRACTION = 8  # bits after the point


class FixedMean(Record):
    """The byte of a sum: ``clip((((sum << shift) * factor >> 16) + plus - minus) >> fraction, low, high)`` of 16 bits
    without signs; the addition and the subtraction saturate.
    """

    shift: int
    factor: int
    plus: int
    minus: int
    fraction: int


def fixed_mean(mean: Mean, taps: int) -> FixedMean | None:
    """Return the integers that give the byte of each sum of `taps` bytes; None if there are none."""
    if taps * LARGEST >= WORD:
        return None
    total = np.arange(taps * LARGEST + 1)
    exact = (total - taps * mean.x_zero) * (mean.scale / mean.last / taps)
    edge, slope = rounding_margin(mean, taps)
    is_near = np.abs(exact - np.rint(exact)) + slope * np.abs(exact) > edge
    level = exact + mean.zero
    if (is_near & (level > mean.low - 1) & (level < mean.high + 1)).any():
        return None
    want = np.clip(np.rint(exact) + mean.zero, mean.low, mean.high)
    return next(
        (fixed for fixed in candidates(mean, taps) if np.array_equal(fixed_bytes(mean, fixed, total), want)), None
    )


def candidates(mean: Mean, taps: int) -> Iterator[FixedMean]:
    """Yield numbers whose results are near those of the mean, the most exact ones first."""
    shift = next(n for n in range(16, -1, -1) if taps * LARGEST << n < WORD)
    step = mean.scale / mean.last / taps  # from one sum to the next
    for fraction in range(MOST_FRACTION, 0, -1):
        factor = round(step * 2.0 ** (16 + fraction - shift))
        addend = (0.5 + mean.zero - taps * mean.x_zero * step) * 2**fraction
        if not 0 < factor < WORD or abs(addend) >= WORD - 1:
            continue
        for whole in (int(np.floor(addend)), int(np.floor(addend)) + 1):  # the product was rounded down
            yield FixedMean(shift, factor, max(whole, 0), max(-whole, 0), fraction)


def fixed_bytes(mean: Mean, fixed: FixedMean, total: np.ndarray) -> np.ndarray:
    """Return the bytes of sums."""
    product = ((total << fixed.shift) * fixed.factor) >> 16
    rounded = np.maximum(np.minimum(product + fixed.plus, WORD - 1) - fixed.minus, 0) >> fixed.fraction
    return np.clip(rounded, mean.low, mean.high)
