"""Operators of the first files beside onnxruntime: numbers of their attributes, borders of images, refusals."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.support.onnx_models import FLOAT, assert_equal_results, one

rng = np.random.default_rng(0)
IMAGE = rng.standard_normal((2, 3, 7, 9)).astype("f4")


@pytest.mark.parametrize("kind", ["Affine", "ParametricSoftplus", "ScaledTanh"])
def test_functions_of_two_numbers(kind):
    assert_equal_results(kind, [IMAGE], opset=9, alpha=2.0, beta=-0.7)
    if kind == "Affine":
        assert_equal_results(kind, [IMAGE], opset=9)
        return
    for given in ({"alpha": 1.0}, {"beta": 1.0}):
        with pytest.raises(FormatError, match="beta" if "alpha" in given else "alpha"):
            load(one(kind, [("x", FLOAT, (2,))], opset=9, **given))


def test_scales_and_biases_of_channels():
    assert_equal_results("Scale", [IMAGE], opset=9, scale=3.0)
    assert_equal_results("Scale", [IMAGE], opset=9)
    assert_equal_results("ImageScaler", [IMAGE], opset=9, scale=0.5, bias=[1.0, 20.0, 300.0])
    assert_equal_results("ImageScaler", [IMAGE], opset=9, bias=[1.0, 20.0, 300.0])
    with pytest.raises(FormatError, match="2 biases do not fit an image"):
        load(one("ImageScaler", [("x", FLOAT, (2, 3, 4, 5))], opset=9, bias=[1.0, 2.0]))


@pytest.mark.parametrize(
    "options", [{"border": [1, 2, 3, 4]}, {"border": [0, 0, 0, 0]}, {"border": [1, 2, 0, 0], "scale": [4, 5]}]
)
def test_borders_are_left_top_right_bottom(options):
    assert_equal_results("Crop", [IMAGE], opset=9, **options)


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5, 6), (2, 3)])
def test_other_than_images_are_refused(shape):
    x = [("x", FLOAT, shape)]
    with pytest.raises(FormatError, match="3 biases do not fit an image"):
        load(one("ImageScaler", x, opset=9, bias=[1.0, 2.0, 3.0]))
    with pytest.raises(FormatError, match=r"the border \[0, 0, 0, 0\] of an image .* is not supported"):
        load(one("Crop", x, opset=9, border=[0, 0, 0, 0]))


@pytest.mark.parametrize(
    "options",
    [
        {"border": [0, -1, 0, 0]}, {"border": [-1, 0, 0, 0]}, {"border": [0, 0, 0, -2]},
        {"border": [0, 0, 0, 0], "scale": [4]}, {"border": [0, 0, 0, 0], "scale": [4, 5, 1]},
        {"border": [0, 0, 0, 0, 0]},
    ],
)  # fmt: skip
def test_borders_of_other_numbers_are_refused(options):
    with pytest.raises(FormatError, match="is not supported. Give 4 numbers from 0 on"):
        load(one("Crop", [("x", FLOAT, IMAGE.shape)], opset=9, **options))


@pytest.mark.parametrize(
    "options", [{"border": [1, 2]}, {"border": [5, 0, 5, 0]}, {"border": [0, 0, 0, 0], "scale": [8, 1]}]
)
def test_borders_that_do_not_fit_are_refused(options):
    with pytest.raises(FormatError, match="the border"):
        load(one("Crop", [("x", FLOAT, (2, 3, 7, 9))], opset=9, **options))
