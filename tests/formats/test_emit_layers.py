"""Emitted ONNX layers as onnxruntime computes them: other numbers on every axis, patterns, what resembles them."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.onnx import serialised
from cgraph.formats.onnx.emit_layers import constant_number, sizes_or_scales
from cgraph.ops.leaf import Const, Var
from cgraph.ops.resize import weighted_rows
from tests.support.onnx_models import written_nodes, written_result
from tests.support.tolerance import assert_near

rng = np.random.default_rng(0)


def numbers(*shape):
    return rng.standard_normal(shape).astype("f4")


X, Z, R = Var((2, 4, 9, 8), name="x"), Var((2, 4, 9), name="z"), Var((2, 4, 5, 6, 7), name="r")
F, G = numbers(6, 2, 3, 2), numbers(4, 3, 2, 3)
STATISTICS = [numbers(4), numbers(4), numbers(4), np.abs(numbers(4)) + 0.5]
LAYERS = {
    "convolution": (cg.conv2d(X, F, (2, 1), (1, 0, 2, 3), (1, 2), 2), X, "Conv"),
    "convolution of a row": (cg.conv1d(Z, numbers(3, 4, 3), 2, (0, 3), 2), Z, "Conv"),
    "convolution of a room": (cg.conv3d(R, numbers(3, 4, 1, 2, 3), (1, 2, 3), (0, 1, 0, 2, 0, 1)), R, "Conv"),
    "largest": (cg.max_pool2d(X, (3, 2), stride=(2, 3), pad=(1, 0, 0, 1)), X, "MaxPool"),
    "mean with padding": (cg.avg_pool2d(X, (3, 2), (2, 3), (1, 0, 0, 1), count_pad=True), X, "AveragePool"),
    "mean without": (cg.avg_pool2d(X, (3, 2), (2, 3), (1, 0, 0, 1), count_pad=False), X, "AveragePool"),
    "mean up to the end": (cg.avg_pool2d(X, 2, (2, 3), ceil=True), X, "AveragePool"),
    "statistics": (cg.batch_norm(X, *STATISTICS, 0.25), X, "BatchNormalization"),
    "last axes": (cg.layer_norm(X, numbers(9, 8), numbers(9, 8), eps=0.5), X, "LayerNormalization"),
    "last axis": (cg.layer_norm(X, numbers(8), numbers(8), eps=0.5), X, "LayerNormalization"),
    "groups": (cg.group_norm(X, numbers(4), numbers(4), 2, eps=0.5), X, "InstanceNormalization"),
    "groups of a row": (cg.group_norm(Z, numbers(4), numbers(4), 2, eps=0.5), Z, "InstanceNormalization"),
    "channels": (cg.group_norm(X, numbers(4), numbers(4), 4, eps=0.5), X, "InstanceNormalization"),
    "neighbours": (cg.lrn(X, 3, 0.1, 0.5, 2.0), X, "LRN"),
    "softmax": (cg.softmax(X, axis=1), X, "Softmax"),
    "log softmax": (cg.log_softmax(X, axis=2), X, "LogSoftmax"),
    "twice as high": (cg.resize(X, (18, 4), "linear"), X, "Resize"),
    "nearest": (cg.resize(X, (5, 11)), X, "Resize"),
    "weighted rows": (weighted_rows(Z, 1, np.array([[0, 2], [1, 1], [3, 2]]), numbers(3, 2)), Z, "MatMul"),
    "gelu": (cg.gelu(X), X, "Identity"),
}


def meaning(output, inputs, *values):
    return cg.compile(output, inputs, engine="reference")(*values)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_one_operator_of_onnx_with_the_same_result(name):
    output, x, kind = LAYERS[name]
    value = rng.standard_normal(x.shape).astype("f4")
    got, want = written_result(output, [x], value), meaning(output, [x], value)
    assert got.shape == want.shape and got.dtype == want.dtype
    assert_near(got, want, "float32 small networks")
    assert kind in written_nodes(output, [x]) or kind == "Identity"


@pytest.mark.parametrize(
    "options",
    [
        {"stride": (2, 3), "pad": (1, 0, 0, 1), "output_pad": (1, 2)},
        {"stride": (3, 1), "pad": (0, 1, 2, 0), "dilation": (1, 2)},
        {"stride": (2, 2), "groups": 2, "output_pad": (0, 1)},
    ],
    ids=str,
)
def test_a_transposed_convolution_has_the_padding_of_each_axis(options):
    x, value = Var((2, 4, 5, 6), name="x"), numbers(2, 4, 5, 6)
    output = cg.conv_transpose2d(x, G, **options)
    got, want = written_result(output, [x], value), meaning(output, [x], value)
    assert got.shape == want.shape
    assert_near(got, want, "float32 small networks")


@pytest.mark.parametrize(
    "shapes",
    [((5, 3, 4), (4, 2)), ((3, 4), (5, 4, 2)), ((1, 3, 4), (5, 4, 2)), ((4,), (5, 4, 2)), ((5, 3, 4), (5, 4, 2))],
)
def test_products_broadcast_as_in_onnx(shapes):
    a, b = (Var(shape, name=name) for shape, name in zip(shapes, "ab"))
    u, v = (numbers(*shape) for shape in shapes)
    assert_near(written_result(a @ b, [a, b], u, v), u @ v, "float32 products")


def test_attention_is_written_out():
    q, k = Var((2, 3, 5, 4), name="q"), Var((2, 3, 6, 4), name="k")
    u, v = numbers(2, 3, 5, 4), numbers(2, 3, 6, 4)
    output = cg.scaled_dot_product_attention(q, k, k * 2)
    assert_near(written_result(output, [q, k], u, v), meaning(output, [q, k], u, v), "float32 small networks")


V = Var((2, 3, 4), name="v")
W = Var((2, 3, 4), name="w")
D = Var((2, 3, 4), "float64", "d")
PATTERNS = {
    "leaky": (cg.where(V > 0, V, V * 0.25), [V], "LeakyRelu"),
    "leaky from 0": (cg.where(V >= 0, V, V * 0.25), [V], "LeakyRelu"),
    "clip": (cg.minimum(cg.maximum(V, -0.5), 0.25), [V], "Clip"),
    "mean": (cg.mean(V, axis=(0, 2)), [V], "ReduceMean"),
    "mean with axes": (cg.mean(V, axis=(0, 2), keepdims=True), [V], "ReduceMean"),
    "mean of the rest": (cg.mean(V, axis=(2,), keepdims=True), [V], "GlobalAveragePool"),
}
RESEMBLING = {
    "another condition": (cg.where(W > 0, V, V * 0.25), [V, W], "LeakyRelu"),
    "another bound": (cg.where(V > 0.5, V, V * 0.25), [V], "LeakyRelu"),
    "the other way round": (cg.where(V < 0, V, V * 0.25), [V], "LeakyRelu"),
    "another value": (cg.where(V > 0, W, V * 0.25), [V, W], "LeakyRelu"),
    "another scaled": (cg.where(V > 0, V, W * 0.25), [V, W], "LeakyRelu"),
    "a slope of each": (cg.where(V > 0, V, V * np.arange(4, dtype="f4")), [V], "LeakyRelu"),
    "a slope that float32 cannot hold": (cg.where(D > 0, D, D * 0.2), [D], "LeakyRelu"),
    "a bound of each": (cg.minimum(cg.maximum(V, np.arange(4, dtype="f4")), 9), [V], "Clip"),
    "a bound that is an input": (cg.minimum(cg.maximum(V, 0.5), W), [V, W], "Clip"),
    "another count": (cg.sum(V, axis=(0, 2)) / np.float32(9), [V], "ReduceMean"),
    "another sum": (cg.sum(V, axis=1) / np.float32(8), [V], "ReduceMean"),
    "a sum in another shape": (cg.reshape(cg.sum(V, axis=(0, 2)), (3, 1, 1)) / np.float32(8), [V], "ReduceMean"),
    "a sum in a flat shape": (cg.reshape(cg.sum(V, axis=2), (6,)) / np.float32(4), [V], "ReduceMean"),
    "some of the last axes": (cg.mean(V, axis=(1,), keepdims=True), [V], "GlobalAveragePool"),
    "all axes": (cg.mean(V, keepdims=True), [V], "GlobalAveragePool"),
    "the last axes without keepdims": (cg.mean(V, axis=(2,)), [V], "GlobalAveragePool"),
    "a maximum": (cg.max(V, axis=1) / np.float32(3), [V], "ReduceMean"),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_one_operator(name):
    output, inputs, kind = PATTERNS[name]
    values = [numbers(2, 3, 4) for _ in inputs]
    assert list(written_nodes(output, inputs)) == [kind]
    assert_near(written_result(output, inputs, *values), meaning(output, inputs, *values), "float32 formulas near zero")


@pytest.mark.parametrize("name", RESEMBLING)
def test_what_only_resembles_a_pattern_is_written_as_it_is(name):
    output, inputs, kind = RESEMBLING[name]
    values = [numbers(2, 3, 4).astype(x.dtype) for x in inputs]
    assert kind not in written_nodes(output, inputs)
    got, want = written_result(output, inputs, *values), meaning(output, inputs, *values)
    assert_near(got, want, f"{want.dtype} formulas near zero")


def test_a_bias_of_channels_goes_into_its_convolution_and_no_other_does():
    biases = {(6, 1, 1): True, (1, 6, 1, 1): True, (1,): False, (8,): False, (2, 1, 1, 1): False}
    for shape, is_inside in biases.items():
        bias = numbers(*shape)
        for output in (cg.conv2d(X, numbers(6, 4, 2, 1)) + bias, bias + cg.conv2d(X, numbers(6, 4, 2, 1))):
            value = numbers(*X.shape)
            assert ("Add" not in written_nodes(output, [X])) is is_inside, shape
            assert_near(written_result(output, [X], value), meaning(output, [X], value), "float32 small networks")


def test_a_bias_of_another_axis_of_the_same_length_does_not_go_into_a_convolution():
    """Eight channels of eight columns: the bias of a column is as long as that of a channel."""
    column, rows = cg.Const(numbers(8)), cg.Const(numbers(2, 4))
    shapes = {
        "columns": (column, False), "rows": (cg.reshape(column, (8, 1)), False),
        "channels": (cg.reshape(column, (8, 1, 1)), True), "of a table": (cg.reshape(rows, (8, 1, 1)), True),
    }  # fmt: skip
    image = Var((1, 4, 9, 8), name="x")
    value = numbers(*image.shape)
    for bias, is_inside in shapes.values():
        for output in (cg.conv2d(image, numbers(8, 4, 2, 1)) + bias, bias + cg.conv2d(image, numbers(8, 4, 2, 1))):
            assert output.shape == (1, 8, 8, 8)
            assert ("Add" not in written_nodes(output, [image])) is is_inside
            got, want = written_result(output, [image], value), meaning(output, [image], value)
            assert_near(got, want, "float32 small networks")
    bent = cg.conv_transpose2d(image, numbers(4, 8, 2, 1)) + cg.reshape(column, (8, 1, 1))
    assert "ConvTranspose" in written_nodes(bent, [image])
    assert_near(written_result(bent, [image], value), meaning(bent, [image], value), "float32 small networks")


BOXES = np.array([[1, 2, 9.5, 7], [0, 0, 3, 11], [4, 1, 12, 6], [2, 3, 2.2, 3.4]], "f4")


@pytest.mark.parametrize("grid", ["cells", "aligned"])
@pytest.mark.parametrize(("samples", "scale", "shape"), [(1, 0.5, (2, 3)), (3, 1.0, (3, 1)), (2, 0.25, (1, 4))])
def test_regions_of_one_size_are_one_operator(grid, samples, scale, shape):
    x, boxes, batch = Var((2, 3, 6, 7), name="x"), Var((4, 4), name="b"), np.array([1, 0, 1, 0])
    output = cg.roi_align_levels([x], boxes, batch, np.zeros(4, np.int64), shape, [scale], samples, grid)
    values = numbers(2, 3, 6, 7), BOXES
    attributes = written_nodes(output, [x, boxes])["RoiAlign"]
    assert attributes["coordinate_transformation_mode"] == (
        b"half_pixel" if grid == "aligned" else b"output_half_pixel"
    )
    assert_near(
        written_result(output, [x, boxes], *values), meaning(output, [x, boxes], *values), "float32 small networks"
    )


def test_regions_of_several_sizes_or_by_corners_are_refused():
    x, small, boxes = Var((2, 3, 6, 7), name="x"), Var((2, 3, 3, 4), name="s"), Var((4, 4), name="b")
    batch = np.array([1, 0, 1, 0])
    two = cg.roi_align_levels([x, small], boxes, batch, np.array([0, 1, 1, 0]), (2, 3), [0.5, 0.25], 2, "cells")
    with pytest.raises(FormatError, match="reads images of one size by cells, this op 2 sizes by cells"):
        serialised(two, [x, small, boxes])
    corners = cg.roi_align_levels([x], boxes, batch, np.zeros(4, np.int64), (2, 3), [0.5], 1, "corners")
    with pytest.raises(
        FormatError, match="this op 1 sizes by corners. Use roi_align with one image size and grid='cel"
    ):
        serialised(corners, [x, boxes])


def test_the_number_of_a_constant_is_that_of_all_its_elements():
    assert constant_number(Const(np.float32(2.5))) == 2.5
    assert constant_number(cg.broadcast_to(Const(np.array([[3]])), (4, 4))) == 3
    assert constant_number(Const(np.zeros(2))) is None and constant_number(V) is None
    assert constant_number(cg.broadcast_to(Var((1,)), (4,))) is None


def test_sizes_are_written_where_scales_are_their_ratios():
    """For any lengths, also where a length times its ratio is not the other one in floating point."""
    for n in range(1, 60):
        for m in (1, 2, 7, n, n + 1, 2 * n - 1, 49):
            absent, sizes = sizes_or_scales(cg.resize(Var((1, 1, n, 3)), (m, 5)))
            assert absent is None and sizes.tolist() == [1, 1, m, 5]
    (scales,) = sizes_or_scales(cg.resize(Var((1, 1, 9, 8)), (5, 8), scales=(0.6, 1.0)))
    np.testing.assert_array_equal(scales, np.array([1, 1, 0.6, 1], "f4"))
