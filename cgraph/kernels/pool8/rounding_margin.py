"""The mean of bytes as a byte, and how far its quotient by integers may be from that by floats."""

import numpy as np

from cgraph.record import Record

LARGEST = 255
UNIT = 2.0**-24  # largest relative error of a rounding to float32
OTHER_ROUNDINGS = 8  # the product, two divisions; the ratio, the factor, the sum, the product with it; one to spare


class Mean(Record):
    """Conversion of bytes ``(byte - x_zero) * scale`` to the bytes of their mean, ``mean / last + zero`` in bounds.

    Scales are from 2**-50 to 2**50, so no result between is too small for float32.
    """

    scale: float
    x_zero: int
    last: float
    zero: int
    low: int = 0
    high: int = LARGEST


def rounding_margin(mean: Mean, taps: int) -> tuple[float, float]:
    """Return float32 numbers, an edge and a slope: where ``distance + slope * abs(y) <= edge`` for the quotient y of a
    sum of integers and its distance to the nearest integer, the quotient of floats rounds to the same one.

    Both are computed with at most ``taps - 1 + OTHER_ROUNDINGS`` roundings in all, so they differ by less than
    ``gamma * sum(|byte - x_zero|) * scale / (taps * last)``, gamma being ``n * u / (1 - n * u)`` for n roundings. That
    sum is at most the largest term times the taps, and at most the absolute value of the sum of integers plus twice
    the terms of the rarer sign.
    Source: Higham 2002, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4.
    """
    roundings = (taps - 1 + OTHER_ROUNDINGS) * UNIT
    if roundings >= 0.5:
        return -1.0, 0.0
    gamma, ratio = roundings / (1 - roundings), mean.scale / mean.last
    largest, least = (f(mean.x_zero, LARGEST - mean.x_zero) for f in (max, min))
    terms, slope = (2 * least, gamma) if 4 * least < largest else (largest, 0.0)
    edge = 0.5 - gamma * terms * ratio - 2 * UNIT  # the comparison rounds, too
    return float(np.nextafter(np.float32(edge), np.float32(-np.inf))), float(
        np.nextafter(np.float32(slope), np.float32(1))
    )
