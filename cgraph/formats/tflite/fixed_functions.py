"""Exponentials, logistic and tanh in fixed point: the bits of TFLite's LSTM and of its softmax with int16 results.

A number of *b integer bits* is an integer in units of ``2**(b - bits)``, where bits is 15 or 31. A product has the
integer bits of both factors. Functions take and return arrays of int64 that fit int16 or int32.

Source: fixedpoint.h of gemmlowp.
"""

from functools import cache

import numpy as np

from cgraph.record import Record

EXPONENTIALS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)  # exp(-2**k), k from -2
EXP_OF_EIGHTH, THIRD = 1895147668, 715827883  # exp(-1/8) and 1/3; all in units of 2**-31
START, SLOPE = 1515870810, -1010580540  # 48/17 and -32/17, in units of 2**-29
TINY = 32  # exp of a number below its negative is 0
STEPS = 3  # of Newton's method


class FixedPoint(Record):
    """Arithmetic on integers of some bits.

    Fields
        bits: of a number, besides its sign: 15 or 31
    """

    bits: int

    @property
    def one(self) -> int:
        """Return 1 without integer bits: the largest number."""
        return (1 << self.bits) - 1

    def product(self, x: np.ndarray, y: np.ndarray | int) -> np.ndarray:
        """Multiply, halves rounded up."""
        return np.minimum((x * y + (1 << (self.bits - 1))) >> self.bits, self.one)

    def scale(self, x: np.ndarray, places: int) -> np.ndarray:
        """Multiply by a power of 2: clipped, or halves rounded away from zero."""
        return np.clip(x << places, -self.one - 1, self.one) if places >= 0 else divide(x, -places)

    def constant(self, number: int) -> int:
        """Return a constant of 31 bits in units of this arithmetic."""
        return int(divide(np.array(number), 31 - self.bits))

    def exp_of_negative(self, x: np.ndarray, integer_bits: int) -> np.ndarray:
        """Return exp(x), without integer bits, of numbers <= 0: that of the part below 1/4, and a factor per bit."""
        quarter = 1 << (self.bits - integer_bits - 2)
        part = (x & (quarter - 1)) - quarter
        result, rest = self.exp_of_part(self.scale(part, integer_bits)), part - x
        for i, factor in enumerate(EXPONENTIALS[: integer_bits + 2]):
            result = np.where(rest & (quarter << i), self.product(result, self.constant(factor)), result)
        tiny = x < -(TINY << (self.bits - integer_bits))
        return np.select([x == 0, tiny], [np.array(self.one), np.array(0)], result)

    def exp_of_part(self, x: np.ndarray) -> np.ndarray:
        """Return exp(x) for -1/4 <= x < 0, by four terms around -1/8."""
        x, middle = x + (1 << (self.bits - 3)), self.constant(EXP_OF_EIGHTH)
        square = self.product(x, x)
        cube, fourth = self.product(square, x), self.scale(self.product(square, square), -2)
        terms = x + self.scale(self.product(fourth + cube, self.constant(THIRD)) + square, -1)
        return np.clip(middle + self.product(terms, middle), -self.one - 1, self.one)

    def reciprocal(self, x: np.ndarray) -> np.ndarray:
        """Return 2 / (1 + x), of 2 integer bits, for 0 <= x <= 1 without integer bits, by Newton's method."""
        half = (x + self.one + 1) >> 1
        y = self.constant(START) + self.product(half, self.constant(SLOPE))
        for _ in range(STEPS):
            y = y + self.scale(self.product(y, (1 << (self.bits - 2)) - self.product(half, y)), 2)
        return y


WORDS, LONG = FixedPoint(15), FixedPoint(31)


def divide(x: np.ndarray, places: int) -> np.ndarray:
    """Return ``x / 2**places``, halves rounded away from zero."""
    mask = (1 << places) - 1
    return (x >> places) + ((x & mask) > (mask >> 1) + (x < 0))


@cache
def logistic_table(integer_bits: int) -> np.ndarray:
    """Return the logistic function, without integer bits, of all int16 in order."""
    x = np.arange(-WORDS.one - 1, WORDS.one + 1)
    above = WORDS.scale(WORDS.reciprocal(WORDS.exp_of_negative(-np.abs(x), integer_bits)), 1)
    half = np.full(x.shape, (WORDS.one + 1) // 2)
    return np.select([x == 0, x > 0], [half, above], WORDS.one - above).astype("int16")


@cache
def tanh_table(integer_bits: int) -> np.ndarray:
    """Return tanh, without integer bits, of all int16 in order."""
    x = np.arange(-WORDS.one - 1, WORDS.one + 1)
    exponential = WORDS.exp_of_negative(-np.abs(x), integer_bits + 1)
    magnitude = WORDS.scale(WORDS.reciprocal(exponential) - (1 << (WORDS.bits - 2)), 2)
    return (np.sign(x) * magnitude).astype("int16")
