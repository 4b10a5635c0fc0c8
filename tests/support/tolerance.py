"""How close is equal: every tolerance of the tests, by dtype and kind of comparison, each with its reason.

A test names a kind and writes no number; `test_tolerance.py` reads all tests for numbers. An error is compared with a
share of the expected element and, where terms cancel, with a share of these *terms*, which the caller gives: by element
or one for all. Where it gives none, they are the largest expected element, and some ulps of 1 are allowed.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest


class Tolerance(NamedTuple):
    """How far a number may be from the expected one.

    Fields
        why: where the error comes from
        rtol: a share of the expected number
        atol: an absolute error, of numbers whose size is known, such as probabilities
        of_terms: a share of the terms that cancel
        is_in_ulps: `rtol` and `of_terms` count units in the last place of the coarser dtype
    """

    why: str
    rtol: float = 0.0
    atol: float = 0.0
    of_terms: float = 0.0
    is_in_ulps: bool = False


T = Tolerance
NEAR = {
    # -- an op, a kernel or a graph beside its meaning in NumPy, by dtype ----------------------------------------------
    "float32": T("some hundred roundings in another order", 2e-5, of_terms=2e-5),
    "float64": T("some thousand roundings in another order", 1e-11, of_terms=1e-11),
    "float32 layers": T("a layer's sums, with a division or an exponential behind them", 1e-4, of_terms=1e-4),
    "central differences": T("Richardson's extrapolation from a step of 1e-5 in float64", 1e-6, of_terms=1e-6),
    "central differences of a sum": T("a step of 1e-5 without extrapolation", 2e-6, of_terms=2e-7),
    # -- float64 ------------------------------------------------------------------------------------------------------
    "float64 products": T("a product and a sum of few terms of one sign", 1e-14),
    "float64 formulas": T("some operations", 1e-12),
    "float64 formulas near zero": T("some operations with terms of about 1 that cancel", 1e-12, 1e-12),
    "float64 special points": T("values at corners; zero within an ulp of 1", 1e-12, 1e-15),
    "float64 coordinates": T("pixels of some hundred, between which is interpolated", 1e-12, 1e-9),
    "float64 on a simulated GPU": T("each side is within some ulps", 1e-13),
    "float64 conditioned": T("times the condition of a matrix, or the number of terms, some thousand", 1e-9),
    "float64 through float32": T("one rounding to float32", 1e-7),
    "float64 through float32 near zero": T("one rounding to float32; float64 terms that cancel", 1e-7, 1e-12),
    # -- float32 ------------------------------------------------------------------------------------------------------
    "float32 formulas": T("some operations of 6e-8 each", 1e-6),
    "float32 formulas near zero": T("the same with terms of about 1 that cancel", 1e-6, 1e-6),
    "float32 shares": T("shares of 1 in float32 or 16 bits", 1e-7, 1e-6),
    "float32 crops": T("interpolation between pixels of about 1", 1e-7, 1e-5),
    "float32 coordinates": T("pixels below 1000 of an image; sums of some hundred waves", 1e-7, 1e-4),
    "float32 sums": T("some hundred roundings in another order", 1e-5),
    "float32 sums near zero": T("the same with terms of about 1 that cancel", 1e-5, 1e-6),
    "float32 normalised": T("shares of 1, each of an exponential", 1e-5, 1e-7),
    "float32 products": T("some hundred products of standard normal numbers, which cancel", 1e-5, 1e-5),
    "float32 products and a residual": T("the same and a residual of that size", 1e-5, 2e-5),
    "float32 products by their largest": T("the same of numbers of any size", 1e-5, of_terms=1e-5),
    "float32 products in blocks": T("products with numbers of 2 to 8 bits and their scales", 1e-5, 1e-4),
    "float32 long sums": T("some thousand roundings in another order", 1e-4),
    "float32 long products": T("products of large numbers, or of long rows", 1e-4, 1e-3),
    "float32 long products by their largest": T("the same of numbers of any size", 1e-4, of_terms=1e-5),
    "float32 sums of ten thousand products": T("12,544 products of standard normal numbers", 1e-4, 5e-3),
    "float32 sums of many thousand": T("70,000 standard normal numbers, in parts", 2e-6, 2e-4),
    "float32 sums of many thousand on a GPU": T("the same, in parts of a team", 2.0**-22, 1e-4),
    "float32 small networks": T("some layers of numbers of about 1", 1e-4, 1e-5),
    "float32 networks": T("tens of layers of numbers of about 1", 1e-4, 1e-4),
    "float32 networks by their largest": T("tens of layers of numbers of any size", 1e-4, of_terms=1e-4),
    "float32 deep networks": T("a hundred layers, by other kernels", 1e-3, 1e-4),
    "float32 light networks": T("the onnx package's networks, whose outputs come from other kernels", 1e-3, 1e-5),
    "float32 weights of shards": T("weights after some steps whose gradients were added in another order", 1e-4, 1e-6),
    "float32 trainings beside float64": T(
        "steps of a training in float32, divided by roots of small squares", of_terms=2e-3
    ),
    "float32 trainings": T("some steps of a training, which amplify rounding", 1e-3),
    "float32 weights after training": T("weights of about 1 after an epoch", 2e-3, 2e-4),
    "float32 TFLite": T("TFLite's kernels, by another order of sums", 2e-5, 2e-6),
    "float32 weights of others": T("a network of torch's or TFLite's, some layers", 2e-5, 2e-5),
    "float32 scores of a network": T("80 shares of 1 behind a hundred layers", 1e-5, 2e-5),
    "float32 boxes of a network": T("pixels below 640 behind a hundred layers", 1e-5, 2e-3),
    # -- fewer bits ---------------------------------------------------------------------------------------------------
    "float16 networks": T("one layer in float16 on the other side", 2.0**-9, 2.0**-11),
    "bfloat16 weights": T("weights of both sides, behind other factors", 1e-7, of_terms=2.0**-7),
    "half precision by its largest": T("another order of sums flips roundings to 8 or 11 bits", 1e-7, of_terms=1e-3),
    "quantised networks by their largest": T("the same integers, with scales in float32", 1e-7, of_terms=1e-4),
    "fixed point of 15 bits": T("a dozen roundings of 2**-15 each, some of which are scaled by 2 or 4", atol=4e-4),
    "int8 shares": T("shares of 1 behind two layers of 8 bits", 1e-7, 0.02),
    "numbers of a unit": T("rounded to the nearest multiple of the unit, the terms", 1e-7, of_terms=0.501),
    # -- kernels, by terms and units in the last place ----------------------------------------------------------------
    "convolution": T("a product and a sum of each tap, the terms", 33, of_terms=13, is_in_ulps=True),
    "depthwise convolution": T("some tens of taps of about 1", 80, of_terms=80, is_in_ulps=True),
    "gradient of filters": T("sums over pixels, the root of whose number the terms are", 50, 0, 50, True),
    "normalisation": T("a mean, a variance and a root", 16, of_terms=16, is_in_ulps=True),
    "softmax": T("an exponential of the largest operand, the terms", 8, of_terms=8, is_in_ulps=True),
    "attention": T("a softmax and a product with values of about 1", of_terms=80, is_in_ulps=True),
    "normal numbers": T("a logarithm, a root and a cosine", 8, is_in_ulps=True),
    "gamma": T("a polynomial and an exponential", 4, is_in_ulps=True),
    "complex parts": T("formulas whose parts are within some ulps of the whole", 40, is_in_ulps=True),
    "products of lower halves": T("squares whose upper halves are exact and cancel", 4, of_terms=4, is_in_ulps=True),
    "complex products": T("two products and a sum for each part", 45, is_in_ulps=True),
    "complex sums": T("sums of 67 products", 800, is_in_ulps=True),
    "channel-blocked layers": T("some layers, with other orders of sums", of_terms=250, is_in_ulps=True),
    "normal products": T("inner products of some hundred standard normal numbers", of_terms=670, is_in_ulps=True),
    # -- other programs, publications, drawings -----------------------------------------------------------------------
    "estimators of ONNX Runtime": T("its sums of trees and vectors are in float32", 1e-4, of_terms=3e-5),
    "Winitzki's quantiles": T("the error of an approximation: at most 0.0023 here", 0, 0.003),
    "percentiles of a histogram": T("bins of a thousandth of the range", 0, 0.002),
    "biases of int32": T("a unit, which the terms are, and float32 of large ones", 1e-5, of_terms=1),
    "microseconds of a trace": T("a thousandth of a microsecond is what is written", 1e-7, 1e-3),
    "pixels of a drawing": T("coordinates are written with some decimals", 0, 0.01),
    "published plan sizes": T("they are rounded to three decimals of a MiB", 2e-4),
    "published multiply-adds": T("papers round, and count biases or not", 0.01),
    "published accuracy": T("30 of 10,000 pictures are decoded otherwise", 0, 0.003),
    "published figure": T("read from a figure of a paper", 0, 1.5),
    "solver's optimum": T("a linear solver's tolerance of integers", 0, 0.1),
    "polygon's pixels": T("which pixels on an edge count", 0.1),
    "drawn moments": T("four standard deviations, the terms", 1e-7, of_terms=4),
    "drawn deviations": T("three standard deviations of that of 60,000 numbers", 0.01),
    "drawn extremes": T("the largest of 60,000 uniform numbers", 1e-3),
    "drawn means": T("four standard deviations of a mean of 60,000 numbers", 0.004),
    "bins of a histogram": T("the bins beside the right one; the terms are a bin's width", 1e-7, of_terms=2),
}


ULPS_OF_ONE = 32  # what is left where operands of about 1 cancel, of which a caller says nothing


def bounds(name: str, got: Any, want: Any, terms: Any = None) -> tuple[float, Any]:
    """The rtol and atol of a comparison."""
    tolerance, eps = NEAR[name], eps_of(got, want)
    unit = eps if tolerance.is_in_ulps else 1.0
    if not tolerance.of_terms:
        atol = 0.0
    elif terms is None:
        atol = max(tolerance.of_terms * unit * largest(want), ULPS_OF_ONE * eps)
    else:
        atol = tolerance.of_terms * unit * np.asarray(terms, float)
    return tolerance.rtol * unit, tolerance.atol + atol


def eps_of(*arrays: Any) -> float:
    """The unit in the last place of 1 of the coarsest dtype."""
    dtypes = [x.dtype for x in map(np.asarray, arrays)]
    return max((float(np.finfo(x).eps) for x in dtypes if x.kind in "fc"), default=0.0)


def largest(*arrays: Any) -> float:
    """The largest finite magnitude of all elements."""
    with np.errstate(over="ignore"):  # of a complex number perhaps an infinity, where its parts are finite
        sizes = [np.abs(x) for x in map(np.asarray, arrays) if x.dtype.kind in "biufc"]
    return max((float(x[np.isfinite(x)].max(initial=0)) for x in sizes), default=0.0)


def assert_near(got: Any, want: Any, name: str, terms: Any = None) -> None:
    """Every element is as near as the tolerance of this name allows.

    Parameters
        terms: sizes of the terms from which elements were computed, one for all or one for each
    """
    assert_within(got, want, *bounds(name, got, want, terms))


def assert_within(got: Any, want: Any, rtol: float, atol: Any) -> None:
    """The same for bounds that a suite of others states."""
    if np.ndim(atol) == 0:
        np.testing.assert_allclose(got, want, rtol=rtol, atol=float(atol))
        return
    assert np.shape(got) == np.shape(want), (np.shape(got), np.shape(want))
    with np.errstate(invalid="ignore", over="ignore"):
        is_far = ~np.isclose(got, want, rtol, atol, equal_nan=True)
    assert not is_far.any(), f"{np.asarray(got)[is_far][:5]} for {np.asarray(want)[is_far][:5]}, {is_far.sum()} in all"


def is_near(got: Any, want: Any, name: str, terms: Any = None) -> Any:
    """Which elements are as near as the tolerance of this name allows."""
    return np.isclose(got, want, *bounds(name, got, want, terms))


def all_near(got: Any, want: Any, name: str = "float64 formulas near zero") -> bool:
    """Return True if all elements are as near as the tolerance of this name allows."""
    return np.shape(got) == np.shape(want) and bool(np.all(is_near(got, want, name)))


def near(want: Any, name: str, terms: Any = None) -> Any:
    """What equals a number that is as near as the tolerance of this name allows."""
    rtol, atol = bounds(name, want, want, terms)
    return pytest.approx(want, rel=rtol, abs=float(atol))


BY_DTYPE = {"float32": "float32", "float64": "float64", "complex64": "float32", "complex128": "float64"}


def assert_close(got: np.ndarray, want: np.ndarray, scale: float = 1.0, terms: Any = None) -> None:
    """Same shape and dtype; floats and complex numbers within `scale` times the tolerance of their dtype, everything
    else exact. `terms` as for `assert_near`."""
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, got.dtype, want.shape, want.dtype)
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want)
        return
    rtol, atol = bounds(BY_DTYPE[str(want.dtype)], got, want, terms)
    assert_within(got, want, rtol * scale, atol * scale)
