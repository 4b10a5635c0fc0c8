"""RFFT2D: lengths that differ from those of the image, and what is refused; the rest is in tflite_cases.py."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.tflite import load
from tests.support.tflite_models import Network, results_of
from tests.support.tolerance import assert_near


@pytest.mark.parametrize("lengths", [(1, 8), (4, 6), (2, 16), (5, 7)])
def test_both_axes_are_cut_or_padded_to_their_lengths(lengths):
    net = Network()
    y = net.op("RFFT2D", [net.input((3, 4, 6)), net.constant(np.array(lengths, "i4"))], "complex64")
    x = np.random.default_rng(0).standard_normal((3, 4, 6)).astype("f4")
    want = np.fft.rfft2(x.astype("f8"), lengths)
    (found,) = results_of(net, [y], x)
    assert found.dtype == np.complex64 and found.shape == want.shape
    assert_near(found.view("f4"), want.astype("complex64").view("f4"), "float32 formulas near zero")


@pytest.mark.parametrize(("shape", "lengths"), [((4,), (1, 4)), ((4, 4), (4,)), ((4, 4), (0, 4)), ((4, 4), (4, 4, 4))])
def test_lengths_that_do_not_fit_are_refused(shape, lengths):
    net = Network()
    y = net.op("RFFT2D", [net.input(shape), net.constant(np.array(lengths, "i4"))], "complex64")
    with pytest.raises(FormatError, match="Give one for each of the last two axes"):
        load(net.bytes(y))


def test_long_transforms_are_charged():
    net = Network()
    y = net.op("RFFT2D", [net.input((1, 8)), net.constant(np.array((1, 1 << 30), "i4"))], "complex64")
    with pytest.raises(FormatError, match="while reading"):
        load(net.bytes(y))
