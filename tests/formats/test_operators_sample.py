"""Interpolated images: grids of every mode, affine maps, regions, deformed windows; rows and columns are told apart."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.sample import reflect, window_places
from cgraph.ops.leaf import Const
from tests.support.onnx_models import FLOAT, assert_equal_results, one

pytest.importorskip("onnxruntime")
rng = np.random.default_rng(0)
NEAR = {"near": "float32 small networks"}


def numbers(*shape):
    return rng.standard_normal(shape).astype("f4")


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_images_at_places(mode, padding_mode, align_corners):
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    grid = rng.uniform(-1.4, 1.4, (2, 3, 5, 2)).astype("f4")
    assert_equal_results("GridSample", [numbers(2, 3, 4, 6), grid], opset=20, **options, **NEAR)


def test_images_of_a_pixel_and_older_names():
    grid = rng.uniform(-2, 2, (1, 3, 5, 2)).astype("f4")
    for align in (0, 1):
        options = {"mode": "bilinear", "padding_mode": "reflection", "align_corners": align}
        assert_equal_results("GridSample", [numbers(1, 2, 1, 4), grid], opset=16, **options, **NEAR)
    assert_equal_results("GridSample", [numbers(1, 2, 3, 4), grid], opset=16, **NEAR)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_places_that_are_not_finite_are_the_first_edge(mode, padding_mode):
    grid = rng.uniform(-1, 1, (1, 4, 4, 2)).astype("f4")
    grid[0, 0, :, 0], grid[0, 1, :, 1], grid[0, 2] = [np.nan, np.inf, -np.inf, 0], [np.nan, np.inf, -np.inf, 0], np.nan
    options = {"mode": mode, "padding_mode": padding_mode}
    assert_equal_results("GridSample", [numbers(1, 2, 4, 6), grid], opset=20, **options, **NEAR)


@pytest.mark.parametrize("place", [np.nan, np.inf, -np.inf, 1e30, -1e30])
def test_no_place_of_regions_and_windows_is_an_index_outside(place):
    x, rois, offset = numbers(1, 2, 4, 6), np.array([[0, 1, 5, 3]], "f4"), np.zeros((1, 4, 4, 5), "f4")
    rois[0, 2], offset[0, 1, 2, 3] = place, place
    aligned = one("RoiAlign", [("x", FLOAT, x.shape), ("r", FLOAT, (1, 4))], {"b": np.array([0])}, sampling_ratio=2)
    inputs = [("x", FLOAT, x.shape), ("o", FLOAT, offset.shape)]
    deformed = one("DeformConv", [inputs[0], ("f", FLOAT, (2, 2, 1, 2)), inputs[1]], opset=19)
    assert load(aligned).compile()(x, rois)[0].shape == (1, 2, 1, 1)
    near = np.isfinite(load(deformed).compile()(x, np.ones((2, 2, 1, 2), "f4"), offset)[0])
    assert near.sum() >= near.size - 2  # only the result that reads there


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_rooms_at_places(mode):
    grid = rng.uniform(-1.2, 1.2, (2, 2, 3, 4, 3)).astype("f4")
    assert_equal_results("GridSample", [numbers(2, 3, 3, 4, 5), grid], opset=20, mode=mode, **NEAR)


def test_a_mode_that_is_unknown_is_refused():
    inputs = [("x", FLOAT, (1, 1, 4, 4)), ("g", FLOAT, (1, 2, 2, 2))]
    for options in ({"mode": "quintic"}, {"padding_mode": "wrap"}):
        with pytest.raises(
            FormatError, match="mode '.*' with padding '.*' is not supported. Use linear, nearest or cubic"
        ):
            load(one("GridSample", inputs, **options))


def test_places_are_reflected_at_centres_or_edges():
    at = Const(np.array([-1.25, -0.5, 0, 2.75, 3, 3.5, 4.25]))
    corners = evaluate([reflect(at, 4, True)], {})[0]
    edges = evaluate([reflect(at, 4, False)], {})[0]
    assert corners.tolist() == [1.25, 0.5, 0, 2.75, 3, 2.5, 1.75]
    assert edges.tolist() == [0.25, -0.5, 0, 2.75, 3, 3.5, 2.75]
    assert not evaluate([reflect(at, 1, True)], {})[0].any()


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 3), (2, 1, 2, 3, 4)])
@pytest.mark.filterwarnings("ignore:divide by zero")  # of the reference, along an axis of one pixel
def test_grids_of_affine_maps(align_corners, size):
    theta = numbers(2, len(size) - 2, len(size) - 1)
    options = {"opset": 20, "by": "reference", "align_corners": align_corners}
    assert_equal_results("AffineGrid", [theta, np.array(size)], (1,), **options, **NEAR)


def test_a_grid_of_another_number_of_axes_is_refused():
    with pytest.raises(FormatError, match=r"the size \[2, 3, 4\] is not supported. Give \[n, c, h, w\]"):
        load(one("AffineGrid", [("t", FLOAT, (2, 2, 3))], {"s": np.array([2, 3, 4])}))


ROIS = np.array([[0, 1, 5, 3], [2, 0, 2.5, 0.25], [-3, -2, 9, 8]], "f4")


@pytest.mark.parametrize(
    "options", [{}, {"coordinate_transformation_mode": "output_half_pixel"}], ids=["half", "output"]
)
@pytest.mark.parametrize("ratio", [0, 2, 3])
def test_regions_of_images(options, ratio):
    operands = [numbers(2, 3, 5, 7), ROIS, np.array([1, 0, 1])]
    sizes = {"output_height": 2, "output_width": 3, "sampling_ratio": ratio, "spatial_scale": 0.75}
    assert_equal_results("RoiAlign", operands, (1,), opset=16, **sizes, **options, **NEAR)


def test_older_regions_are_not_shifted_and_cells_are_one_unless_told():
    operands = [numbers(2, 3, 5, 7), ROIS, np.array([1, 0, 1])]
    assert_equal_results("RoiAlign", operands, (1,), opset=10, sampling_ratio=2, output_width=2, **NEAR)
    assert_equal_results("RoiAlign", operands, (1,), opset=16, **NEAR)


def test_the_largest_of_each_cell():
    """On whole pixels each point is one pixel: the largest of 2 x 2."""
    x = np.abs(numbers(1, 2, 4, 6))
    options = {"mode": "max", "output_height": 2, "output_width": 3, "sampling_ratio": 2}
    model = load(
        one("RoiAlign", [("x", FLOAT, x.shape)], {"r": np.array([[0, 0, 6, 4]], "f4"), "b": np.array([0])}, **options)
    )
    want = x.reshape(1, 2, 2, 2, 3, 2).max((3, 5))
    np.testing.assert_array_equal(model.compile(engine="reference")(x)[0], want)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strides": [2, 1], "pads": [1, 0, 0, 2], "dilations": [1, 2]},
        {"group": 2},
        {"offset_group": 2},
        {"group": 2, "offset_group": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("masked", [False, True])
def test_deformed_windows(options, masked):
    x, f = numbers(2, 4, 5, 6), numbers(4, 4 // options.get("group", 1), 3, 2)
    strides, pads = options.get("strides", [1, 1]), options.get("pads", [0] * 4)
    reach = [(k - 1) * d + 1 for k, d in zip((3, 2), options.get("dilations", [1, 1]))]
    sizes = [(n + pads[i] + pads[2 + i] - reach[i]) // strides[i] + 1 for i, n in enumerate((5, 6))]
    parts = options.get("offset_group", 1)
    operands = [x, f, 0.7 * numbers(2, parts * 12, *sizes), numbers(4)]
    operands += [np.abs(numbers(2, parts * 6, *sizes))] if masked else []
    assert_equal_results("DeformConv", operands, opset=19, by="reference", **options, **NEAR)


def test_elements_of_windows_by_hand():
    places = window_places((2, 1), (1, 3), [5, 2], [3, 9], [1, 4])
    assert places.tolist() == [[[-1, -1, -1], [-4, -2, 0]], [[2, 2, 2], [-4, -2, 0]]]


def test_other_axes_are_refused():
    inputs = [("x", FLOAT, (1, 1, 4)), ("f", FLOAT, (1, 1, 2)), ("o", FLOAT, (1, 2, 3))]
    with pytest.raises(FormatError, match="1 axes besides batch and channels are not supported. Use 2"):
        load(one("DeformConv", inputs))


def test_largest_pixels_of_regions():
    x = numbers(2, 3, 9, 8)
    rois = [[0, 1, 1, 6, 5], [1, 0, 0, 20, 20], [0, 3, 2, 3, 2], [1, 7.5, 6.5, 2, 2], [1, -3.5, -0.5, 4, 4]]
    for cells, scale in (([3, 2], 0.7), ([1, 1], 1.0), ([7, 5], 1.3)):
        options = {"pooled_shape": cells, "spatial_scale": scale}
        assert_equal_results("MaxRoiPool", [x, np.array(rois, "f4")], **options)
    beyond = assert_equal_results("MaxRoiPool", [x, np.array([[0, 30, 30, 40, 40]], "f4")], pooled_shape=[2, 2])
    assert not beyond[0].any()
    for cells in ([0, 1], [2]):
        with pytest.raises(FormatError, match="cells"):
            load(one("MaxRoiPool", [("x", FLOAT, (1, 1, 4, 4)), ("r", FLOAT, (1, 5))], pooled_shape=cells))


@pytest.mark.parametrize("options", [{}, {"coordinate_transformation_mode": "output_half_pixel"}], ids=str)
@pytest.mark.parametrize("ratio", [0, 2])
def test_the_largest_weighted_pixel_of_each_cell(options, ratio):
    operands = [np.abs(numbers(2, 3, 5, 7)), ROIS, np.array([1, 0, 1])]
    sizes = {"output_height": 2, "output_width": 3, "sampling_ratio": ratio, "spatial_scale": 0.75, "mode": "max"}
    assert_equal_results("RoiAlign", operands, (1,), opset=16, **sizes, **options, **NEAR)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("kind", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 2])
def test_regions_without_extent_and_turned_ones(mode, kind, ratio):
    """Of as many points as pixels they have none, unless a region is at least a pixel large."""
    rois = np.array([[1, 2, 1, 4], [1, 2, 4, 2], [3, 3, 3, 3], [4, 4, 2, 1], [0, 0, 6, 5], [2, 1, 2.25, 1.5]], "f4")
    options = {"output_height": 2, "output_width": 3, "coordinate_transformation_mode": kind, "sampling_ratio": ratio}
    operands = [numbers(2, 2, 6, 7), rois, np.array([0, 1, 0, 1, 0, 1])]
    assert_equal_results("RoiAlign", operands, (1, 2), opset=16, mode=mode, **options, **NEAR)


def test_older_regions_without_extent_are_a_pixel_large():
    operands = [numbers(2, 2, 6, 7), np.array([[1, 2, 1, 4], [3, 3, 3, 3]], "f4"), np.array([0, 1])]
    (got,) = assert_equal_results("RoiAlign", operands, (1, 2), opset=10, output_height=2, output_width=2, **NEAR)
    assert np.abs(got).min() > 0


@pytest.mark.parametrize("shape", [(1, 1, 0, 3), (2, 1, 3, 0), (1, 1, 2, 0, 3)])
def test_affine_maps_of_no_pixels_and_negative_sizes(shape):
    axes = len(shape) - 2
    theta = np.ones((shape[0], axes, axes + 1), "f4")
    raw = one("AffineGrid", [("t", FLOAT, theta.shape)], {"s": np.array(shape)}, 20)
    assert load(raw).outputs[0].shape == (shape[0], *shape[2:], axes)
    negative = [-n if n == 3 else n for n in shape]
    with pytest.raises(FormatError, match=r"is not supported. Give \[n, c, h, w\] or \[n, c, d, h, w\]"):
        load(one("AffineGrid", [("t", FLOAT, theta.shape)], {"s": np.array(negative)}, 20))


def test_cells_of_other_than_images_are_refused():
    for shape, cells in (((1, 2, 6), [2, 2]), ((1, 2, 6, 7), [2]), ((1, 2, 6, 7), [0, 2]), ((1, 2, 3, 4, 5), [2, 2])):
        with pytest.raises(FormatError, match="are not supported. Use two numbers above 0, and images"):
            load(one("MaxRoiPool", [("x", FLOAT, shape)], {"r": np.zeros((1, 5), "f4")}, pooled_shape=cells))
