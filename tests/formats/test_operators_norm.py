"""Normalisation and softmax: axes, epsilons, older opsets, statistics of a batch, further results."""

from itertools import product

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.norm import layer_norm
from cgraph.ops.leaf import Const
from tests.support.onnx_context import context, value_of
from tests.support.onnx_models import FLOAT, assert_equal_results, one
from tests.support.tolerance import assert_near

pytest.importorskip("onnxruntime")
rng = np.random.default_rng(0)


def numbers(*shape):
    return rng.standard_normal(shape).astype("f4")


X = numbers(2, 4, 3, 5)
SCALE, SHIFT, MEAN, VARIANCE = numbers(4), numbers(4), numbers(4), np.abs(numbers(4)) + 0.5
NEAR = {"near": "float32 small networks"}


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.5}], ids=str)
def test_images_with_the_statistics_of_others_and_their_own(options):
    assert_equal_results("BatchNormalization", [X, SCALE, SHIFT, MEAN, VARIANCE], **options, **NEAR)
    assert_equal_results("InstanceNormalization", [X, SCALE, SHIFT], **options, **NEAR)


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.5, "momentum": 0.25}], ids=str)
def test_in_training_the_batch_has_the_statistics_and_running_ones_follow(options):
    operands = [X, SCALE, SHIFT, MEAN, VARIANCE]
    assert_equal_results("BatchNormalization", operands, by="reference", results=3, training_mode=1, **options, **NEAR)


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.5}], ids=str)
def test_groups_have_scales_of_channels_and_once_had_their_own(options):
    assert_equal_results(
        "GroupNormalization", [X, SCALE, SHIFT], opset=21, by="reference", num_groups=2, **options, **NEAR
    )
    operands = [X, SCALE[:2], SHIFT[:2]]
    assert_equal_results("GroupNormalization", operands, opset=18, by="reference", num_groups=2, **options, **NEAR)


@pytest.mark.parametrize("axis", [-1, 1, -2, 3])
@pytest.mark.parametrize("shifted", [False, True])
def test_last_axes_with_mean_and_deviation(axis, shifted):
    shape = X.shape[axis:]
    operands = [X, numbers(*shape), *([numbers(*shape)] if shifted else [])]
    assert_equal_results("LayerNormalization", operands, axis=axis, **NEAR)
    assert_equal_results("LayerNormalization", operands, results=3, axis=axis, epsilon=0.5, **NEAR)


def test_the_last_axis_is_normalised_unless_told():
    assert_equal_results("LayerNormalization", [X, numbers(5), numbers(5)], **NEAR)


@pytest.mark.parametrize("shape", [(2, 4, 3, 5), (2, 1, 3, 1), (1, 1, 5), (3, 1), (1,), (4, 1, 1)], ids=str)
@pytest.mark.parametrize("axis", [-1, 2])
def test_scales_and_shifts_broadcast_to_the_operand(axis, shape):
    """torch writes a scale of ones with the operand's shape for a norm without parameters."""
    for by in ({}, {"by": "reference"}) if axis == -1 else ({},):
        options = {"axis": axis, **NEAR, **by}
        assert_equal_results("LayerNormalization", [X, numbers(*shape), numbers(*shape)], opset=17, **options)
        assert_equal_results("LayerNormalization", [X, numbers(*shape)], opset=17, **options)
        assert_equal_results("LayerNormalization", [X, numbers(5), numbers(*shape)], opset=17, **options)
    assert_equal_results("RMSNormalization", [X, numbers(*shape)], opset=23, axis=axis, **NEAR)


def test_scales_that_do_not_broadcast_are_refused():
    for kind in ("LayerNormalization", "RMSNormalization"):
        for shape in ((4,), (3, 4, 3, 5)):
            with pytest.raises(FormatError, match="does not broadcast"):
                load(one(kind, [("x", FLOAT, (2, 4, 3, 5)), ("s", FLOAT, shape)], opset=23))


@pytest.mark.parametrize("axis", [-1, 2])
def test_mean_squares(axis):
    scale = numbers(*X.shape[axis:])
    options = {"opset": 23, "by": "reference", "axis": axis}
    assert_equal_results("RMSNormalization", [X, scale], **options, **NEAR)
    assert_equal_results("RMSNormalization", [X, scale], epsilon=0.5, **options, **NEAR)


def test_means_and_variances_of_all_but_channels_unless_told():
    assert_equal_results("MeanVarianceNormalization", [X], **NEAR)
    assert_equal_results("MeanVarianceNormalization", [X], axes=[1, 3], **NEAR)


@pytest.mark.parametrize("options", [{"size": 3}, {"size": 5, "alpha": 0.5, "beta": 0.25, "bias": 2.0}], ids=str)
def test_neighbours(options):
    assert_equal_results("LRN", [X], **options, **NEAR)


def test_an_even_number_of_neighbours_has_more_behind():
    (got,) = load(one("LRN", [("x", FLOAT, X.shape)], size=2, alpha=0.5)).compile(engine="reference")(X)
    squares = np.pad(X * X, ((0, 0), (0, 1), (0, 0), (0, 0)))
    assert_near(got, X / (1 + 0.25 * (squares[:, :-1] + squares[:, 1:])) ** 0.75, "float32 formulas")


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [-1, 1])
def test_lengths_of_one_and_zero_for_nothing(p, axis):
    x = X.copy()
    x[0, :, 0, 0] = x[0, 0, 0] = 0
    got = assert_equal_results("LpNormalization", [x], p=p, axis=axis, **NEAR)[0]
    assert not got[0, 0, 0].any() if axis == -1 else not got[0, :, 0, 0].any()


def test_a_length_of_another_power_is_refused():
    with pytest.raises(FormatError, match="p=3 is not supported. Use 1 or 2"):
        load(one("LpNormalization", [("x", FLOAT, (2, 3))], p=3))


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -3])
@pytest.mark.parametrize("opset", [11, 13])
def test_shares_along_an_axis_and_once_along_all_from_it_on(kind, axis, opset):
    assert_equal_results(kind, [X], opset=opset, **({} if axis is None else {"axis": axis}), **NEAR)


def test_the_first_of_equal_ones_is_the_largest():
    got = assert_equal_results("Hardmax", [np.array([[1, 3, 3], [2, 2, 2]], "f4")])[0]
    assert got.tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("axis", [-1, 2])
def test_mean_squares_by_the_name_that_onnxruntime_writes(axis):
    scale = numbers(*X.shape[axis:])
    assert_equal_results("SimplifiedLayerNormalization", [X, scale], opset=17, axis=axis, epsilon=0.5, **NEAR)


@pytest.mark.parametrize("results", [(True, *others) for others in product((True, False), repeat=2)])
def test_each_statistic_may_be_read_alone(results):
    """A result that nobody reads has no name."""
    x = np.arange(24, dtype="f4").reshape(2, 3, 4) ** 1.5
    scale, shift = np.arange(1, 5, dtype="f4"), np.ones(4, "f4")
    c = context(Const(x), Const(scale), Const(shift), read_results=results)
    got = layer_norm(c)
    if results == (True, False, False):
        assert not isinstance(got, tuple)
        return
    mean, variance = x.astype("f8").mean(-1, keepdims=True), x.astype("f8").var(-1, keepdims=True)
    deviation = 1 / np.sqrt(variance + 1e-5)
    for value, want in zip(got, ((x - mean) * deviation * scale + shift, mean, deviation), strict=True):
        assert_near(value_of(value, {}), want, "float32 products")


@pytest.mark.parametrize("opset", [12, 13])
@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -2])
def test_axes_of_the_versions_before_and_from_13_on(opset, kind, axis):
    x = np.random.default_rng(3).standard_normal((2, 3, 4)).astype("f4")
    first = (1 if opset < 13 else -1) if axis is None else axis
    flat = x.reshape(int(np.prod(x.shape[: first % 3])), -1) if opset < 13 else np.moveaxis(x, first, -1)
    powers = np.exp(flat - flat.max(-1, keepdims=True))
    share = powers / powers.sum(-1, keepdims=True)
    places = flat.argmax(-1)[..., None] == np.arange(flat.shape[-1])
    want = {"Softmax": share, "LogSoftmax": np.log(share), "Hardmax": places.astype("f4")}[kind]
    want = want.reshape(x.shape) if opset < 13 else np.moveaxis(want, -1, first)
    raw = one(kind, [("x", FLOAT, x.shape)], opset=opset, **({} if axis is None else {"axis": axis}))
    assert_near(load(raw).compile(engine="reference")(x)[0], want, "float32 formulas near zero")
