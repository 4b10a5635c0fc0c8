"""Sums of integers with a computed zero point, on bytes: exactly those of int64."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.ops.conv import Conv2d
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.integer import IntegerConv, IntegerMatmul
from cgraph.passes.integers import sums
from cgraph.passes.integers.compute_integers import compute_integers
from cgraph.passes.integers.patterns import single
from tests.support.kernels import TARGETS

RNG = np.random.default_rng(0)
KINDS = ("uint8", "int8")
BYTES = cg.Var((2, 5), "uint8", "bytes")
RANGES = {
    "int8": (-128, 128),
    "uint8 minus its zero point": (-119, 137),
    "one above int8": (-100, 129),
    "one below int8": (-129, 100),
    "far above": (40, 296),
    "far below": (-255, 1),
}


SMALL = RNG.integers(-9, 9, (5, 4), "int8")


def sums_of(node):
    return sums.sums_of(node, {})


def numbers_of(found):
    return found.right.numbers.op.array


def product(x=BYTES, zero=3, right=SMALL, dtype="int32"):
    return (x.astype(dtype) - cg.Const(np.asarray(zero, dtype))) @ cg.Const(right).astype(dtype)


def test_a_product_of_integers_with_a_zero_point_subtracted():
    y = SMALL
    found = sums_of(product())
    assert found.x is BYTES and single(found.zero) == 3
    np.testing.assert_array_equal(numbers_of(found), y)
    assert numbers_of(found).dtype == "int8" and not found.right.shift.any()
    np.testing.assert_array_equal(found.right.totals, y.sum(0))
    assert numbers_of(sums_of(product(right=np.full((5, 4), 127, "uint8"))))[0, 0] == 127
    assert sums_of(product(dtype="int64")) is sums_of(product(x=cg.Var((2, 5), "int16"))) is None
    assert sums_of(product(zero=[1, 2, 3, 4, 5])) is None
    assert sums_of(BYTES.astype("int32") @ cg.Const(y).astype("int32")) is None
    assert sums_of(apply(Matmul(), cg.Var((2, 5), "int32"), cg.Var((5, 4), "int32"))) is None


def test_numbers_beyond_int8_are_shifted_by_column_or_filter():
    y = np.array([[-128, 0, 300], [127, 128, 200]], "i4")
    found = sums_of(product(x=cg.Var((3, 2), "uint8"), right=y))
    np.testing.assert_array_equal(numbers_of(found) + found.right.shift, y)
    assert numbers_of(found).dtype == "int8" and found.right.shift.shape == (3,)
    assert sums_of(product(x=cg.Var((3, 2), "uint8"), right=np.array([[-129], [127]], "i4"))) is None
    assert sums_of(product(x=cg.Var((3, 2), "uint8"), right=np.array([[0], [255]], "i4"))) is not None


@pytest.mark.parametrize("range_", RANGES.values(), ids=RANGES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
def test_products_are_those_of_int64(target, kind, range_):
    rng = np.random.default_rng(4)
    x, zero = cg.Var((2, 5, 19), kind, name="x"), cg.Var((), kind, name="zero")
    y = rng.integers(*range_, (19, 33)).astype("i4")
    y[0, :2] = range_[0], range_[1] - 1
    made = cg.matmul(x.astype("int32") - zero.astype("int32"), cg.positive(y))
    assert any(isinstance(node.op, IntegerMatmul) for node in post_order(compute_integers((made,))))
    low = np.iinfo(kind).min
    values = rng.integers(low, low + 256, x.shape).astype(kind), np.asarray(low + 200, kind)
    got = cg.compile(made, [x, zero], engine=CpuEngine(target, poison=True))(*values)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, (values[0].astype("i8") - values[1].astype("i8")) @ y)


def conv_of(x, zero, f, how):
    images = x.astype("int32") if zero is None else x.astype("int32") - zero.astype("int32")
    return apply(how, images.astype("float64"), cg.Const(f).astype("float64")).astype("int32")


WINDOWS = {
    "padded on four sides": Conv2d((2, 1), (1, 0, 2, 3), (1, 2), 1),
    "not padded": Conv2d((1, 2), (0, 0, 0, 0), (1, 1), 1),
    "padded on the right alone": Conv2d((1, 1), (0, 0, 0, 2), (1, 1), 1),
    "padded below alone": Conv2d((1, 1), (0, 0, 1, 0), (1, 1), 1),
    "groups": Conv2d((1, 1), (1, 1, 1, 1), (1, 1), 3),
    "a filter for each channel": Conv2d((1, 1), (0, 1, 1, 0), (1, 1), 6),
}


@pytest.mark.parametrize("range_", RANGES.values(), ids=RANGES)
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_zero", [True, False])
def test_convolutions_are_those_of_int64(has_zero, kind, window, range_):
    rng = np.random.default_rng(5)
    x, zero = cg.Var((2, 6, 9, 8), kind, name="x"), cg.Var((), kind, name="zero")
    f = rng.integers(*range_, (18, 6 // window.groups, 3, 2)).astype("i4")
    f[0, 0, 0] = range_[0], range_[1] - 1
    made = conv_of(x, zero if has_zero else None, f, window)
    rewritten = post_order(compute_integers((made,)))
    assert any(isinstance(node.op, IntegerConv) for node in rewritten)
    assert not any(isinstance(node.op, Conv2d) for node in rewritten)
    low = np.iinfo(kind).min
    image, middle = rng.integers(low, low + 256, x.shape).astype(kind), np.asarray(low + 201, kind)
    inputs, values = ([x, zero], (image, middle)) if has_zero else ([x], (image,))
    got = cg.compile(made, inputs, engine=CpuEngine("host", poison=True))(*values)
    want = window.meaning(image.astype("f8") - (float(middle) if has_zero else 0.0), f.astype("f8"))
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, want.astype("i8"))


def test_other_convolutions_stay_as_they_are():
    x, f, how = cg.Var((1, 2, 5, 5), "uint8", "x"), np.ones((2, 2, 3, 3), "i4"), Conv2d((1, 1), (0, 0, 0, 0), (1, 1), 1)
    zeros = cg.Var((2, 1, 1), "uint8")
    floats = apply(how, x.astype("float64"), cg.Const(f + 0.5))
    for made in (
        conv_of(x, zeros, f, how),
        conv_of(cg.Var(x.shape, "int16"), None, f, how),
        conv_of(x, None, f * 300 - 300 * np.eye(2, dtype="i4")[:, :, None, None], how),
        floats.astype("int32"),
        apply(how, x.astype("int32").astype("float64"), cg.Var(f.shape, "float64")).astype("int32"),
        apply(how, x.astype("float32"), cg.Const(f).astype("float32")).astype("int32"),
    ):
        assert sums_of(made) is None
    assert sums_of(conv_of(x, None, f + 0.0, how)) is not None
    for other in (f + 0.5, np.where(np.arange(3) == 1, f * 1.25, f), np.full(f.shape, np.nan)):
        assert sums_of(conv_of(x, None, other, how)) is None
    assert sums_of(conv_of(cg.Var((0, 2, 5, 5), "uint8"), None, f, how)) is None
    assert sums_of(product(x=cg.Var((0, 5), "uint8"))) is sums_of(product(right=SMALL[:, :0])) is None
    assert sums_of(product(x=cg.Var((1, 2, 5), "uint8"), right=SMALL[None])) is None  # a matrix for each batch
    assert sums_of(conv_of(x, cg.Var((1, 1, 1, 1), "uint8"), f, how)) is not None
    assert sums_of(cg.Var((), "int32") + np.int32(1)) is None


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("is_image", [False, True])
def test_products_of_one_constant_share_its_packed_numbers(is_image, kind):
    """As steps of a recurrent layer do: 64 copies of 256 KiB would leave every cache."""
    low, high = RANGES["int8" if kind == "int8" else "uint8 minus its zero point"]
    shape, rest = ((32, 32, 1, 1), (4, 4)) if is_image else ((32, 32), ())
    right = cg.Const(RNG.integers(low, high, shape).astype("int32"))
    xs = [cg.Var((1, 32, *rest), "uint8", f"x{i}") for i in range(9)]
    zeros = [cg.Var((), "uint8", f"z{i}") for i in range(9)]

    def product_of(x, zero):
        centred = x.astype("int32") - zero.astype("int32")
        if not is_image:
            return centred @ right
        return cg.conv2d(centred.astype("float64"), right.astype("float64")).astype("int32")

    nodes = [product_of(x, zero) for x, zero in zip(xs, zeros)]
    function = cg.compile(nodes, [*xs, *zeros], threads=1)
    once = cg.compile(nodes[0], [xs[0], zeros[0]], threads=1)
    assert function.report().const_nbytes < 2 * once.report().const_nbytes
    values = [RNG.integers(0, 256, x.shape, "uint8") for x in (*xs, *zeros)]
    for got, node in zip(function(*values), nodes):
        want = cg.compile(node, [*xs, *zeros], engine="reference")(*values)
        np.testing.assert_array_equal(got, want)
