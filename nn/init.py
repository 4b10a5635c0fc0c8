"""Initialisers: functions of a shape and a NumPy generator that return the first value of a weight.

Fans: those of a matrix ``[inputs, outputs]`` are its axes, of filters ``[k, c, ...window]`` c and k times the window.
"""

from collections.abc import Callable
from math import prod, sqrt
from typing import Any

import numpy as np  # its `random` is imported on first use, so annotations quote it

from cgraph import InputError, Record


class Initialiser(Record):
    """A function that returns the first value of a weight."""

    def __call__(self, shape: tuple[int, ...], rng: "np.random.Generator") -> np.ndarray:
        """Return a float32 array of `shape`."""
        raise NotImplementedError


class Constant(Initialiser):
    """One number everywhere."""

    value: float = 0.0

    def __call__(self, shape, rng):
        return np.full(shape, self.value, np.float32) if self.value else np.zeros(shape, np.float32)


class Uniform(Initialiser):
    """Uniform between `low` and `high`."""

    low: float = -0.05
    high: float = 0.05

    def __call__(self, shape, rng):
        return uniform(shape, rng, self.low, self.high)


class Gaussian(Initialiser):
    """Normal with this mean and deviation."""

    mean: float = 0.0
    deviation: float = 0.05

    def __call__(self, shape, rng):
        values = normal(shape, rng, self.deviation)
        return values + np.float32(self.mean) if self.mean else values


class TruncatedNormal(Initialiser):
    """Normal with this deviation; values beyond two deviations are drawn again."""

    deviation: float = 0.05

    def __call__(self, shape, rng):
        values = rng.standard_normal(shape, np.float32)
        while (outside := np.abs(values) > 2).any():
            values[outside] = rng.standard_normal(int(outside.sum()), np.float32)
        return values * np.float32(self.deviation)


class Scaled(Initialiser):
    """Mean 0 and a variance of ``gain / fan``, so that the size of values is the same from layer to layer.

    Fields
        gain: 1 for linear and tanh, 2 for relu
        fan: ``in``, ``out`` or ``mean`` of the two
        normal: normal, else uniform of the same variance
    Source
        LeCun et al. 1998, "Efficient BackProp"; Glorot and Bengio 2010; He et al. 2015, arXiv:1502.01852
    """

    gain: float
    fan: str
    normal: bool

    def __call__(self, shape, rng):
        fan_in, fan_out = fans(shape)
        if self.fan not in ("in", "out", "mean") or not self.gain >= 0:
            raise InputError(f"fan is {self.fan!r} and gain {self.gain}. Use 'in', 'out' or 'mean', and at least 0.")
        fan = {"in": fan_in, "out": fan_out, "mean": (fan_in + fan_out) / 2}[self.fan]
        deviation = sqrt(self.gain / max(fan, 1))
        if self.normal:
            return normal(shape, rng, deviation)
        return uniform(shape, rng, -sqrt(3) * deviation, sqrt(3) * deviation)


class Orthogonal(Initialiser):
    """Rows or columns orthonormal, times `gain`. Source: Saxe et al. 2013, arXiv:1312.6120."""

    gain: float = 1.0

    def __call__(self, shape, rng):
        rows, columns = shape[0], prod(shape[1:])
        tall = rng.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(tall)
        q = q * np.sign(np.diag(r))  # makes the signs independent of LAPACK's conventions
        return (self.gain * (q if rows >= columns else q.T)).reshape(shape).astype(np.float32)


class Identity(Initialiser):
    """Ones on the diagonal of a matrix, times `gain`."""

    gain: float = 1.0

    def __call__(self, shape, rng):
        return np.eye(*shape, dtype=np.float32) * np.float32(self.gain)


class Custom(Initialiser):
    """The result of a function of shape and generator."""

    function: Callable[[tuple[int, ...], "np.random.Generator"], Any]

    def __call__(self, shape, rng):
        return np.asarray(self.function(shape, rng), np.float32)


ZEROS, ONES = Constant(0.0), Constant(1.0)
LECUN_NORMAL, LECUN_UNIFORM = Scaled(1.0, "in", True), Scaled(1.0, "in", False)
GLOROT_NORMAL, GLOROT_UNIFORM = Scaled(1.0, "mean", True), Scaled(1.0, "mean", False)
HE_NORMAL, HE_UNIFORM = Scaled(2.0, "in", True), Scaled(2.0, "in", False)
STANDARD = Scaled(1 / 3, "in", False)
"""Uniform within ``1 / sqrt(inputs)``, the common initialiser of fully connected layers."""
TANH = GLOROT_UNIFORM


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the number of values that one result reads, and of results that read one value."""
    if len(shape) < 2:
        return (prod(shape), prod(shape))
    if len(shape) == 2:
        return shape
    window = prod(shape[2:])
    return shape[1] * window, shape[0] * window


def normal(shape: tuple[int, ...], rng: "np.random.Generator", deviation: float) -> np.ndarray:
    """Return normal float32 values."""
    values = rng.standard_normal(shape, np.float32)
    values *= np.float32(deviation)
    return values


def uniform(shape: tuple[int, ...], rng: "np.random.Generator", low: float, high: float) -> np.ndarray:
    """Return uniform float32 values."""
    values = rng.random(shape, np.float32)
    values *= np.float32(high - low)
    values += np.float32(low)
    return values
