"""Resizing of TFLite: neighbours and weights along an axis, by hand, and what is refused."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.tflite import load
from cgraph.formats.tflite.operators.resize import UNIT, neighbours
from tests.support.tflite_models import Network, reference, results_of
from tests.support.tolerance import assert_near


@pytest.mark.parametrize(
    ("size", "count", "where", "low", "high", "weight"),
    [
        (2, 4, "asymmetric", [0, 0, 1, 1], [0, 1, 1, 1], [0, 0.5, 0, 0.5]),
        (4, 2, "asymmetric", [0, 2], [0, 2], [0, 0]),
        (2, 3, "align_corners", [0, 0, 1], [0, 1, 1], [0, 0.5, 0]),
        (3, 1, "align_corners", [0], [0], [0]),
        (2, 4, "half_pixel", [0, 0, 0, 1], [0, 1, 1, 1], [-0.25, 0.25, 0.75, 0.25]),
    ],
)
def test_both_neighbours_and_the_weight_of_the_second(size, count, where, low, high, weight):
    got = neighbours(size, count, where)
    for x, want in zip(got, (low, high, np.multiply(weight, UNIT))):
        np.testing.assert_array_equal(x, want)


def resized(kind, x, shape, **options):
    net = Network()
    y = net.op(kind, [net.input(x.shape), net.constant(np.array(shape, "i4"))], **options)
    return results_of(net, [y], x)[0]


def test_rows_and_columns_have_their_own_sizes():
    x = np.arange(6, dtype="f4").reshape(1, 2, 3, 1)
    want = x.repeat(2, 1).repeat(3, 2)
    np.testing.assert_array_equal(resized("RESIZE_NEAREST_NEIGHBOR", x, (4, 9)), want, strict=True)
    got = resized("RESIZE_BILINEAR", x, (3, 5), align_corners=True)
    want = np.add.outer([0, 1.5, 3], [0, 0.5, 1, 1.5, 2]).astype("f4")
    np.testing.assert_array_equal(got[0, :, :, 0], want, strict=True)


def test_sizes_and_coordinates_that_are_none_are_refused():
    x = np.ones((1, 2, 3, 1), "f4")
    with pytest.raises(FormatError, match="align_corners and half_pixel_centers exclude each other"):
        resized("RESIZE_BILINEAR", x, (4, 4), align_corners=True, half_pixel=True)
    for shape in ((4, 0), (0, 4), (4,), (4, 4, 4)):
        with pytest.raises(FormatError, match="images of"):
            resized("RESIZE_NEAREST_NEIGHBOR", x, shape)


@pytest.mark.parametrize("kind", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
@pytest.mark.parametrize("options", [{}, {"align_corners": True}, {"half_pixel": True}], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (5, 1), (9, 2), (3, 4)])
def test_pictures_are_resized_as_the_reference_kernels_do(kind, options, shape):
    """Also to a single row or column, and to their own size."""
    x = np.random.default_rng(5).integers(-8, 9, (2, 3, 4, 2)).astype("f4")
    net = Network()
    model = net.bytes(net.op(kind, [net.input(x.shape), net.constant(np.array(shape, "i4"))], **options))
    found = load(model)
    got = evaluate(list(found.outputs), {found.inputs[0]: x})[0]
    assert_near(got, reference(model, x)[0], "float32 formulas near zero")
