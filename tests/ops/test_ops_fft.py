"""Transforms of pairs are NumPy's of complex numbers: lengths, axes counted without that of pairs, and refusals."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ops import fft
from tests.support.computed import computed
from tests.support.tolerance import assert_close

X = np.random.default_rng(0).standard_normal((3, 4, 5))
Z = X + 1j * X[::-1]


def pairs(z):
    return np.stack([z.real, z.imag], -1)


@pytest.mark.parametrize("n", [None, 1, 3, 7])
@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_axes_are_counted_without_the_axis_of_pairs(n, axis):
    z = cg.Var(pairs(Z))
    assert_close(computed(fft.fft(z, n, axis)), pairs(np.fft.fft(Z, n, axis)))
    assert_close(computed(fft.ifft(z, n, axis)), pairs(np.fft.ifft(Z, n, axis)))
    assert_close(computed(fft.rfft(cg.Var(X), n, axis)), pairs(np.fft.rfft(X, n, axis)))
    assert_close(computed(fft.irfft(z, n, axis)), np.fft.irfft(Z, n, axis))


def test_the_inverse_of_an_odd_length_needs_its_length():
    half = fft.rfft(cg.Var(X))  # five samples, three pairs
    assert half.shape == (3, 4, 3, 2)
    assert_close(computed(fft.irfft(half, 5)), X)
    assert fft.irfft(half).shape == (3, 4, 4)


def test_an_impulse_and_a_constant_are_each_others_transforms():
    impulse = np.zeros((4, 2))
    impulse[0, 0] = 1
    assert computed(fft.fft(cg.Var(impulse))).tolist() == [[1, 0]] * 4
    assert computed(fft.ifft(cg.Var(np.tile([4.0, 0.0], (4, 1))))).tolist() == (4 * impulse).tolist()


def test_integers_become_floats_and_float32_stays():
    assert_close(computed(fft.rfft(cg.Var(np.arange(4)))), pairs(np.fft.rfft(np.arange(4))))
    assert fft.fft(cg.Var((4, 2), "float32")).dtype == fft.rfft(cg.Var((4,), "float32")).dtype == "float32"


@pytest.mark.parametrize("call", [fft.fft, fft.ifft, fft.irfft])
def test_what_is_no_pair_is_refused(call):
    for shape in ((4, 3), (2,)):
        with pytest.raises(ShapeError, match=r"pass pairs \[\.\.\., n, 2\]"):
            call(cg.Var(shape))
    with pytest.raises(DTypeError, match="is complex; pass pairs"):
        call(cg.Var((4, 2), "complex64"))
    with pytest.raises(DTypeError, match="is complex"):
        fft.rfft(cg.Var((4,), "complex64"))
