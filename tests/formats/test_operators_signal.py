"""Fourier transforms beside NumPy, windows beside the definition of ONNX, frames of signals, mel weights."""

import numpy as np
import pytest
from onnx import TensorProto

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.signal import stft
from cgraph.ops.leaf import Const
from tests.support.onnx_context import context
from tests.support.onnx_models import FLOAT, assert_equal_results, one, results_of
from tests.support.tolerance import assert_near

rng = np.random.default_rng(0)
REAL, COMPLEX = (rng.standard_normal((2, 6, 5, k)).astype("f4") for k in (1, 2))
NEAR = {"near": "float32 long products"}


def number(value, dtype="i8"):
    return np.array(value, dtype)


def transformed(x, length=None, axis=1, opset=20, **options):
    if opset < 20:
        operands, options = [x, *([] if length is None else [number(length)])], {"axis": axis, **options}
    else:
        operands = [x, None if length is None else number(length), number(axis)]
    return results_of("DFT", operands, (1, 2), by="nobody", opset=opset, **options)[0][0]


def values(x):
    """As complex numbers."""
    return x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)


def check(got, want):
    assert got.shape == (*want.shape, 2)
    assert_near(got, np.stack([want.real, want.imag], -1), "float32 long products")


@pytest.mark.parametrize("x", [REAL, COMPLEX], ids=["real", "complex"])
@pytest.mark.parametrize("axis", [0, 1, 2, -2, -3])
@pytest.mark.parametrize("length", [None, 3, 8])
@pytest.mark.parametrize("opset", [17, 20])
def test_transforms_are_numpys(x, axis, length, opset):
    place = axis % 4
    check(transformed(x, length, axis, opset), np.fft.fft(values(x), length, place))
    check(transformed(x, length, axis, opset, inverse=1), np.fft.ifft(values(x), length, place))
    if x is REAL:
        check(transformed(x, length, axis, opset, onesided=1), np.fft.rfft(x[..., 0], length, place))


def test_the_axis_is_the_second_or_the_last_of_values_unless_told():
    check(results_of("DFT", [REAL], by="nobody", opset=20)[0][0], np.fft.fft(REAL[..., 0], axis=2))
    check(results_of("DFT", [REAL], by="nobody", opset=17)[0][0], np.fft.fft(REAL[..., 0], axis=1))
    check(transformed(REAL[0, :, 0], axis=0), np.fft.fft(REAL[0, :, 0, 0]))


@pytest.mark.parametrize("length", [None, 6, 7, 3, 12])
def test_half_a_transform_gives_real_values_back(length):
    half = np.fft.rfft(REAL[..., 0], axis=1)
    x = np.stack([half.real, half.imag], -1).astype("f4")
    got = transformed(x, length, 1, inverse=1, onesided=1)
    want = np.fft.irfft(half, 2 * (half.shape[1] - 1) if length is None else length, axis=1)
    assert got.shape == (*want.shape, 1)
    assert_near(got[..., 0], want, "float32 long products")


@pytest.mark.parametrize("kind", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [None, 0, 1])
@pytest.mark.parametrize("size", [2, 7, 8])
def test_windows_are_those_of_the_reference(kind, periodic, size):
    options = {} if periodic is None else {"periodic": periodic}
    assert_equal_results(kind, [number(size)], (0,), by="reference", near="float32 formulas near zero", **options)
    got = results_of(kind, [number(size)], (0,), by="nobody", output_datatype=TensorProto.DOUBLE, **options)[0][0]
    assert got.dtype == np.float64


def test_hann_by_hand():
    got = results_of("HannWindow", [number(4)], (0,), by="nobody")[0][0]
    assert_near(got, [0, 0.5, 1, 0.5], "float32 formulas near zero")
    got = results_of("HannWindow", [number(5)], (0,), by="nobody", periodic=0)[0][0]
    assert_near(got, [0, 0.5, 1, 0.5, 0], "float32 formulas near zero")


SIGNAL = rng.standard_normal((2, 20, 1)).astype("f4")


@pytest.mark.parametrize("onesided", [None, 0, 1])
@pytest.mark.parametrize("step", [1, 3, 8])
def test_frames_are_transformed_one_by_one(onesided, step):
    shape = np.arange(1, 9, dtype="f4")
    options = {} if onesided is None else {"onesided": onesided}
    windows = [[8, shape], [8, None], [None, shape]]
    for length, window in windows:
        operands = [SIGNAL, number(step), window, None if length is None else number(length)]
        while operands[-1] is None:
            operands.pop()
        got = results_of("STFT", operands, (1, 3), by="nobody", **options)[0][0]
        frames = np.stack([SIGNAL[:, i : i + 8, 0] for i in range(0, 13, step)], 1)
        frames = frames if window is None else frames * window
        check(got, (np.fft.fft if onesided == 0 else np.fft.rfft)(frames))


@pytest.mark.parametrize("onesided", [0, 1])
def test_frames_of_signals_without_an_axis_of_parts_and_of_complex_ones(onesided):
    shape = np.arange(1, 9, dtype="f4")
    pairs = rng.standard_normal((2, 20, 2)).astype("f4")
    z = pairs[..., 0] + 1j * pairs[..., 1]
    for signal, values in ((SIGNAL[..., 0], SIGNAL[..., 0]), (pairs, z)):
        got = results_of("STFT", [signal, number(3), shape], (1,), by="nobody", onesided=onesided)[0][0]
        want = np.fft.fft(np.stack([values[:, i : i + 8] * shape for i in range(0, 13, 3)], 1))
        check(got, want[..., :5] if onesided else want)


def test_one_frame_may_be_the_whole_signal_and_a_window_computed():
    shape = np.arange(1, 21, dtype="f4")
    got = results_of("STFT", [SIGNAL, number(7), shape], (1,), by="nobody")[0][0]
    check(got, np.fft.rfft(SIGNAL[:, None, :, 0] * shape))


def test_frames_that_do_not_fit_are_refused():
    x = [("x", FLOAT, (2, 20, 1))]
    with pytest.raises(FormatError, match="neither a window nor a frame length is given"):
        load(one("STFT", x, {"s": number(1)}))
    for step, length in ((1, 0), (2, -3), (-1, 4), (1, 21)):
        operands = (Const(v) if v is not None else None for v in (SIGNAL, number(step), None, number(length)))
        with pytest.raises(FormatError, match=f"frames of {length} every {step} do not fit a signal of 20"):
            stft(context(*operands))
    for step, length in ((0, 8), (1, 21)):
        with pytest.raises(FormatError, match=f"frames of {length} every {step} do not fit a signal of 20"):
            load(one("STFT", x, {"s": number(step), "w": np.ones(length, "f4")}))


@pytest.mark.parametrize(("count", "length", "rate", "low", "high"), [(8, 16, 8192, 0, 4096), (3, 64, 8000, 100, 3500)])
def test_mel_weights_are_those_of_the_reference(count, length, rate, low, high):
    operands = [number(count), number(length), number(rate), number(low, "f4"), number(high, "f4")]
    assert_equal_results("MelWeightMatrix", operands, range(5), by="reference", near="float32 formulas near zero")


def test_tables_are_charged_before_they_are_made():
    with pytest.raises(FormatError, match="DFT.*would take"):
        load(one("DFT", [("x", FLOAT, (1, 4096, 1))], {"n": number(10**9)}, opset=17))
    with pytest.raises(FormatError, match="HannWindow.*would take"):
        results_of("HannWindow", [number(10**9)], (0,), by="nobody")
