"""Windows of convolutions and pools: strides, paddings and dilations differ by axis; SAME of odd sums; indices."""

import numpy as np
import pytest
from onnx import helper

from cgraph.errors import FormatError
from cgraph.formats.onnx.operators.conv import (
    add_bias,
    conv_geometry,
    pool_geometry,
    same_pads,
    spatial,
    window_index,
    within,
)
from cgraph.ops.leaf import Const
from tests.support.onnx_context import context, value_of
from tests.support.onnx_models import assert_equal_results

pytest.importorskip("onnxruntime")
rng = np.random.default_rng(0)
X = rng.standard_normal((2, 4, 9, 7)).astype("f4")
UNEVEN = {"strides": [2, 1], "dilations": [1, 2], "pads": [0, 2, 1, 1]}


def node(x, **attributes):
    return context(Const(x), attributes=[helper.make_attribute(name, v) for name, v in attributes.items()])


def test_same_padding_puts_the_odd_zero_at_an_end():
    assert same_pads("SAME_UPPER", [5, 6], [2, 3], [1, 2], [1, 1]) == [0, 0, 1, 1]
    assert same_pads("SAME_LOWER", [5, 6], [2, 3], [1, 2], [1, 1]) == [1, 1, 0, 0]
    assert same_pads("SAME_UPPER", [5, 7], [3, 4], [1, 3], [2, 1]) == [2, 1, 2, 2]
    assert same_pads("SAME_UPPER", [5], [1], [3], [1]) == [0, 0]


def test_geometry_has_defaults_and_valid_ignores_padding():
    x = Const(X)
    assert conv_geometry(node(X), x, (3, 2)) == ([1, 1], [0] * 4, [1, 1])
    assert conv_geometry(node(X, **UNEVEN), x, (3, 2)) == ([2, 1], [0, 2, 1, 1], [1, 2])
    assert conv_geometry(node(X, auto_pad="VALID", **UNEVEN), x, (3, 2)) == ([2, 1], [0] * 4, [1, 2])
    same = conv_geometry(node(X, auto_pad="SAME_UPPER", strides=[2, 1], dilations=[1, 2]), x, (4, 2))
    assert same == ([2, 1], [1, 1, 2, 1], [1, 2])
    assert pool_geometry(node(X, kernel_shape=[3, 2], ceil_mode=1), x) == ([3, 2], [1, 1], [0] * 4, [1, 1], True)
    with pytest.raises(FormatError, match="kernel_shape"):
        pool_geometry(node(X), x)


@pytest.mark.parametrize("rank", [2, 6])
def test_images_have_one_to_three_axes(rank):
    with pytest.raises(FormatError, match=f"{rank - 2} axes besides batch and channels are not supported. Use 1 to 3"):
        spatial("conv", Const(np.zeros((1,) * rank)))


def test_negative_padding_cuts_each_end():
    pad, x = within([-1, 2, 0, -3], Const(X))
    assert pad == [0, 2, 0, 0]
    np.testing.assert_array_equal(value_of(x, {}), X[:, :, 1:, :-3])
    whole = Const(X)
    assert within([0, 1, 2, 3], whole) == ([0, 1, 2, 3], whole)


def test_a_bias_is_of_the_channel():
    x = Const(np.zeros((1, 2, 2), "f4"))
    assert add_bias(x, None) is x
    assert value_of(add_bias(x, Const(np.array([1, 2], "f4"))), {}).tolist() == [[[1, 1], [2, 2]]]


def test_elements_of_windows_by_their_place():
    got = window_index([3, 4], [2, 2], [2, 2], [2, 3], [1, 0], [1, 2])
    assert got.tolist() == [[[-1, -1, 0, 2], [-1, -1, 3, -1]], [[4, 6, 8, 10], [7, -1, 11, -1]]]


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("options", [UNEVEN, {"auto_pad": "SAME_LOWER", "strides": [2, 3]}, {"auto_pad": "VALID"}])
def test_convolutions_with_and_without_a_bias(group, options):
    f, bias = rng.standard_normal((6, 4 // group, 3, 2)).astype("f4"), rng.standard_normal(6).astype("f4")
    assert_equal_results("Conv", [X, f, bias], group=group, **options)
    assert_equal_results("Conv", [X, f], group=group, **options)


TRANSPOSED = [
    {"strides": [2, 3], "dilations": [1, 2], "pads": [1, 0, 0, 2], "output_padding": [1, 2]},
    {"strides": [2, 3], "output_shape": [18, 22]},
    {"strides": [2, 3], "output_shape": [18, 19], "auto_pad": "SAME_UPPER"},
    {"strides": [3, 2], "auto_pad": "SAME_UPPER"},
    {"strides": [1, 1], "auto_pad": "SAME_LOWER"},
    {},
]


@pytest.mark.parametrize("options", TRANSPOSED)
def test_transposed_convolutions_by_padding_or_size(options):
    f, bias = rng.standard_normal((4, 3, 4, 3)).astype("f4"), rng.standard_normal(3).astype("f4")
    assert_equal_results("ConvTranspose", [X, f, bias], **options)


@pytest.mark.parametrize("storage_order", [0, 1])
def test_the_largest_and_their_places(storage_order):
    options = {"kernel_shape": [3, 2], "storage_order": storage_order, **UNEVEN, "pads": [0, 1, 1, 1]}
    assert_equal_results("MaxPool", [X - 5], results=2, **options)
    assert_equal_results("MaxPool", [X - 5], results=2, ceil_mode=1, **options)
    assert_equal_results("MaxPool", [(X * 20).astype("i1")], results=2, **options)
    falling = -np.arange(X.size, dtype="f4").reshape(X.shape)  # the first pixel of a window is its largest
    for x in (falling, -falling):
        assert_equal_results("MaxPool", [x], results=2, **options)


@pytest.mark.parametrize("count_include_pad", [0, 1])
@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("dilations", [[1, 1], [1, 2]])
def test_averages_count_the_padding_or_not(count_include_pad, ceil_mode, dilations):
    options = {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1], "dilations": dilations}
    options |= {"count_include_pad": count_include_pad, "ceil_mode": ceil_mode}
    assert_equal_results("AveragePool", [X], **options)


def test_norms_of_windows_and_of_all():
    for p in (1, 2, 3):
        assert_equal_results("LpPool", [X], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 0, 1], p=p)
        assert_equal_results("GlobalLpPool", [X], p=p)
    assert_equal_results("LpPool", [X], kernel_shape=[3, 2])
    for kind in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        assert_equal_results(kind, [X])
