"""Quantisation by hand: halves to even, both ends of each dtype, zero points, gradients, refusals."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import DTypeError, ShapeError
from cgraph.ops.quantise import Dequantize, Quantize


def meant(node):
    """The value by meaning."""
    return evaluate((node,), {})[0]


def test_halves_round_to_even_before_the_zero_point_is_added():
    x = np.array([-1.25, -0.75, -0.25, 0.25, 0.75, 1.25], "f4")
    got = meant(cg.quantize(x, 0.5, 3))
    assert got.dtype == np.uint8 and got.tolist() == [1, 1, 3, 3, 5, 5]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_numbers_beyond_the_range_become_its_ends(dtype):
    limits = np.iinfo(dtype)
    x = np.array([-np.inf, -1e9, limits.min - 1, limits.min, 0, limits.max, limits.max + 1, 1e9, np.inf], "f4")
    node = cg.quantize(cg.Const(x), 1.0, 0, dtype)
    want = [limits.min] * 4 + [0] + [limits.max] * 4
    assert meant(node).tolist() == want and node.dtype == dtype
    (compiled,) = cg.compile([cg.quantize(v := cg.Var(x.shape), 1.0, 0, dtype)], [v])(x)
    assert compiled.tolist() == want


def test_a_number_is_the_distance_from_the_zero_point_times_the_scale():
    x = np.array([[0, 128, 255], [1, 2, 3]], "u1")
    scale, zero = np.array([[0.5], [2.0]], "f4"), np.array([[128], [4]], "u1")
    node = cg.dequantize(x, scale, zero)
    assert meant(node).tolist() == [[-64, 0, 63.5], [-6, -4, -2]] and node.dtype == np.float32
    assert meant(cg.dequantize(x, np.float64(0.5))).tolist() == [[0, 64, 127.5], [0.5, 1, 1.5]]
    back = cg.quantize(node, scale, zero)
    assert meant(back).tolist() == x.tolist()


def test_the_zero_point_defaults_to_0_and_the_dtype_to_uint8():
    assert meant(cg.quantize(np.array([-1.0, 7.0]), 1.0)).tolist() == [0, 7]
    assert meant(cg.dequantize(np.array([-128, 127], "i1"), np.float32(1))).tolist() == [-128, 127]


def test_the_gradient_of_a_scale_is_the_distance_from_the_zero_point():
    scale = cg.Var((2,), "float32", "scale")
    y = cg.dequantize(np.array([3, 200], "u1"), scale, np.array([5, 5], "u1"))
    (g,) = cg.gradient(cg.sum(y * np.array([1, 10], "f4")), [scale])
    assert cg.compile([g], [scale])(np.ones(2, "f4"))[0].tolist() == [-2, 1950]


def test_operands_of_other_dtypes_are_refused():
    f4, f8, u1, i8 = map(np.dtype, ("f4", "f8", "u1", "i8"))
    for dtypes in ((u1, f4, u1), (f4, f8, u1), (f4, f4, np.dtype("i1"))):
        with pytest.raises(DTypeError, match="cannot become uint8"):
            Quantize(u1).dtype(*dtypes)
    with pytest.raises(DTypeError, match="cannot become"):
        Quantize(f4).dtype(f4, f4, f4)
    for dtypes in ((f4, f4, f4), (i8, f4, i8), (u1, f4, np.dtype("i1")), (u1, u1, u1)):
        with pytest.raises(DTypeError):
            Dequantize().dtype(*dtypes)
    with pytest.raises(DTypeError, match="astype first"):
        cg.quantize(np.arange(3), 1.0)


def test_a_scale_that_is_wider_than_the_operand_is_refused():
    with pytest.raises(ShapeError, match="do not broadcast"):
        cg.quantize(np.zeros(3, "f4"), np.ones((2, 1), "f4"))
    with pytest.raises(ShapeError, match="do not broadcast"):
        cg.dequantize(np.zeros((1, 3), "u1"), np.float32(1), np.zeros((2, 3), "u1"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale_dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("zero_dtype", ["uint8", "int64", "float32"])
def test_scale_and_zero_point_have_the_dtypes_that_the_op_reads(zero_dtype, scale_dtype, dtype):
    x, value = cg.Var((4,), dtype), np.array([-3.0, 0.4, 2.6, 900.0]).astype(dtype)
    scale, zero = np.array(2, scale_dtype), np.array(5, zero_dtype)
    for given in ((scale, zero), (cg.Var((), scale_dtype).assign(scale), cg.Var((), zero_dtype).assign(zero))):
        node = cg.quantize(x, *given)
        assert node.dtype == np.uint8 and [y.dtype.name for y in node.operands] == [dtype, dtype, "uint8"]
        np.testing.assert_array_equal(cg.compile(node, [x])(value), [3, 5, 6, 255])
