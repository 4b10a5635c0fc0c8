"""Sums of two bytes by two multiply-adds, where they have the bytes of a division.

A `Join` means ``(first * byte + beside * residual) / last`` with a rounding to float32 after each operation. With
ratios of the scales it is ``fma(byte, a, fma(residual, b, c))``, in a third of the operations. Last bits differ, and so
may the byte of a quotient near the middle between two integers. There are at most 65,536 pairs of bytes, so all of them
are tried: a join has ratios only if every pair has the same byte. If one near the middle differs, neighbouring numbers
are tried.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from cgraph.kernels.conv8.calls import Join, Result
from cgraph.record import replace

BYTES = 256
MOST_QUOTIENT = 2.0**30  # larger ones do not fit in int32
NEAR = 2.0**-20  # of the largest quotient: more than the roundings of both forms
NUDGE = 2.0**-26  # of the largest quotient: a fraction of their last bit
NUDGES = 8  # of the offset in either direction
MOST_NEAR = 1024  # more quotients near the middle lie there exactly, and no neighbouring numbers suit all of them

Ratios = tuple[float, float, float]


def with_ratios(result: Result) -> Result:
    """Return a result whose join has the ratios that give the same bytes, if there are such."""
    join = result.join
    return result if join is None else replace(result, join=replace(join, ratios=ratios_of(result, join)))


def join_quotient(join: Join, byte: np.ndarray, residual: np.ndarray | None) -> np.ndarray:
    """Return ``(first * byte + beside * (residual - r_zero)) / last`` in float32, with a rounding after each operation.

    Operands
        byte: less its zero point
    """
    y = byte.astype("f4") * np.float32(join.first)
    if residual is not None:
        y = y + (residual.astype("f4") - np.float32(join.r_zero)) * np.float32(join.beside)
    return y / np.float32(join.last)


def ratios_of(result: Result, join: Join) -> Ratios | tuple[()]:
    """Return the factors of byte and residual and an addend with which all pairs have the bytes of the join."""
    x = np.arange(join.low, join.high + 1)[:, None]
    r = np.arange(BYTES if join.beside else 1)
    want = as_bytes(result, join_quotient(join, x, r if join.beside else None))
    a, b = join.first / join.last, join.beside / join.last
    exact = x * a + (r - join.r_zero) * b
    largest = np.abs(exact).max() + abs(join.r_zero * b)
    if largest >= MOST_QUOTIENT:
        return ()
    level = exact + result.zero
    is_near = np.abs(exact - np.floor(exact) - 0.5) < NEAR * largest
    rows, columns = np.nonzero(is_near & (level > result.low - 1) & (level < result.high + 1))
    for ratios in candidates(a, b, -join.r_zero * b, largest if len(rows) <= MOST_NEAR else 0.0):
        near = by_ratios(ratios, x[rows, 0], r[columns])
        if np.array_equal(as_bytes(result, near), want[rows, columns]):
            return ratios if np.array_equal(as_bytes(result, by_ratios(ratios, x, r)), want) else ()
    return ()


def candidates(a: float, b: float, c: float, largest: float) -> Iterator[Ratios]:
    """Yield the float32 numbers nearest to the exact ones, then their neighbours.

    Parameters
        largest: the largest quotient, of which the offset moves by a fraction; 0 for the nearest numbers alone
    """
    near_a, near_b = (
        [np.float32(x), *(np.nextafter(np.float32(x), np.float32(y)) for y in (np.inf, 0))] for x in (a, b)
    )
    nudges = sorted(range(-NUDGES, NUDGES + 1), key=abs)
    if not largest:
        near_a, near_b, nudges = near_a[:1], near_b[:1], [0]
    if not b:
        near_b, nudges = near_b[:1], [0]
    for nudge, x, y in product(nudges, near_a, near_b):
        yield float(x), float(y), float(np.float32(c + nudge * NUDGE * largest))


def by_ratios(ratios: Ratios, byte: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Return ``fma(byte, a, fma(residual, b, c))`` of float32."""
    a, b, c = ratios
    return fused(byte.astype("f8") * a, fused(residual.astype("f8") * b, np.asarray(c)))


def fused(products: np.ndarray, addends: np.ndarray) -> np.ndarray:
    """Return sums of float64 rounded once to float32; the products are exact.

    A sum of float64 that is not exact gets an odd last bit, so it is not in the middle between two float32 numbers.
    Source: Boldo and Melquiond 2008, Emulation of a FMA and correctly rounded sums.
    """
    x, y = np.broadcast_arrays(products, addends.astype("f8"))
    total = x + y
    other = total - x
    error = (x - (total - other)) + (y - other)
    is_even = (total.view("i8") & 1) == 0
    toward = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where((error != 0) & is_even, toward, total).astype("f4")


def as_bytes(result: Result, quotient: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(quotient) + result.zero, result.low, result.high)
