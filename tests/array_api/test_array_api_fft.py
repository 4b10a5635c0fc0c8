"""The standard's ``fft``: each function takes its own lengths, axes and norm; frequencies have a step and a dtype."""

import numpy as np
import pytest

from cgraph import array_api as xp
from cgraph.array_api.calls import COUNTS
from tests.support.tolerance import assert_close

REAL = ("rfft", "ihfft", "rfftn")
X = np.random.default_rng(0).standard_normal((3, 4, 5))
Z = X + 1j * X[::-1]


def operand(name):
    return X if name in REAL else Z


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_of_one_axis_are_lazy_and_numpys(name):
    x, before = operand(name), COUNTS.copy()
    for settings in ({}, {"n": 3, "axis": 1}, {"n": 6, "axis": 0, "norm": "ortho"}, {"norm": "forward"}):
        got = getattr(xp.fft, name)(xp.asarray(x), **settings)
        assert_close(got.value, getattr(np.fft, name)(x, **settings))
    assert (COUNTS - before) == {(name, "lazy"): 4}


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_of_several_axes_have_a_length_for_each(name):
    x = operand(name)
    for settings in (
        {},
        {"axes": (2, 0)},
        {"s": (3, 6), "axes": (0, 2)},
        {"s": (2, 7), "axes": (1, 0), "norm": "ortho"},
    ):
        got = getattr(xp.fft, name)(xp.asarray(x), **settings)
        assert_close(got.value, getattr(np.fft, name)(x, **settings))


def test_shifts_of_odd_lengths_are_undone_by_the_other_one():
    x = np.arange(5)
    there = xp.fft.fftshift(xp.asarray(x))
    assert there.value.tolist() == [3, 4, 0, 1, 2]
    assert xp.fft.ifftshift(xp.asarray(x)).value.tolist() == [2, 3, 4, 0, 1]
    assert xp.fft.ifftshift(there).value.tolist() == x.tolist()
    assert_close(xp.fft.fftshift(xp.asarray(X), axes=1).value, np.fft.fftshift(X, 1))


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies_have_a_step_a_dtype_and_a_device(n):
    for name in ("fftfreq", "rfftfreq"):
        call, numpys = getattr(xp.fft, name), getattr(np.fft, name)
        assert_close(call(n).value, numpys(n))
        assert_close(call(n, d=0.25).value, numpys(n, 0.25))
        assert_close(call(n, d=2, dtype=xp.float32).value, numpys(n, 2).astype("float32"))
        with pytest.raises(ValueError, match="no device"):
            call(n, device="gpu")


def test_lengths_are_given_by_name_only():
    with pytest.raises(TypeError):
        xp.fft.fft(xp.asarray(Z), 3)
