"""Transforms are NumPy's: cut and padded lengths, every axis and norm, lengths of one and odd ones."""

from itertools import product

import numpy as np
import pytest

from tests.numpy.evaluated import FLOATS, compare, drawn

NORMS = (None, "backward", "ortho", "forward")


@pytest.mark.parametrize("function", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", NORMS)
def test_one_axis_cut_or_padded(function, norm):
    is_real = function in ("rfft", "ihfft")
    x = drawn((4, 5, 3), "float64" if is_real else "complex128")
    for n, axis in product((None, 1, 2, 3, 4, 7), (-1, 0, 1, -3)):
        compare(f"np.fft.{function}(x, {n}, {axis}, {norm!r})", x=x)


@pytest.mark.parametrize("function", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "irfftn"])
def test_dtypes_and_short_rows(function):
    for dtype in (*FLOATS, "int32", "bool", "complex128"):
        for length in (1, 2, 3, 6):
            compare(f"np.fft.{function}(x)", dtype, x=drawn((length,), dtype))


@pytest.mark.parametrize("function", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize("norm", NORMS)
def test_several_axes_with_lengths_of_their_own(function, norm):
    x = drawn((4, 5, 3), "float64" if function == "rfftn" else "complex128")
    for axes in (None, (0,), (0, 1), (1, 0), (-1, 0), (2, 1, 0)):
        compare(f"np.fft.{function}(x, axes={axes}, norm={norm!r})", x=x)
    for s, axes in (((3, 6), (0, 2)), ((3, 6), (2, 0)), ((6, -1), (-1, -2)), ((2, 7, 5), (0, 1, 2)), ((4,), (1,))):
        compare(f"np.fft.{function}(x, {s}, {axes}, {norm!r})", x=x)
    compare(f"np.fft.{function}(x, (3, 6), norm={norm!r})", x=x)


@pytest.mark.parametrize("function", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_two_axes_are_the_last_by_default(function):
    x = drawn((4, 5, 3), "float64" if function == "rfft2" else "complex128")
    compare(f"np.fft.{function}(x)", x=x)
    compare(f"np.fft.{function}(x, (3, 8), (1, 0), 'ortho')", x=x)
    compare(f"np.fft.{function}(x, axes=(-3, -1), norm='forward')", x=x)


@pytest.mark.parametrize("call", [
    "np.fft.fft(x, norm='other')", "np.fft.hfft(x, norm='other')", "np.fft.fft(x, 0)", "np.fft.fft(x, axis=3)",
    "np.fft.fftn(x, s=(2, 2), axes=(0,))", "np.fft.irfft(x, 0)", "np.fft.rfft(x, -1)",
])  # fmt: skip
def test_what_numpy_refuses_is_refused(call):
    compare(call, x=drawn((3, 4)))


@pytest.mark.parametrize("function", ["fftshift", "ifftshift"])
def test_shifts_of_odd_and_even_lengths(function):
    x = np.arange(60).reshape(3, 4, 5)
    for axes in (None, 0, 1, -1, (0, 2), (2, 0), (-1, 1), ()):
        compare(f"np.fft.{function}(x, axes={axes})", x=x)


def test_axes_that_are_named_once_or_twice_or_not_at_all():
    x = drawn((3, 4, 5))
    for call in (
        "np.fft.fftn(x)", "np.fft.fftn(x, None, None)", "np.fft.fftn(x, None, [2, 0])",
        "np.fft.fftn(x, [3, 7], [1, -1])",
        "np.fft.fftn(x, None, [1, 1])", "np.fft.fftn(x, None, [1, -2])", "np.fft.ifftn(x, [6, 2], [0, 0])",
        "np.fft.rfftn(x, None, [2, 2])", "np.fft.fft2(x, None, [0, 0])", "np.fft.fftn(x, [4, 5, 3])",
        "np.fft.fftn(x, [4], [1])", "np.fft.fftn(x, [5], [1])", "np.fft.fftn(x, [3], [1])", "np.fft.fftn(x, [-1], [1])",
    ):  # fmt: skip
        compare(call, x=x)
