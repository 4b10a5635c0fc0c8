"""Emitted quantised values and Gemm: scales of each axis, dtypes of the written opset, rows that are added."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.onnx import serialised
from cgraph.formats.onnx.emit_quantised import axis_of, gemm
from cgraph.ops.leaf import Const, Var
from tests.support.onnx_models import written_nodes, written_result
from tests.support.tolerance import assert_near

X = Var((2, 3, 4), name="x")
rng = np.random.default_rng(0)
A = rng.uniform(-3, 3, (2, 3, 4)).astype("f4")
SCALES = {
    "one": (np.float32(0.25), np.uint8(10), None),
    "of axis 1": (np.array([[0.25], [0.5], [1]], "f4"), np.array([[10], [0], [99]], "u1"), 1),
    "of axis 2": (np.array([0.25, 0.5, 1, 2], "f4"), np.array([10, 20, 30, 40], "u1"), 2),
    "of axis 0": (np.array([[[0.25]], [[2]]], "f4"), np.array([[[10]], [[20]]], "u1"), 0),
    "with one zero": (np.array([0.25, 0.5, 1, 2], "f4"), np.uint8(7), 2),
}


@pytest.mark.parametrize("name", SCALES)
def test_scales_stand_along_their_axis(name):
    scale, zero, axis = SCALES[name]
    integers = cg.quantize(X, scale, zero)
    want = np.clip(np.rint(A / scale) + zero, 0, 255).astype("u1")
    np.testing.assert_array_equal(written_result(integers, [X], A), want)
    back = cg.dequantize(integers, scale, zero)
    assert_near(written_result(back, [X], A), (want.astype("f4") - zero) * scale, "float32 formulas")
    attributes = written_nodes(back, [X])
    for kind in ("QuantizeLinear", "DequantizeLinear"):
        assert attributes[kind].get("axis") == axis


def test_scales_that_are_computed_are_reshaped():
    s, z = Var((4,), name="s"), Const(np.int8(3))
    scale = np.array([0.25, 0.5, 1, 2], "f4")
    got = written_result(cg.quantize(X, s, z, "int8"), [X, s], A, scale)
    np.testing.assert_array_equal(got, np.clip(np.rint(A / scale) + 3, -128, 127).astype("i1"))
    one = Var((), name="t")
    got = written_result(cg.quantize(X, one, z, "int8"), [X, one], A, np.array(0.5, "f4"))
    np.testing.assert_array_equal(got, np.clip(np.rint(A / 0.5) + 3, -128, 127).astype("i1"))


def test_a_computed_zero_is_repeated_for_each_scale():
    """One zero stands for all, and a scale of one element is a scalar whatever its number of axes."""
    s, z = Var((4,), name="s"), Var((), "int8", "z")
    scale, zero = np.array([0.25, 0.5, 1, 2], "f4"), np.array(-3, "i1")
    want = np.clip(np.rint(A / scale) - 3, -128, 127).astype("i1")
    np.testing.assert_array_equal(written_result(cg.quantize(X, scale, z, "int8"), [X, z], A, zero), want)
    np.testing.assert_array_equal(written_result(cg.quantize(X, s, z, "int8"), [X, s, z], A, scale, zero), want)
    t, o = Var((1, 1, 1), name="t"), Var((1, 1, 1), "int8", "o")
    got = written_result(
        cg.quantize(X, t, o, "int8"), [X, t, o], A, np.full((1, 1, 1), 0.5, "f4"), np.full((1, 1, 1), -3, "i1")
    )
    np.testing.assert_array_equal(got, np.clip(np.rint(A / 0.5) - 3, -128, 127).astype("i1"))
    with pytest.raises(FormatError, match=r"zero point \(4 values along axis 2\) .* its scale \(1 along axis 0\)"):
        serialised(cg.quantize(X, np.float32(0.5), np.arange(4, dtype="u1")), [X])
    with pytest.raises(FormatError, match=r"zero point \(3 values along axis 1\) .* its scale \(4 along axis 2\)"):
        serialised(cg.quantize(X, scale, np.arange(3, dtype="u1")[:, None]), [X])


def test_int32_is_read_and_not_written():
    n = Var((3,), "int32", "n")
    got = written_result(cg.dequantize(n, np.float32(0.5)), [n], np.array([1, -2, 70_000], "i4"))
    np.testing.assert_array_equal(got, np.array([0.5, -1, 35_000], "f4"))


@pytest.mark.parametrize(("x", "dtype"), [(X, "int16"), (X, "int32"), (cg.astype(X, "float64"), "uint8")])
def test_dtypes_beyond_the_written_opset_are_refused(x, dtype):
    integers = cg.quantize(x, 0.5, 0, dtype)
    match = f"ONNX does not quantise {x.dtype} as {dtype} in the written opset. Use float32 with int8 or uint8$"
    with pytest.raises(FormatError, match=match):
        serialised(integers, [X])
    n = Var((3,), dtype, "n")
    scale = Const(np.array(0.5, x.dtype))
    if dtype == "int32":
        serialised(cg.dequantize(n, scale), [n])
        return
    with pytest.raises(FormatError, match=f"{x.dtype} as {dtype} .* Use float32 with int8 or uint8 or int32$"):
        serialised(cg.dequantize(n, scale), [n])


def test_scales_of_two_axes_or_of_another_axis_than_their_zeros_are_refused():
    table = np.full((3, 4), 0.5, "f4")
    with pytest.raises(FormatError, match="has several axes, which ONNX does not support"):
        serialised(cg.quantize(X, table, np.uint8(3)), [X])
    rows, columns = np.full((3, 1), 0.5, "f4"), np.arange(4, dtype="u1")
    with pytest.raises(FormatError, match=r"zero point \(4 values along axis 2\) .* its scale \(3 along axis 1\)"):
        serialised(cg.quantize(X, rows, columns), [X])


def test_the_axis_of_a_scale_is_its_only_long_one():
    assert axis_of(Const(np.zeros((1, 3, 1)))) == (1, 3) and axis_of(Const(np.zeros((1, 1)))) == (0, 1)
    assert axis_of(Const(np.float32(1))) == (0, 1)
    assert axis_of(cg.broadcast_to(Const(np.zeros(5)), (2, 3, 5))) == (2, 5)


def test_a_product_and_a_row_are_one_gemm():
    a, b, row = Var((3, 4), name="a"), Var((4, 5), name="b"), Var((5,), name="r")
    values = [rng.standard_normal(x.shape).astype("f4") for x in (a, b, row)]
    for output in (a @ b + row, row + a @ b):
        assert list(written_nodes(output, [a, b, row])) == ["Gemm"]
        assert_near(written_result(output, [a, b, row], *values), values[0] @ values[1] + values[2], "float32 products")
    column, square = Var((3, 1), name="c"), Var((3, 5), name="s")
    n, m = Var((3, 4), "int64", "n"), Var((4, 5), "int64", "m")
    for other in (a @ b + column, a @ b + square, a @ b - row, n @ m + np.arange(5)):
        assert gemm(other) is None
    assert gemm(cg.reshape(a @ b, (1, 3, 5)) + row) is None
