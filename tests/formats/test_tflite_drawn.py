"""TFLite operators with drawn shapes, axes and options compute what the reference kernels do."""

import numpy as np
import pytest

from tests.support.tflite_draws import CASES, MANY_OPTIONS, ONE_SCALE, OWN_SCALES, drawn_model
from tests.support.tflite_models import reference, results_of
from tests.support.tolerance import assert_near


def seeds_of(name):
    return range(24 if name.split()[0] in MANY_OPTIONS else 8)


@pytest.mark.parametrize("name", CASES)
def test_operators_on_floats_compute_what_the_reference_kernels_do(name):
    for seed in seeds_of(name):
        net, outputs, values = drawn_model(name, seed)
        expected = reference(net.bytes(*outputs), *values)
        for x, y in zip(results_of(net, outputs, *values), expected, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype), seed
            assert_near(x, y, "float32 weights of others")


@pytest.mark.parametrize("name", ONE_SCALE + OWN_SCALES)
def test_operators_on_bytes_have_the_bits_of_the_reference_kernels(name):
    for seed in seeds_of(name):
        net, outputs, values = drawn_model(name, seed, on_bytes=True)
        expected = reference(net.bytes(*outputs), *values)
        for x, y in zip(results_of(net, outputs, *values), expected, strict=True):
            np.testing.assert_array_equal(x, y, f"seed {seed}", strict=True)
