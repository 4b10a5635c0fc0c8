"""The standard's functions that NumPy has with the same name and meaning: one signature per line."""

from collections.abc import Callable
from typing import Any

import numpy as np

import cgraph.numpy as lazily
from cgraph.array_api.array import Array
from cgraph.array_api.calls import function, is_complex

ONE = """
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log
log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc
"""
TWO = """
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide
greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply
nextafter not_equal pow remainder subtract
"""
OTHERS = """
all any argmax argmin count_nonzero max mean min: x, /, *, axis=None, keepdims=False
prod sum: x, /, *, axis=None, dtype=None, keepdims=False
std var: x, /, *, axis=None, correction=0.0, keepdims=False
cumulative_prod cumulative_sum: x, /, *, axis=None, dtype=None, include_initial=False
diff: x, /, *, axis=-1, n=1, prepend=None, append=None
tril triu: x, /, *, k=0
broadcast_to: x, /, shape
concat stack: arrays, /, *, axis=0
expand_dims: x, /, axis=0
flip: x, /, *, axis=None
moveaxis: x, source, destination, /
permute_dims: x, /, axes
repeat: x, repeats, /, *, axis=None
reshape: x, /, shape, *, copy=None
roll: x, /, shift, *, axis=None
squeeze: x, /, axis
tile: x, repetitions, /
unstack: x, /, *, axis=0
take: x, indices, /, *, axis=None
take_along_axis: x, indices, /, *, axis=-1
searchsorted: x1, x2, /, *, side='left', sorter=None
isin: x1, x2, /, *, invert=False
unique_all unique_counts unique_inverse unique_values: x, /
matmul: x1, x2, /
matrix_transpose: x, /
tensordot: x1, x2, /, *, axes=2
vecdot: x1, x2, /, *, axis=-1
"""


def floor_divide(x1: Any, x2: Any) -> Any:
    """Divide as NumPy does, except that infinite operands give their quotient: an infinity, a signed zero or NaN."""
    quotient = lazily.floor_divide(x1, x2)
    if quotient.dtype.kind != "f":
        return quotient
    return lazily.where(lazily.isinf(x1) | lazily.isinf(x2), lazily.divide(x1, x2), quotient)


def tanh(x: Any) -> Any:
    """Return NumPy's result, except 1 + 0j at positive infinity above the real axis, whatever the angle."""
    values = lazily.tanh(x)
    if values.dtype.kind != "c":
        return values
    angle = lazily.imag(x)
    above = lazily.equal(lazily.real(x), np.inf) & lazily.isfinite(angle) & lazily.greater(angle, 0)
    return lazily.where(above, np.ones((), values.dtype), values)


HERE: dict[str, Callable] = {"floor_divide": floor_divide, "tanh": tanh}
"""Functions that differ between the standard and NumPy, computed lazily."""
ORDERED = "greater greater_equal less less_equal maximum minimum".split()
"""Functions that the standard does not define for complex numbers."""


def numbers(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Return a Python number that is combined with an Array as an Array of rank 0: the structure has no numbers."""
    return beside(x1, x2), beside(x2, x1)


def ordered(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Return `numbers` of operands. TypeError if one is complex."""
    if is_complex((x1, x2)):
        raise TypeError("complex numbers have no order; compare their magnitudes or parts")
    return numbers(x1, x2)


def beside(x: Any, other: Any) -> Any:
    if isinstance(x, bool | int | float | complex) and isinstance(other, Array):
        return Array(None, np.asarray(x, np.result_type(other.dtype, x)))
    return x


def one_of_each(text: str) -> dict[str, str]:
    """Return names and the signature of each: ``all any: x, /``."""
    rows = (line.partition(": ") for line in text.strip().splitlines())
    return {name: signature for names, _, signature in rows for name in names.split()}


def functions_of_lists() -> dict[str, Callable]:
    """Return every function of these lists, by name."""
    rows = dict.fromkeys(ONE.split(), "x, /") | dict.fromkeys(TWO.split(), "x1, x2, /") | one_of_each(OTHERS)
    return {
        name: function(
            name,
            signature,
            HERE.get(name) or getattr(lazily, name, None),
            getattr(np, name),
            ordered if name in ORDERED else numbers if name in TWO.split() else None,
        )
        for name, signature in rows.items()
    }


FUNCTIONS = functions_of_lists()
