"""Resize by factors that float32 cannot hold: lengths and nearest elements are those of onnxruntime."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.resize import Axis, depends_on_rounding
from tests.support.onnx_models import assert_equal_results, results_of
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


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("scales", [[2, 1, 1, 1], [1, 2, 1, 1], [2, 1.4, 1.5, 1], [1, 1.3, 1.19, 0.75]])
def test_any_axis_is_resized_also_of_pictures_and_channels(mode, scales):
    """Of a factor just above 1, an axis keeps its length, but not its elements."""
    x = np.random.default_rng(1).standard_normal((2, 3, 5, 6)).astype("f4")
    for coordinates in ("half_pixel", "asymmetric"):
        options = {"mode": mode, "coordinate_transformation_mode": coordinates, "near": "float32 small networks"}
        options["nearest_mode"] = "floor"
        assert_equal_results("Resize", [x, None, np.array(scales, "f4")], (2,), opset=19, by="reference", **options)
        scales_of_two = np.array(scales[2:], "f4")
        assert_equal_results("Resize", [x[0, 0], None, scales_of_two], (2,), opset=19, by="reference", **options)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("option", ["antialias", "exclude_outside"])
@pytest.mark.parametrize("sizes", [(7, 4), (3, 9), (12, 13), (2, 2)])
def test_weights_are_of_elements_inside_and_wider_for_fewer_results(mode, option, sizes):
    x = np.random.default_rng(1).standard_normal((2, 3, 5, 6)).astype("f4")
    options = {"mode": mode, option: 1, "near": "float32 small networks"}
    assert_equal_results("Resize", [x, None, None, np.array([2, 3, *sizes])], (3,), by="reference", **options)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i4", "i8"])
def test_integers_are_resized_as_floats_and_rounded(dtype):
    x = np.random.default_rng(1).integers(40, 90, (1, 2, 5, 6)).astype(dtype)
    scales = np.array([1, 1, 1.3, 0.85], "f4")  # no sum of a result ends with a half
    for mode in ("nearest", "linear", "cubic"):
        (got,), _ = results_of("Resize", [x, None, scales], (2,), by="nobody", mode=mode)
        (want,), _ = results_of("Resize", [x.astype("f4"), None, scales], (2,), by="nobody", mode=mode)
        assert got.dtype == dtype and (mode == "nearest") == np.array_equal(want, np.rint(want))
        np.testing.assert_array_equal(got, np.rint(want).astype(dtype))


def test_a_region_and_factors_give_the_lengths_of_the_parts():
    """ONNX: the length times the part of the axis times the factor, cut. Without a region it is the whole axis."""
    x = np.random.default_rng(1).standard_normal((1, 2, 6, 8)).astype("f4")
    region, scales = np.array([0, 0, 0.25, 0.5, 1, 1, 1, 0.75], "f4"), np.array([1, 1, 1.5, 2.75], "f4")
    for mode in ("nearest", "linear", "cubic"):
        options = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "by": "nobody"}
        for roi, sizes in ((region, [1, 2, 6, 5]), (None, [1, 2, 9, 22])):
            whole = np.array([0, 0, 0, 0, 1, 1, 1, 1], "f4") if roi is None else roi
            (got,), _ = results_of("Resize", [x, roi, scales], (1, 2), **options)
            (want,), _ = results_of("Resize", [x, whole, None, np.array(sizes)], (1, 3), **options)
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_axes_without_elements(mode):
    x = np.random.default_rng(1).standard_normal((2, 3, 5, 6)).astype("f4")

    def shape_of(x, scales=None, sizes=None, **options):
        operands = [x, None, None if scales is None else np.array(scales, "f4"), sizes and np.array(sizes)]
        (got,), _ = results_of("Resize", operands, (2, 3), by="nobody", mode=mode, **options)
        return got.shape

    assert shape_of(x[:0], [1, 1, 2, 1.5]) == (0, 3, 10, 9)
    assert shape_of(x[:0], sizes=[0, 3, 10, 4]) == (0, 3, 10, 4)
    assert shape_of(x[:, :, :0], [1, 1, 2, 1.5]) == (2, 3, 0, 9)
    assert shape_of(x, [1, 1, 0.1, 1.5]) == (2, 3, 0, 9)
    assert shape_of(x[:0], [1, 1, 0.1, 1.5]) == (0, 3, 0, 9)
    with pytest.raises(FormatError, match=r"\[5, 6\] elements cannot become \[0, 7\]: give sizes above 0"):
        shape_of(x, sizes=[0, 7], axes=[2, 3])
    with pytest.raises(FormatError, match=r"\[2, 0\] elements cannot become \[4, 7\]: give sizes above 0"):
        shape_of(x[..., :0], sizes=[4, 7], axes=[0, 3])
    assert shape_of(x, sizes=[1, 7], axes=[2, 3]) == (2, 3, 1, 7)


@pytest.mark.parametrize("scales", [[1, 0], [-0.5, 1]])
def test_factors_are_above_zero(scales):
    x = np.ones((4, 5), "f4")
    with pytest.raises(FormatError, match="they must be above 0"):
        results_of("Resize", [x, None, np.array(scales, "f4")], (2,), by="nobody")
    with pytest.raises(FormatError, match="neither scales nor sizes are given: give one of them"):
        results_of("Resize", [x, None, np.zeros(0, "f4")], (2,), by="nobody")
