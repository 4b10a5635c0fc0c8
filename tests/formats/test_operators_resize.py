"""Resize by factors that float32 cannot hold: lengths and nearest elements are those of onnxruntime."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.resize import Axis, depends_on_rounding
from tests.support.onnx_models import assert_equal_results
from tests.support.onnx_open import agrees, node, open_model

pytest.importorskip("onnxruntime")
rng = np.random.default_rng(0)
COORDINATES = ["half_pixel", "pytorch_half_pixel", "asymmetric"]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
FACTORS = [(2.3, 0.45), (0.7, 1.1), (1.7, 0.1), (0.35, 1 / 3), (1.15, 0.6), (2.7, 3.3)]


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_lengths_and_nearest_elements(factors, coordinates):
    scales = np.array([1, 1, *factors], "f4")
    for shape in ((1, 2, 10, 20), (2, 1, 20, 30)):
        x = rng.standard_normal(shape).astype("f4")
        for way in NEAREST:
            options = {"coordinate_transformation_mode": coordinates, "nearest_mode": way}
            assert_equal_results("Resize", [x, None, scales], (2,), opset=19, mode="nearest", **options)
        for mode in ("linear", "cubic"):
            options = {"mode": mode, "coordinate_transformation_mode": coordinates, "near": "float32 small networks"}
            assert_equal_results("Resize", [x, None, scales], (2,), opset=19, **options)


def test_factors_that_a_run_decides_cut_lengths_alike():
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    raw = open_model(
        [node("Resize", ["x", "", "f"], ["y"], **attributes)], {"x": ("f4", (1, 1, 10, 20)), "f": ("f4", (4,))}
    )
    x = rng.standard_normal((1, 1, 10, 20)).astype("f4")
    agrees(raw, [{"x": x, "f": np.array([1, 1, *f], "f4")} for f in FACTORS], {"f": 4})


def test_older_files_cut_lengths_alike():
    x = rng.standard_normal((1, 2, 10, 20)).astype("f4")
    for mode in ("nearest", "linear"):
        scales = np.array([1, 1, 2.3, 1.1], "f4")
        assert_equal_results("Upsample", [x, scales], (1,), opset=9, mode=mode)
        assert_equal_results("Resize", [x, scales], (1,), opset=10, mode=mode)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("coordinates", [*COORDINATES, "align_corners"])
def test_linear_elements_of_sequences_images_and_volumes_are_those_of_one_op(axes, coordinates):
    scales = np.array([1, 1, *(1.5, 2.3, 3.0)[:axes]], "f4")
    x = rng.standard_normal((2, 3, *(4, 10, 5)[:axes])).astype("f4")
    options = {"mode": "linear", "coordinate_transformation_mode": coordinates, "near": "float32 small networks"}
    assert_equal_results("Resize", [x, None, scales], (2,), opset=19, **options)
    raw = open_model(
        [node("Resize", ["x", "", "f"], ["y"], mode="linear", coordinate_transformation_mode=coordinates)],
        {"x": ("f4", x.shape)},
        constants={"f": scales},
    )
    text = cg.text(load(raw).outputs[0])
    assert "resize(" in text and "take(" not in text


def test_the_op_is_left_where_rounding_decides():
    assert depends_on_rounding(Axis(10, 23, 2.35), "align_corners", "floor")
    assert depends_on_rounding(Axis(20, 6, float(np.float32(0.3))), "asymmetric", "floor")
    assert not depends_on_rounding(Axis(20, 40, 2.0), "asymmetric", "floor")


@pytest.mark.parametrize("coordinates", [*COORDINATES, "align_corners", "tf_crop_and_resize", "half_pixel_symmetric"])
@pytest.mark.parametrize("sizes", [(1, 5), (4, 1), (1, 1)])
def test_one_element_of_either_axis(coordinates, sizes):
    """Of a region with another start and end in each axis; what lies outside has the value that is asked for."""
    x, region = rng.standard_normal((1, 2, 6, 7)).astype("f4"), np.array([0, 0, 0.2, -0.3, 1, 1, 0.7, 1.4], "f4")
    roi = region if coordinates.startswith("tf") else None
    for mode in ("nearest", "linear", "cubic") if roi is None else ("nearest", "linear"):
        options = {"mode": mode, "coordinate_transformation_mode": coordinates, "near": "float32 small networks"}
        options |= {} if roi is None else {"extrapolation_value": 5.0}
        operands = [x, roi, None, np.array([1, 2, *sizes])]
        assert_equal_results("Resize", operands, (3,) if roi is None else (1, 3), opset=19, **options)
