"""Resize to sizes, and by factors, that are known only at run time."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.support.onnx_open import agrees, node, numbers, open_model
from tests.support.tolerance import assert_near

pytest.importorskip("onnxruntime")
IMAGE = {"x": ("f4", (1, 2, 5, 6))}
COORDINATES = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
PICTURE = np.random.default_rng(0).normal(size=(1, 2, 5, 6)).astype("f4")


def resized(operands: list[str], **attributes: object) -> bytes:
    kinds = {"n": ("i8", (4,)), "f": ("f4", (4,))}
    given = {name: kinds[name] for name in operands if name in kinds}
    return open_model([node("Resize", operands, ["y"], **attributes)], IMAGE | given)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(
    ("mode", "nearest"), [("linear", "floor"), ("cubic", "floor"), *(("nearest", way) for way in NEAREST)]
)
def test_sizes(coordinates, mode, nearest):
    raw = resized(["x", "", "", "n"], mode=mode, coordinate_transformation_mode=coordinates, nearest_mode=nearest)
    sizes = ((5, 6), (10, 12), (3, 4), (1, 1), (7, 5))
    agrees(raw, [{"x": PICTURE, "n": numbers(1, 2, *n)} for n in sizes], {"n": 12})


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize("factors", [(1, 1), (2, 2), (0.6, 0.7), (1.5, 3)])
def test_factors_mean_what_they_do_when_they_are_known(coordinates, mode, factors):
    raw = resized(["x", "", "f"], mode=mode, coordinate_transformation_mode=coordinates)
    given = {"x": PICTURE, "f": np.array([1, 1, *factors], "f4")}
    wanted = load(raw, constants={"f": given["f"]}).compile()(**given)[0]
    found = load(raw, maximum={"f": 3}).compile()(**given)[0]
    assert found.shape == wanted.shape
    assert_near(found, wanted, "float32 products")


@pytest.mark.parametrize("axes", [[3, 2], [2, 3], [-1], [-2, 3]])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_sizes_and_factors_of_some_axes_in_any_order(mode, axes):
    for name, values in (("n", [[5, 6], [3, 9], [7, 5]]), ("f", [[1, 1], [0.6, 1.5], [2, 1]])):
        kind = ("i8" if name == "n" else "f4", (len(axes),))
        operands = ["x", "", "", "n"] if name == "n" else ["x", "", "f"]
        raw = open_model([node("Resize", operands, ["y"], mode=mode, axes=axes)], IMAGE | {name: kind})
        given = [{"x": PICTURE, name: np.array(v[: len(axes)], kind[0])} for v in values]
        agrees(raw, given, {name: 12})


def test_the_coefficient_of_cubic_interpolation():
    for coefficient in (-0.5, -1.0):
        raw = resized(["x", "", "", "n"], mode="cubic", cubic_coeff_a=coefficient)
        agrees(raw, [{"x": PICTURE, "n": numbers(1, 2, *n)} for n in ((7, 9), (3, 4))], {"n": 12})


def test_pictures_of_a_number_known_only_when_run():
    nodes = [node("Compress", ["x", "m"], ["c"], axis=0), node("Resize", ["c", "", "s"], ["y"], mode="linear")]
    raw = open_model(nodes, {"x": ("f4", (4, 2, 5, 6)), "m": ("?", (4,))}, {"s": np.array([1, 1, 2, 2], "f4")})
    pictures = np.concatenate([PICTURE] * 4) * np.arange(1, 5, dtype="f4").reshape(4, 1, 1, 1)
    agrees(raw, [{"x": pictures, "m": np.array(m, bool)} for m in ([1, 0, 1, 1], [0, 0, 1, 0], [1] * 4)])


@pytest.mark.parametrize(
    ("attributes", "match"),
    [
        ({"mode": "cubic", "exclude_outside": 1}, "exclude_outside"),
        ({"antialias": 1, "mode": "linear"}, "antialias"),
        ({"keep_aspect_ratio_policy": "not_larger"}, "keep_aspect_ratio_policy"),
        ({"coordinate_transformation_mode": "half_pixel_symmetric"}, "coordinates 'half_pixel_symmetric'"),
        ({"nearest_mode": "odd"}, "nearest_mode 'odd'"),
    ],
)
def test_what_is_not_supported_is_named(attributes, match):
    with pytest.raises(FormatError, match=match):
        load(resized(["x", "", "", "n"], **attributes), maximum={"n": 9})
    if "nearest_mode" not in attributes:
        with pytest.raises(
            FormatError, match="takes no sizes that are known only at run time; give constants={'n': value}"
        ):
            load(resized(["x", "", "", "n"], **attributes), maximum={"n": 9})


def test_sizes_without_a_maximum_are_asked_for():
    with pytest.raises(FormatError, match="nothing bounds axis 0.*maximum={'n': n}"):
        load(resized(["x", "", "", "n"]))
