"""Block-quantised weights by hand: the order of nibbles, zero points in odd numbers, a last block that is shorter."""

import numpy as np
import pytest
from onnx import helper

from cgraph.errors import FormatError
from cgraph.formats.onnx.operators.blocks import gather_block_quantized, matmul_n_bits, zeros_of
from cgraph.ops.leaf import Const, Var
from tests.support.onnx_context import context, value_of
from tests.support.onnx_models import assert_equal_results
from tests.support.tolerance import assert_near

rng = np.random.default_rng(0)
N, K, BLOCK = 3, 40, 16  # two whole blocks and one of 8


def node(*operands, **changes):
    attributes = {"bits": 4, "block_size": BLOCK, "N": N, "K": K} | changes
    attributes = [helper.make_attribute(name, v) for name, v in attributes.items() if v is not None]
    return context(*(None if x is None else Const(x) for x in operands), attributes=attributes)


def weights(bits):
    """Bytes, scales and quantised numbers; two numbers of 4 bits stand in a byte, the lower first."""
    numbers = rng.integers(0, 1 << bits, (N, 3, BLOCK)).astype("u1")
    raw = numbers if bits == 8 else numbers[..., 0::2] | numbers[..., 1::2] << 4
    return raw, rng.uniform(0.1, 1, (N, 3)).astype("f4"), numbers


def product(x, numbers, scales, zeros):
    wide = (numbers.astype("f8") - np.asarray(zeros, "f8").reshape(-1, 3, 1)) * scales[..., None]
    return x.astype("f8") @ wide.reshape(N, -1)[:, :K].T


@pytest.mark.parametrize("bits", [4, 8])
def test_products_with_and_without_zero_points_and_a_bias(bits):
    raw, scales, numbers = weights(bits)
    x, bias = rng.standard_normal((2, K)).astype("f4"), np.array([1, 20, 300], "f4")
    middle = [1 << (bits - 1)] * 3
    got = value_of(matmul_n_bits(node(x, raw, scales, bits=bits)), {})
    assert_near(got, product(x, numbers, scales, middle), "float32 long products by their largest")
    got = value_of(matmul_n_bits(node(x, raw, scales.reshape(-1), None, None, bias, bits=bits)), {})
    assert_near(got, product(x, numbers, scales, middle) + bias, "float32 long products by their largest")
    zeros = rng.integers(0, 1 << bits, (N, 3)).astype("u1")
    packed = zeros if bits == 8 else np.stack([zeros[:, 0] | zeros[:, 1] << 4, zeros[:, 2] | 0xF0], 1)
    got = value_of(matmul_n_bits(node(x, raw, scales, packed, bits=bits)), {})
    assert_near(got, product(x, numbers, scales, zeros), "float32 long products by their largest")


def test_bits_are_four_and_results_have_the_operands_dtype():
    raw, scales, numbers = weights(4)
    x = rng.integers(-2, 3, (1, K)).astype("f2")
    got = value_of(matmul_n_bits(node(x, raw, np.ones_like(scales), bits=None)), {})
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, product(x, numbers, np.ones_like(scales), [8] * 3).astype("f2"))


def test_zero_points_of_four_bits_start_in_each_row():
    packed = np.array([[0x21, 0xF3], [0x54, 0x06]], "u1")
    got = zeros_of(node(None, None, None, packed), 2, 3, 4)
    np.testing.assert_array_equal(got.op.array, [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(zeros_of(node(None, None, None, packed), 2, 2, 8).op.array, packed)
    assert zeros_of(node(None), 2, 3, 4).op.array.tolist() == [[8] * 3] * 2
    assert zeros_of(node(None), 1, 1, 8).op.array.tolist() == [[128]]
    with pytest.raises(FormatError, match="zero points of float32 are not supported. Use uint8"):
        zeros_of(node(None, None, None, packed.astype("f4")), 2, 3, 4)


@pytest.mark.parametrize(("bits", "block"), [(2, 16), (4, 8), (4, 24), (8, 0), (3, 32)])
def test_other_blocks_are_refused(bits, block):
    raw, scales, _ = weights(4)
    with pytest.raises(FormatError, match=f"{bits} bits in blocks of {block} are not supported"):
        matmul_n_bits(node(np.ones((1, K), "f4"), raw, scales, bits=bits, block_size=block))


def test_an_order_of_elements_is_refused_unless_it_is_empty():
    raw, scales, _ = weights(4)
    x = np.ones((1, K), "f4")
    with pytest.raises(FormatError, match=r"g_idx\) is not supported"):
        matmul_n_bits(node(x, raw, scales, None, np.arange(K, dtype="i4")))
    assert matmul_n_bits(node(x, raw, scales, None, np.zeros(0, "i4"))).shape == (1, N)
    assert matmul_n_bits(
        context(Var((2, 5, K), "float32", "x"), Const(raw), Const(scales), attributes=list(node().attributes.values()))
    ).shape == (2, 5, N)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_rows_of_a_table_in_blocks(bits, has_zeros):
    pytest.importorskip("onnxruntime")
    table = rng.integers(0, 256, (10, 40 * bits // 8)).astype("u1")  # two whole blocks and one of 8
    scales, index = rng.uniform(0.1, 1, (10, 3)).astype("f4"), np.array([[1, 9, 3], [0, -1, 4]])
    zeros = rng.integers(0, 256, (10, -(-3 * bits // 8))).astype("u1") if has_zeros else None
    options = {"bits": bits, "block_size": BLOCK, "gather_axis": 0, "quantize_axis": 1}
    operands = [table, index, scales, zeros] if has_zeros else [table, index, scales]
    assert_equal_results(
        "GatherBlockQuantized", operands, (0, 2, 3), domain="com.microsoft", near="float32 sums", **options
    )


def test_other_tables_are_refused():
    operands = [Const(np.zeros((4, 16), "u1")), Const(np.array([1])), Const(np.ones((4, 1), "f4"))]
    for table in (np.zeros((4, 16), "i1"), np.zeros((2, 4, 16), "u1"), np.zeros(16, "u1")):
        axes = {"gather_axis": 0, "quantize_axis": table.ndim - 1}
        attributes = [helper.make_attribute(name, v) for name, v in axes.items()]
        with pytest.raises(FormatError, match="a table .* is not supported. Use rows of bytes"):
            gather_block_quantized(context(Const(table), *operands[1:], attributes=attributes))
    for options in ({"bits": 2}, {"gather_axis": 1, "quantize_axis": 0}, {"block_size": 0}, {"quantize_axis": 0}):
        attributes = [helper.make_attribute(name, v) for name, v in options.items()]
        with pytest.raises(FormatError, match="a table .* is not supported"):
            gather_block_quantized(context(*operands, attributes=attributes))
