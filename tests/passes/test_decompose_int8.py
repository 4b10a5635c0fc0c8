"""Ops on bytes as plain ops: the same bytes, by kernels that know no bytes, and on a simulated GPU."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.kernels.conv8.calls import Result
from cgraph.ops.conv import Conv2d
from cgraph.ops.leaf import Const
from cgraph.ops.physical.integer import IntegerConv, IntegerMatmul, PixelSum
from cgraph.passes.decompose_int8 import decompose_int8

OPS = (IntegerConv, IntegerMatmul, PixelSum)


def graph(rounding="twice"):
    """A convolution in groups, sums over windows, a sum over pixels, a product."""
    rng = np.random.default_rng(0)
    x = cg.Var((2, 6, 5, 4), "uint8", "x")
    factors = [rng.integers(1 << 30, (1 << 31) - 1, 4), rng.integers(-14, -10, 4)]
    numbers = [rng.integers(-128, 128, (4, 3, 3, 3)).astype("i1"), rng.integers(-99, 99, 4).astype("i4")]
    numbers += [np.array(factors, "i4")]
    result = Result("u1", 120, 20, 240, fixed=rounding)
    y = apply(IntegerConv(Conv2d((1, 2), (1, 1, 1, 1), (1, 1), 2), 7, result), x, *map(Const, numbers))
    total = apply(PixelSum(), y).reshape((2, 4))
    rows = [y.reshape((-1, 4)), *map(Const, (numbers[0][:, 0, 0], numbers[1][:3], numbers[2][:, :3]))]
    product, sums = (apply(IntegerMatmul(3, how), *rows) for how in (result, Result("i4")))
    return x, (y, total, product, sums), rng.integers(0, 256, x.shape).astype("u1")


@pytest.mark.parametrize("rounding", ("once", "twice"))
def test_nothing_of_bytes_is_left_and_every_value_is_the_same(rounding):
    x, outputs, value = graph(rounding)
    made = decompose_int8(outputs)
    assert not any(isinstance(node.op, OPS) for node in post_order(made))
    for got, want in zip(evaluate(list(made), {x: value}), evaluate(list(outputs), {x: value})):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("options", ({"passes": False}, {"engine": "cuda-sim"}), ids=str)
def test_a_device_without_such_kernels_computes_them(options):
    x, outputs, value = graph()
    function = cg.compile(list(outputs), [x], **options)
    for got, want in zip(function(value), evaluate(list(outputs), {x: value})):
        np.testing.assert_array_equal(got, want)


def test_results_in_floats_are_left():
    x = cg.Var((2, 3), "uint8", "x")
    constants = np.ones((3, 2), "i1"), np.zeros(2, "i4"), np.ones(2, "f4")
    made = apply(IntegerMatmul(3, Result("f4")), x, *map(Const, constants))
    assert decompose_int8((made,)) == (made,)


@pytest.mark.parametrize("channels, kind", [(514, "float32"), (515, "float64")])
def test_sums_that_float32_does_not_hold_are_computed_in_float64(channels, kind):
    """255 * -128 for each channel: with 514 of them, sums are still below 2 ** 24."""
    x = cg.Var((1, channels, 1, 2), "uint8", "x")
    filters = np.full((3, channels, 1, 1), -128, "i1")
    filters[1, 0], filters[2, ::2] = -127, 127
    constants = map(Const, (filters, np.array([1, -2, 3], "i4"), np.ones((2, 3), "i4")))
    made = apply(IntegerConv(Conv2d((1, 1), (0, 0, 0, 0), (1, 1), 1), 0, Result("i4")), x, *constants)
    plain = decompose_int8((made,))
    assert {n.dtype.name for n in post_order(plain)} & {"float32", "float64"} == {kind}
    value = np.full(x.shape, 255, "u1")
    value[0, 1, 0, 1] = 254
    want = np.einsum("kc,ncw->nkw", filters[:, :, 0, 0].astype("i8"), value[:, :, 0].astype("i8")) + [[1], [-2], [3]]
    (got,) = evaluate(list(plain), {x: value})
    np.testing.assert_array_equal(got[:, :, 0], want)
    np.testing.assert_array_equal(evaluate([made], {x: value})[0], got)
