"""Resizing by hand: nearest by each rounding, linear between neighbours, axes of their own, gradients, rows read."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.spec import Spec
from cgraph.ops.resize import Resize, WeightedRows, weighted_rows
from tests.support.tolerance import assert_close, assert_near

ROW = np.array([0.0, 10, 20, 30], "f4")


def meant(node):
    """The value by meaning."""
    return evaluate((node,), {})[0]


def along(x, count, **options):
    """A row resized as an image's columns, and the same as a sequence and as the depth of a volume."""
    image = meant(cg.resize(cg.Const(x[None, None, None]), (1, count), **options))[0, 0, 0]
    sequence = meant(cg.resize(cg.Const(x[None, None]), (count,), **options))[0, 0]
    depth = meant(cg.resize(cg.Const(x[None, None, :, None, None]), (count, 1, 1), **options))[0, 0, :, 0, 0]
    np.testing.assert_array_equal(image, sequence)
    np.testing.assert_array_equal(image, depth)
    return image.tolist()


def test_nearest_rounds_as_asked():
    options = {"coordinates": "asymmetric"}  # at 0, 0.5, 1, 1.5, ...
    assert along(ROW, 8, rounding="floor", **options) == [0, 0, 10, 10, 20, 20, 30, 30]
    assert along(ROW, 8, rounding="ceil", **options) == [0, 10, 10, 20, 20, 30, 30, 30]
    assert along(ROW, 8, rounding="round_prefer_floor", **options) == [0, 0, 10, 10, 20, 20, 30, 30]
    assert along(ROW, 8, rounding="round_prefer_ceil", **options) == [0, 10, 10, 20, 20, 30, 30, 30]
    assert along(ROW, 2) == [0, 20], "half_pixel: at 0.5 and 2.5"


def test_linear_interpolates_between_two_neighbours():
    assert along(ROW, 7, mode="linear", coordinates="align_corners") == [0, 5, 10, 15, 20, 25, 30]
    assert along(ROW, 8, mode="linear") == [0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30]
    assert along(ROW, 8, mode="linear", coordinates="asymmetric") == [0, 5, 10, 15, 20, 25, 30, 30]
    assert along(ROW, 1, mode="linear") == [15] and along(ROW, 1, mode="linear", coordinates="pytorch_half_pixel") == [
        0
    ]


def test_corners_of_a_length_that_is_cut_are_those_of_the_exact_length():
    """2.3 times 4 are 9 elements, of which the last one lies before the corner; a scale's rounding changes nothing."""
    row = cg.Const(ROW[None, None])
    cut = meant(cg.resize(row, (9,), "linear", "align_corners", scales=(2.3,)))[0, 0]
    assert_close(cut, np.float32(np.arange(9) * 30 / (9.2 - 1)))
    whole = meant(cg.resize(row, (9,), "linear", "align_corners"))
    for scale in (2.25, float(np.nextafter(np.float32(2.25), np.float32(3))), 0.1, 7.0):
        np.testing.assert_array_equal(meant(cg.resize(row, (9,), "linear", "align_corners", scales=(scale,))), whole)


@pytest.mark.parametrize("shape", [(4, 3, 5, 2), (2, 3, 4, 3), (2, 6, 2, 2)], ids=str)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_every_axis_of_a_volume_is_resized(mode, shape):
    x = np.random.default_rng(0).standard_normal((2, 3, 2, 3, 2, 2))
    want = x
    for axis, (n, m) in enumerate(zip(x.shape[2:], shape), 2):
        rows = Resize((m, 1), mode, "half_pixel", "floor", (m / n, 1.0)).matrix(0, n)
        want = np.moveaxis(np.tensordot(rows, want, (1, axis)), 0, axis)
    got = cg.resize(cg.Const(x), shape, mode, rounding="floor")
    assert_close(meant(got), want)
    resized = (shape[0] != 2) + (shape[1] != 3) + (shape[2:] != (2, 2))
    assert sum(isinstance(y.op, Resize) for y in nodes_of(got)) == resized


def nodes_of(node):
    """A node and all that it reads."""
    nodes = {node: None}
    for x in node.operands:
        nodes |= dict.fromkeys(nodes_of(x))
    return list(nodes)


def test_each_axis_has_its_length_and_its_scale():
    x = np.arange(6, dtype="f4").reshape(1, 1, 2, 3)
    got = meant(cg.resize(cg.Const(x), (4, 3), coordinates="asymmetric", rounding="floor"))[0, 0]
    assert got.tolist() == [[0, 1, 2], [0, 1, 2], [3, 4, 5], [3, 4, 5]]
    scaled = meant(cg.resize(cg.Const(x), (2, 3), coordinates="asymmetric", rounding="floor", scales=(2, 1)))[0, 0]
    assert scaled.tolist() == [[0, 1, 2], [0, 1, 2]]
    v = cg.Var((1, 1, 2, 3))
    assert cg.resize(v, (2, 3)) is v


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("shape", [(4, 9), (3, 5), (1, 2)], ids=str)
def test_a_gradient_adds_each_result_to_what_it_read(mode, shape):
    x = cg.Var((1, 2, 2, 3), "float64")
    weight = np.random.default_rng(1).normal(size=(1, 2, *shape))
    for options in ({}, {"coordinates": "asymmetric", "rounding": "floor"}):
        y = cg.resize(x, shape, mode, **options)
        (g,) = cg.gradient(cg.sum(y * weight), [x])
        f, df = cg.compile([y], [x]), cg.compile([g], [x])(np.ones(x.shape))[0]
        for at in np.ndindex(x.shape):
            one = np.zeros(x.shape)
            one[at] = 1
            assert_near(df[at], np.vdot(f(one)[0], weight), "float64 formulas near zero")


def test_rows_that_a_row_reads_end_before_the_stop():
    op = Resize((4, 3), "linear", "align_corners", "floor", (2.0, 1.0))
    low, stop = op.rows_read(2)
    assert list(low)[0] == 0 and list(stop)[-1] == 2 and all(1 <= b - a <= 2 for a, b in zip(low, stop))
    near = Resize((4, 3), "nearest", "asymmetric", "floor", (2.0, 1.0))
    assert [list(x) for x in near.rows_read(2)] == [[0, 0, 1, 1], [1, 1, 2, 2]]
    assert (
        near.matrix(0, 2).tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
        and near.matrix(1, 3).tolist() == np.eye(3).tolist()
    )
    assert near.repeats((2, 3)) and not near.repeats((3, 3)) and not op.repeats((2, 3))


def test_integers_stay_by_nearest_and_become_floats_by_linear():
    x = np.array([[[1, 4]]], "i4")
    assert cg.resize(x, (4,), rounding="floor").dtype == np.int32
    assert meant(cg.resize(x, (3,), "linear", "align_corners")).tolist() == [[[1, 2.5, 4]]]


def test_unknown_words_and_lengths_that_do_not_fit_are_refused():
    x = cg.Var((1, 1, 4, 4))
    for options in ({"mode": "cubic"}, {"coordinates": "corner"}, {"rounding": "up"}):
        with pytest.raises(ShapeError, match="is unknown; use nearest or linear"):
            cg.resize(x, (2, 2), **options)
    for shape in ((2,), (0, 2), (2, 2, 2)):
        with pytest.raises(ShapeError, match="pass a length >= 1 for each axis after two"):
            cg.resize(x, shape)
    with pytest.raises(DTypeError, match=r"use cg\.resize"):
        Resize((2, 2), "linear", "half_pixel", "floor", (1.0, 1.0)).infer(Spec((1, 1, 4, 4), np.dtype("i4")))


TAPS = (
    np.array([[0, 0, 1, 2], [0, 1, 2, 3], [4, 1, 3, 2], [2, 3, 4, 4]]),
    np.random.default_rng(1).uniform(-1, 1, (4, 4)),
)


@pytest.mark.parametrize(
    ("shape", "axis"), [((5,), 0), ((3, 5), 1), ((2, 5, 3), 1), ((2, 3, 5), 2), ((2, 2, 17, 5), 3), ((2, 5, 4, 2), 1)]
)
def test_weighted_rows_add_the_elements_of_an_axis(shape, axis):
    x, (index, weights) = np.random.default_rng(0).standard_normal(shape), TAPS
    want = (x.take(index, axis) * weights.reshape(4, 4, *[1] * (len(shape) - 1 - axis))).sum(axis + 1)
    image = cg.Var(shape, "float64")
    y = weighted_rows(image, axis, index, weights)
    assert_close(cg.compile(y, [image])(x), want)
    g = np.random.default_rng(2).standard_normal(want.shape)
    gradient = cg.compile(cg.gradient(cg.sum(y * g), image), [image])(x)
    assert_close(np.sum(gradient * x), np.sum(g * want), 10)


def test_rows_of_a_transposed_image_are_added_before_the_transpose():
    """A file of TensorFlow turns images around each resize."""
    x = np.random.default_rng(0).standard_normal((1, 5, 5, 17))
    image = cg.Var(x.shape, "float64")
    turned = cg.transpose(image, (0, 3, 1, 2))
    y = cg.transpose(weighted_rows(weighted_rows(turned, 2, *TAPS), 3, *TAPS), (0, 2, 3, 1))
    f = cg.compile(y, [image])
    assert [type(n.op) for n in f.compiled.layout.steps] == [WeightedRows] * 2
    rows = np.zeros((4, 5))
    np.add.at(rows, (np.arange(4)[:, None], TAPS[0]), TAPS[1])
    assert_close(f(x), np.einsum("ih,jw,nhwc->nijc", rows, rows, x), 10)


def test_images_repeat_pixels_by_whole_scales_that_are_the_ratios():
    def op(shape, scales, *how):
        return Resize(shape, *(how or ("nearest", "asymmetric", "floor")), scales)

    assert op((4, 9), (2.0, 3.0)).repeats((2, 3)) and op((2, 3), (1.0, 1.0)).repeats((2, 3))
    others = [
        op((4, 9), (2.5, 3.0)), op((4, 9), (2.0, 2.75)), op((5, 9), (2.5, 3.0)), op((4, 8), (2.0, 8 / 3)),
        op((4, 9), (2.0, 3.0), "linear", "asymmetric", "floor"),
        op((4, 9), (2.0, 3.0), "nearest", "asymmetric", "ceil"),
        op((4, 9), (2.0, 3.0), "nearest", "half_pixel", "floor"), op((1, 9), (0.5, 3.0)),
    ]  # fmt: skip
    assert not any(x.repeats((2, 3)) for x in others)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("scales", [None, (1.0, 1.0), (1.5, 1.0), (1.0, 0.6), (0.9, 1.25)], ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (2, 5), (4, 3)], ids=str)
def test_an_axis_that_keeps_its_length_is_resized_by_its_scale(shape, scales, dtype):
    x = np.arange(6).reshape(1, 1, 2, 3).astype(dtype)
    got = meant(cg.resize(cg.Const(x), shape, "nearest", "asymmetric", "floor", scales=scales))[0, 0]
    want = x[0, 0]
    for axis, count in enumerate(shape):
        n = want.shape[axis]
        scale = count / n if scales is None else scales[axis]
        want = want.take([min(int(i / scale), n - 1) for i in range(count)], axis)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == dtype


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("order", [(0, 3, 1, 2), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2)], ids=str)
@pytest.mark.parametrize("last", [15, 16, 17, 5])
def test_weighted_rows_of_any_transposed_value(order, axis, last):
    """The axis may come last before the transpose, or rows behind it may be short or just long enough."""
    index, weights = TAPS
    shape = [5, 5, 5, 5]
    shape[order[axis] - 1 if order[axis] else 3] = last
    shape[order[axis]] = 5
    x = np.random.default_rng(0).standard_normal(shape)
    image = cg.Var(x.shape, "float64")
    turned = x.transpose(order)
    want = (turned.take(index, axis) * weights.reshape(4, 4, *[1] * (3 - axis))).sum(axis + 1)
    y = weighted_rows(cg.transpose(image, order), axis, index, weights)
    assert_close(cg.compile(y, [image])(x), want, 10)
