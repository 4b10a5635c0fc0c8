"""Random operands for functions of each element; `CALLS` has those of `numpy_draws` as well."""

from typing import Any

import numpy as np

from tests.support.draws import Draws
from tests.support.numpy_draws import CALLS, drawn

__all__ = ["CALLS"]


@drawn("bitwise_count")
def bits(d: Draws) -> Any:
    dtype = d.of("bool", "int8", "uint16", "int32", "int64", "uint64")
    return [d.numbers(dtype, *d.shape(1, 3), low=0, high=1) if dtype == "bool" else wide(d, dtype)], []


def wide(d: Draws, dtype: str) -> np.ndarray:
    """Numbers of all sizes."""
    ends = np.iinfo(dtype)
    return d.numbers(dtype, *d.shape(1, 3), low=max(ends.min, -(2**62)), high=min(ends.max, 2**62))


@drawn(
    "gcd", "left_shift", "right_shift", "floor_divide", "remainder", "fmod", "maximum", "minimum", "not_equal", "less"
)
def of_two(d: Draws, name: str) -> Any:
    dtype = d.of("int8", "uint8", "int32", "int64")
    shape = d.shape(1, 3)
    x = d.numbers(dtype, *shape, low=-100, high=100)
    return [x, d.numbers(dtype, *(d.of(1, n) for n in shape), low=1, high=6)], []


@drawn("negative", "abs", "sign", "square", "isnan", "isfinite", "logical_not", "floor", "ceil", "trunc")
def of_one(d: Draws, name: str) -> Any:
    return [d.numbers(d.of("int8", "int32", "float32"), *d.shape(0, 3), low=-9, high=9)], []


@drawn("invert", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor")
def of_truth(d: Draws, name: str) -> Any:
    shape, kind = d.shape(0, 3), d.of("bool", "int8", "uint32")
    xs = [(d.rng.random(shape) < 0.5) if kind == "bool" else d.numbers(kind, *shape) for _ in range(2)]
    return xs[: 1 if name == "invert" else 2], []
