"""Fourier transforms: every norm, length and axis as NumPy's, what is refused, and gradients in both directions."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.fourier import (
    REVERSED,
    Fourier,
    InverseRealFourier,
    RealFourier,
    fit_length,
    from_half_spectrum,
    half_spectrum,
    norm_of,
    transform,
)
from tests.autodiff.differences import check_first, check_second
from tests.support.computed import computed
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(3, 4, 5))
COMPLEX = REAL + 1j * RNG.normal(size=REAL.shape)
NORMS = ["backward", "ortho", "forward", None]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("axes, lengths", [((-1,), (None,)), ((0, 2), (None, 3)), ((1, 0), (6, 2)), ((), ())])
def test_transforms_over_axes_of_other_lengths(axes, lengths, norm):
    shape = tuple(COMPLEX.shape[a] if n is None else n for a, n in zip(axes, lengths))
    for inverse, function in ((False, np.fft.fftn), (True, np.fft.ifftn)):
        for x in (COMPLEX, REAL):
            got = computed(transform(cg.Var(x), list(lengths), list(axes), inverse, norm))
            want = function(x, shape, axes, norm) if axes else x.astype(complex)
            assert_near(got, want, "float64 formulas near zero")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("n", [None, 1, 2, 3, 6, 7])
def test_halves_of_spectra_of_even_and_odd_lengths(n, axis, norm):
    got = computed(half_spectrum(cg.Var(REAL), n, axis, norm))
    assert_near(got, np.fft.rfft(REAL, n, axis, norm), "float64 formulas near zero")
    got = computed(from_half_spectrum(cg.Var(COMPLEX), n, axis, norm))
    assert_near(got, np.fft.irfft(COMPLEX, n, axis, norm), "float64 formulas near zero")


def test_precision_is_that_of_the_operand():
    assert transform(cg.Var((4,), "float32"), [None], [0], False, None).dtype == "complex64"
    assert transform(cg.Var((4,), "int8"), [None], [0], False, None).dtype == "complex128"
    assert half_spectrum(cg.Var((4,), "float32"), None, 0, None).dtype == "complex64"
    assert half_spectrum(cg.Var((4,), "int32"), None, 0, None).dtype == "complex128"
    assert from_half_spectrum(cg.Var((4,), "complex64"), None, 0, None).spec == cg.Var((6,), "float32").spec


def test_an_axis_is_cut_or_filled_with_zeros():
    x = cg.Var(np.arange(6.0).reshape(2, 3))
    assert fit_length(x, 1, 3) is x is fit_length(x, 1, None)
    assert computed(fit_length(x, 1, 2)).tolist() == [[0, 1], [3, 4]]
    assert computed(fit_length(x, 0, 3)).tolist() == [[0, 1, 2], [3, 4, 5], [0, 0, 0]]
    with pytest.raises(ShapeError, match=r"n=0 along axis 1 of .* float64\[2,3\]; pass n >= 1"):
        fit_length(x, 1, 0)


def test_what_does_not_fit_is_refused():
    z = cg.Var((3,), "complex64", "z")
    assert [norm_of(n) for n in NORMS] == ["backward", "ortho", "forward", "backward"]
    assert REVERSED == {"backward": "forward", "ortho": "ortho", "forward": "backward"}
    with pytest.raises(ShapeError, match="norm='both' is unknown; use 'backward', 'ortho', 'forward'"):
        norm_of("both")
    with pytest.raises(DTypeError, match=r"z complex64\[3\] is complex; use np.fft.fft, or take its real part"):
        half_spectrum(z, None, 0, None)
    with pytest.raises(DTypeError, match="float32 is not complex; convert with astype first"):
        apply(Fourier((0,), False, "backward"), cg.Var((3,)))
    with pytest.raises(DTypeError, match="complex64 is not a real float"):
        apply(RealFourier(0, "backward"), z)
    with pytest.raises(ShapeError, match=r"an axis among \[0, 1\] of \[2, 0\] is empty. Pass at least one element"):
        transform(cg.Var((2, 0)), [None, None], [0, 1], False, None)
    with pytest.raises(ShapeError, match="n=0 along axis 0"):
        from_half_spectrum(cg.Var((1,), "complex64"), None, 0, None)
    with pytest.raises(ShapeError, match="6 real numbers need 4 complex ones, but there are 3"):
        apply(InverseRealFourier(0, 6, "backward"), z)


@pytest.mark.parametrize("norm", NORMS[:3])
@pytest.mark.parametrize("n", [4, 5])
def test_gradients_agree_with_differences(n, norm):
    def parts(y):
        return cg.concat([cg.real(y), cg.imag(y)])

    x = [RNG.normal(size=(n, 2))]
    check_first(lambda x: parts(half_spectrum(x, None, 0, norm)), x)
    check_first(lambda x: parts(transform(x, [None], [0], True, norm)), x)
    check_first(lambda x, y: from_half_spectrum(cg.complex(x, y), n, 0, norm), [RNG.normal(size=(n // 2 + 1, 2))] * 2)
    check_second(lambda x: cg.square(cg.abs(half_spectrum(x, None, 0, norm))), x)


def test_each_field_makes_another_node():
    z = cg.Var((4, 4), "complex64")
    fields = [((0,), False, "ortho"), ((1,), False, "ortho"), ((0,), True, "ortho"), ((0,), False, "forward")]
    assert len({apply(Fourier(*f), z) for f in fields}) == 4
    x = cg.Var((4, 4))
    assert len({apply(RealFourier(*f), x) for f in ((0, "ortho"), (1, "ortho"), (0, "forward"))}) == 3
