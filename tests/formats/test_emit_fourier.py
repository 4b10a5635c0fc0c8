"""Emitted windows and Fourier transforms have the meaning of the graph; other complex numbers are refused."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.onnx import load, serialised
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.ops.complex import AsPairs, complex
from cgraph.ops.fourier import from_half_spectrum, half_spectrum, transform
from tests.support.tolerance import assert_near

rng = np.random.default_rng(0)
X = cg.Var((3, 10, 4), name="x")
P = cg.Var((3, 10, 2), name="x")
Z = complex(P[..., 0], P[..., 1])
WRITTEN = {
    "windows along the last axis": (cg.sliding(X, 3), X),
    "windows along another axis": (cg.sliding(X, 3, 1), X),
    "each third window": (cg.sliding(X, 4, 1)[:, ::3], X),
    "some of the windows": (cg.sliding(X, 4, 1)[:, 1:6:2], X),
    "windows cut along another axis": (cg.sliding(X, 4, 1)[:, ::3, :2], X),
    "windows in reverse order": (cg.sliding(X, 4, 1)[:, ::-2], X),
    "half of a spectrum": (cg.rfft(X), X),
    "half of a spectrum along another axis": (cg.rfft(X, axis=1), X),
    "half of a longer spectrum": (cg.rfft(X, 13, 1), X),
    "half of a shorter spectrum": (cg.rfft(X, 7, 1), X),
    "a spectrum": (cg.fft(P), P),
    "a spectrum along the first axis": (cg.fft(P, axis=0), P),
    "numbers of a spectrum": (cg.ifft(P), P),
    "numbers of a spectrum along the first axis": (cg.ifft(P, axis=0), P),
    "a spectrum of two axes": (apply(AsPairs(), transform(Z, [None, None], [0, 1], False, "backward")), P),
    "numbers of a spectrum of two axes": (apply(AsPairs(), transform(Z, [None, None], [1, 0], True, "backward")), P),
    "a spectrum and back": (cg.ifft(cg.fft(P)), P),
    "real numbers of a half": (cg.irfft(P), P),
    "an odd number of real numbers": (cg.irfft(P, 19), P),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_and_read_again_has_the_same_meaning(name):
    y, x = WRITTEN[name]
    value = rng.standard_normal(x.shape).astype("f4")
    want = cg.compile(y, [x], engine="reference")(value)
    (got,) = load(serialised([y], [x])).compile(engine="reference")(value)
    assert got.shape == want.shape
    assert_near(got, want, "float32 long products")


@pytest.mark.parametrize("name", [name for name in WRITTEN if "real numbers" not in name])
def test_onnxruntime_gives_what_is_written_this_meaning(name):
    """It has no inverse of half a spectrum."""
    peer = pytest.importorskip("onnxruntime")
    y, x = WRITTEN[name]
    value = rng.standard_normal(x.shape).astype("f4")
    want = cg.compile(y, [x], engine="reference")(value)
    (got,) = peer.InferenceSession(serialised([y], [x])).run(None, {"x": value})
    assert got.shape == want.shape
    assert_near(got, want, "float32 long products")


def test_windows_that_are_cut_take_the_indices_of_those_that_remain():
    long = cg.Var((1, 100_000), name="x")
    assert len(serialised([cg.sliding(long, 400, 1)[:, ::1000]], [long])) < 1_000_000


@pytest.mark.parametrize("norm", ["ortho", "forward"])
def test_other_norms_and_other_uses_of_complex_numbers_are_refused(norm):
    z = complex(P[..., 0], P[..., 1])
    for y in (
        apply(AsPairs(), half_spectrum(X, None, 1, norm)),
        apply(AsPairs(), transform(z, [None], [1], False, norm)),
        from_half_spectrum(z, None, 1, norm),
        apply(AsPairs(), z * z),
        from_half_spectrum(z + z, None, 1, None),
    ):
        with pytest.raises(FormatError, match="have no ONNX operator"):
            serialised([y], [v for v in post_order([y]) if isinstance(v, cg.Var)])
