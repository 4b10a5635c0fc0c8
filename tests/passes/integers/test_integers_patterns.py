"""Patterns of quantised values: scales, bounds as bytes, products with biases, and each reason why one is none."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ops.linear import Matmul
from cgraph.passes.integers.patterns import (
    MOST_STEPS,
    Scale,
    bias_of,
    bound,
    bounds_of,
    byte_of,
    constant,
    dequantized_bytes,
    filters_of,
    mean_of,
    pair_of,
    product_of,
    scale_of,
    single,
    vector_of,
)

F4 = np.float32
IMAGE, SIGNED = cg.Var((1, 3, 6, 6), "uint8", "image"), cg.Var((1, 3, 6, 6), "int8", "signed")
BYTES, OTHER = cg.Var((2, 5), "uint8", "bytes"), cg.Var((5, 4), "int8", "other")
RNG = np.random.default_rng(0)


def floats(x, scale=0.5, zero=7):
    return cg.dequantize(x, F4(scale), np.asarray(zero, x.dtype))


def yes(node):
    return True


def no(node):
    return False


def test_a_constant_is_seen_through_a_few_steps():
    value = np.arange(6, dtype="f4")
    x = cg.transpose(cg.reshape(cg.Const(value), (2, 3))).astype("float64") * 2 - 1
    np.testing.assert_array_equal(constant(x), value.reshape(2, 3).T * 2.0 - 1)
    assert constant(cg.Var((2,))) is None and constant(cg.exp(cg.Const(value))) is None
    far = cg.Const(value)
    for i in range(MOST_STEPS):
        far = far * cg.Const(F4(i + 2))
    assert constant(far) is None
    assert single(cg.broadcast_to(cg.Const(F4(2.5)), (3, 4))) == 2.5 and single(cg.Const([1, 2])) is None
    assert single(cg.Var(())) is None


def test_the_scale_of_signed_bytes_has_its_zero_moved():
    assert scale_of(floats(IMAGE)) == Scale(0.5, 7) and scale_of(floats(SIGNED, 0.5, -3)) == Scale(0.5, 125)
    quantised = cg.quantize(cg.Var((2,)), F4(0.25), np.uint8(9), "uint8")
    assert scale_of(quantised) == Scale(0.25, 9)
    assert dequantized_bytes(floats(IMAGE)).node is IMAGE and dequantized_bytes(quantised) is None
    several = cg.dequantize(IMAGE, np.array([1.0, 2, 3], "f4").reshape(3, 1, 1))
    wide = cg.dequantize(cg.Var((2,), "int32"), F4(0.5))
    unknown = cg.dequantize(IMAGE, cg.Var((), "float32"), np.uint8(7))
    for node in (several, wide, unknown, floats(IMAGE, -0.5), floats(IMAGE, np.inf), floats(IMAGE, 0.0)):
        assert scale_of(node) is None


@pytest.mark.parametrize("x, byte", [(0, 7), (0.25, 7), (0.75, 9), (-0.75, 5), (-99, 0), (1e9, 255), (-np.inf, 0),
                                     (np.inf, 255), (124, 255), (-3.5, 0)])  # fmt: skip
def test_the_byte_of_a_float_rounds_halves_to_even(x, byte):
    assert byte_of(x, Scale(0.5, 7)) == byte


def test_bounds_before_a_quantize_become_bytes_where_nobody_else_reads_them():
    x, scale = cg.Var((4,)), Scale(0.5, 10)

    def quantised(y):
        return cg.quantize(y, F4(0.5), np.uint8(10), "uint8")

    assert bounds_of(quantised(cg.relu(x)), scale, yes) == (x, (10, 255))
    assert bounds_of(quantised(cg.clip(x, -1.0, 3.0)), scale, yes) == (x, (8, 16))
    assert bounds_of(quantised(cg.minimum(4.0, cg.relu(x))), scale, yes) == (x, (10, 18))
    relu = cg.relu(x)
    assert bounds_of(quantised(relu), scale, no) == (relu, (0, 255))
    apart = cg.minimum(cg.maximum(x, 5.0), 2.0)  # the last bound wins
    assert bounds_of(quantised(apart), scale, yes) == (x, (14, 14))
    apart = cg.maximum(cg.minimum(x, 2.0), 5.0)
    assert bounds_of(quantised(apart), scale, yes) == (x, (20, 20))


def test_bounds_of_a_node():
    x, y = cg.Var((2,)), cg.Var((2,))
    assert bound(cg.relu(x)) == (x, 0, np.inf) and bound(cg.maximum(3.0, x)) == (x, 3, np.inf)
    assert bound(cg.minimum(x, 3.0)) == (x, -np.inf, 3)
    assert bound(cg.maximum(x, y)) is bound(cg.exp(x)) is bound(cg.maximum(x, float("nan"))) is None


def weights(k=4, c=3, dtype="int8", zero=0, scale=None):
    low = np.iinfo(dtype).min
    values = RNG.integers(low, low + 256, (k, c, 3, 3)).astype(dtype)
    scale = np.linspace(0.25, 1, k).astype("f4") if scale is None else scale
    return cg.dequantize(values, np.reshape(scale, (-1, 1, 1, 1)), np.asarray(zero, dtype)), values


def test_filters_have_a_scale_for_each_channel_and_no_zero_point():
    node, values = weights()
    got, scale = filters_of(node, 0)
    np.testing.assert_array_equal(got, values)
    assert scale.tolist() == [0.25, 0.5, 0.75, 1]
    node, values = weights(dtype="uint8", zero=128)
    np.testing.assert_array_equal(filters_of(node, 0)[0], values.astype(int) - 128)
    assert filters_of(weights(zero=1)[0], 0) is filters_of(weights(dtype="uint8")[0], 0) is None
    assert filters_of(weights()[0], 1) is None  # scales along another axis
    for values in (np.ones((4, 3, 3, 3), "int32"), np.ones((4, 3, 3), "int8"), np.ones((4,), "int8")):
        scale = np.ones((4, *[1] * (values.ndim - 1)), "f4")
        assert filters_of(cg.dequantize(values, scale), 0) is None
    assert filters_of(cg.Var((4, 3, 3, 3)), 0) is None and filters_of(cg.exp(node), 0) is None


def test_filters_behind_a_transpose_are_turned_with_their_scales():
    values, scale = RNG.integers(-9, 9, (4, 5), "int8"), np.array([1, 2, 3, 4], "f4")
    node = cg.transpose(cg.dequantize(values, scale[:, None]))
    got, found = filters_of(node, 1)
    np.testing.assert_array_equal(got, values.T)
    assert found.tolist() == [1, 2, 3, 4] and got.flags.c_contiguous and filters_of(node, 0) is None


def test_a_vector_lies_along_one_axis():
    x = cg.Const(np.array([[1.0], [2]], "f4"))
    assert vector_of(x, 0).tolist() == [1, 2] and vector_of(x, 1) is None
    assert vector_of(cg.broadcast_to(cg.Const(np.array([3.0, 4], "f4")), (5, 2)), 1).tolist() == [3, 4]
    assert vector_of(cg.Const([1.0, 2.0]), 0) is None  # float64


def test_a_bias_is_one_integer_for_each_channel_in_the_unit_of_the_sums():
    factor = np.array([0.25, 0.5], "f4")

    def bias(values=(3, -4), scale=factor, dtype="int32", zero=0, shape=(2, 1, 1)):
        y = cg.dequantize(np.array(values, dtype), scale, np.asarray(zero, dtype))
        return cg.broadcast_to(cg.reshape(y, shape), (1, 2, 5, 5))

    assert bias_of(bias(), factor, 2).tolist() == [3, -4]
    for other in (bias(scale=np.array([0.25, 0.25], "f4")), bias(dtype="int8"), bias(zero=1),
                  cg.broadcast_to(cg.Const(factor), (1, 2, 5, 2)), cg.Var((1, 2, 5, 5))):  # fmt: skip
        assert bias_of(other, factor, 2) is None
    assert bias_of(bias(), factor, 1) is None and bias_of(bias(), factor[:1], 2) is None
    wide = cg.broadcast_to(cg.dequantize(np.array([3, -4], "i4"), factor), (1, 2, 5, 2))
    assert bias_of(wide, factor, 2) is None  # along the last axis


def test_a_convolution_of_bytes_perhaps_with_a_bias():
    f, values = weights()
    conv = cg.conv2d(floats(IMAGE), f, 1, 1)
    product = product_of(conv, no)
    assert product.x.node is IMAGE and product.x.scale == Scale(0.5, 7) and product.bias.tolist() == [0] * 4
    np.testing.assert_array_equal(product.filters, values)
    assert product.factor.tolist() == [0.125, 0.25, 0.375, 0.5] and product.op is conv.op
    bias = cg.reshape(cg.dequantize(np.array([1, 2, 3, 4], "i4"), product.factor), (4, 1, 1))
    for total in (conv + bias, bias + conv):
        assert product_of(total, yes).bias.tolist() == [1, 2, 3, 4]
        assert product_of(total, no) is None  # another node reads the convolution
    assert product_of(cg.conv2d(floats(IMAGE), weights(scale=np.array([1, 0, 1, 1], "f4"))[0]), no) is None
    assert product_of(cg.conv2d(cg.Var(IMAGE.shape), f), no) is None and product_of(cg.exp(conv), yes) is None
    assert product_of(conv + cg.Var(conv.shape), yes) is None


def test_a_product_of_matrices_has_its_scales_along_columns():
    values, scale = RNG.integers(-9, 9, (5, 4), "int8"), np.array([1, 2, 3, 4], "f4")
    product = product_of(floats(BYTES) @ cg.dequantize(values, scale), no)
    np.testing.assert_array_equal(product.filters, values)
    assert product.factor.tolist() == [0.5, 1, 1.5, 2] and isinstance(product.op, Matmul)
    rows = np.arange(1, 6, dtype="f4")[:, None]
    assert product_of(floats(BYTES) @ cg.dequantize(values, rows), no) is None


def test_a_product_of_two_values_has_one_scale_of_each():
    pair = pair_of(floats(BYTES) @ floats(OTHER, 0.25, -2))
    assert (pair.x.node, pair.y.node) == (BYTES, OTHER) and pair.scale == 0.125
    assert pair.y.scale == Scale(0.25, 126)
    tiny = floats(BYTES, 1e-30) @ floats(OTHER, 1e-30, 0)
    assert pair_of(tiny) is None  # their product is 0
    assert pair_of(floats(BYTES, 1e30) @ floats(OTHER, 1e30, 0)) is None  # or infinite
    assert pair_of(floats(BYTES) @ cg.Var((5, 4))) is pair_of(cg.exp(pair.x.node.astype("float32"))) is None
    assert pair_of(floats(BYTES[:0]) @ floats(OTHER, 0.25, -2)) is None


def test_a_mean_over_pixels_counts_all_of_them():
    x = floats(IMAGE)
    assert mean_of(cg.global_avg_pool(x)).node is IMAGE and mean_of(cg.mean(x, (2, 3))).node is IMAGE
    assert mean_of(cg.sum(x, (2, 3)) / F4(35)) is mean_of(cg.mean(x, (1, 2))) is mean_of(cg.sum(x, (2, 3))) is None
    assert mean_of(cg.mean(cg.Var(IMAGE.shape), (2, 3))) is None
