"""Byte convolutions, products and sums: every conversion of sums by hand, bands, packed filters, unequal axes."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.kernels.conv.calls import conv_overwrites_residual
from cgraph.kernels.conv8.calls import ByteShape, Join, Result
from cgraph.kernels.depthwise8.calls import halo8
from cgraph.kernels.target import target_named
from cgraph.kernels.views.window import Window
from cgraph.lowering.pack_int8 import byte_constants
from cgraph.ops.conv import Conv2d
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.integer import (
    BlockedIntegerConv,
    BlockedPixelSum,
    IntegerConv,
    IntegerMatmul,
    PackedIntegerMatmul,
    PixelSum,
    pack_bytes,
    requantise,
    unpack_bytes,
)
from cgraph.record import replace
from tests.support.kernels import TARGETS
from tests.support.ops import kernel_result

RNG = np.random.default_rng(0)
CONV = Conv2d((2, 1), (1, 0, 1, 2), (1, 2), 1)
WINDOW = Window((2, 3), (2, 1), (1, 0, 1, 2), (1, 2))
SUMS = np.array([-9, -5, 0, 3, 5, 7, 900])


def test_sums_become_bytes_around_a_zero_point_within_bounds():
    half = np.float32(0.5)
    got = requantise(SUMS, half, Result(zero=10, low=8, high=200))
    assert got.tolist() == [8, 8, 10, 12, 12, 14, 200] and got.dtype == "uint8"  # halves to even
    assert requantise(SUMS, half, Result("i4")).tolist() == SUMS.tolist()
    floats = requantise(SUMS, half, Result("f4", zero=10))
    assert floats.tolist() == (SUMS / 2).tolist() and floats.dtype == "float32"


def test_a_joined_byte_is_rounded_bounded_scaled_and_added_to_the_residual():
    join = Join(first=2.0, low=-3, high=4, last=4.0, beside=3.0, r_zero=5)
    residual = np.array([5, 6, 7, 8, 9, 5, 5], "uint8")
    first = np.clip([-4, -2, 0, 2, 2, 4, 450], -3, 4) * 2.0
    want = np.clip(np.rint((first + (residual - 5.0) * 3) / 4) + 100, 90, 255)
    got = requantise(SUMS, np.float32(0.5), Result(zero=100, low=90, join=join), residual)
    assert got.tolist() == want.tolist()
    alone = requantise(SUMS, np.float32(0.5), Result(zero=100, low=90, join=join))
    assert alone.tolist() == np.clip(np.rint(first / 4) + 100, 90, 255).tolist()


def test_fixed_factors_round_once_or_twice():
    factors = np.array([[2**30] * 7, [-1] * 7])  # a quarter
    once = requantise(SUMS, factors, Result(zero=10, fixed="once", high=99))
    twice = requantise(SUMS, factors, Result(zero=10, fixed="twice", high=99))
    assert once.tolist() == [8, 9, 10, 11, 11, 12, 99]
    assert twice.tolist() == [8, 9, 10, 11, 12, 12, 99]  # 5 / 4: to 2.5, up to 3, to 1.5, up to 2


def test_a_convolution_subtracts_the_zero_point_where_the_image_is_and_not_in_the_padding():
    x = RNG.integers(0, 256, (2, 4, 6, 7), "uint8")
    f, bias = RNG.integers(-128, 128, (5, 4, 2, 3), "int8"), RNG.integers(-99, 99, 5, "int32")
    op = IntegerConv(CONV, 7, Result("i4"))
    node = apply(op, cg.Var(x.shape, "uint8"), cg.Const(f), cg.Const(bias), cg.Const(np.ones(5, "f4")))
    want = CONV.meaning(x.astype("f8") - 7, f.astype("f8")) + bias[:, None, None]
    np.testing.assert_array_equal(op.meaning(x, f, bias, np.ones(5, "f4")), want)
    assert (node.shape, node.dtype) == (want.shape, "int32")


def blocked(target, groups=1, c=8, k=6, residual=False, dilation=(1, 2)):
    lanes, window = target.channels_of("u1"), replace(WINDOW, dilation=dilation)
    shape = ByteShape(c, 6, 7, k, target, window, groups)
    source = Form(2, c, 6, 7, lanes, "u1", halo8(shape, window), 7)
    form = Form(2, k, *shape.result, lanes, "u1", (1, 0, 2, 1), 50)
    result = Result(zero=50, join=Join(1.0, -100, 100, 1.5, 2.0, 7) if residual else None)
    return BlockedIntegerConv(shape, source, form, result, form if residual else None)


def operands(op, residual=False):
    shape, of = op.shape, op.source
    x = RNG.integers(0, 256, of.logical, "uint8")
    f = RNG.integers(-128, 128, (shape.k, shape.c // shape.groups, 2, 3), "int8")
    bias = RNG.integers(-900, 900, shape.k, "int32")
    scale = (RNG.uniform(0.5, 1, shape.k) / 900).astype("f4")
    room = -(-shape.k // (shape.vectors * shape.lanes)) * shape.vectors * shape.lanes
    start, scales = np.zeros(room, "i4"), np.zeros(room, "f4")
    start[: shape.k] = bias - of.fill * f.sum((1, 2, 3), dtype="i4")
    scales[: shape.k] = scale
    rest = [RNG.integers(0, 256, op.form.logical, "uint8")] if residual else []
    plain = [x, f, bias, scale, *rest]
    return plain, [of.to_blocked(x), pack_bytes(shape, f), start, scales, *map(op.form.to_blocked, rest)]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("groups, residual", [(1, False), (1, True), (64, False), (4, False)])
def test_blocked_convolutions_are_the_plain_ones_and_their_bands(groups, residual, name):
    """Of 64 groups without dilation, one for each channel."""
    target = target_named(name)
    c = max(groups, 8)
    op = blocked(target, groups, c, c if groups > 1 else 6, residual, (1, 1) if groups == 64 else (1, 2))
    plain, packed = operands(op, residual)
    conv = replace(CONV, dilation=op.shape.window.dilation, groups=groups)
    want = IntegerConv(conv, 7, op.result).meaning(*plain)
    node = apply(op, *(cg.Var(v.shape, v.dtype) for v in packed))
    (got,) = kernel_result(node, packed, "all", target=target)
    np.testing.assert_array_equal(op.form.plain(got), want)
    np.testing.assert_array_equal(op.form.plain(op.meaning(*packed)), want)
    for side in (np.s_[:, :, :1], np.s_[:, :, -2:], np.s_[:, :, :, -1:]):  # the halo
        assert (got[side] == 50).all()
    assert op.name == ("conv8" if groups < 64 else "depthwise8")
    cut = op.cut(*(v.spec for v in node.operands))
    assert len(cut.reads) == len(packed) and cut.reads[1:4] == (None,) * 3
    assert_rows(op, packed, got, target)


def assert_rows(op, packed, whole, target):
    """Bands have the pixels of the whole; lanes beyond the channels are undefined."""
    cut = op.cut(*(cg.Var(v.shape, v.dtype).spec for v in packed))
    rows = whole.shape[2]
    for first, stop in ((0, 2), (2, 3), (3, rows)):
        parts = [v if t is None else np.ascontiguousarray(v[:, :, t[0][first] : t[1][stop - 1]])
                 for v, t in zip(packed, cut.reads)]  # fmt: skip
        band = apply(cut.band(first, stop), *(cg.Var(v.shape, v.dtype) for v in parts))
        (got,) = kernel_result(band, parts, "all", target=target)
        form = band.op.form
        np.testing.assert_array_equal(form.plain(got), form.plain(whole[:, :, first:stop]))


def test_filters_are_packed_and_unpacked():
    for groups, c, k in ((1, 8, 6), (1, 5, 40), (8, 8, 8), (2, 8, 6)):
        op = blocked(target_named(TARGETS[0]), groups, c, k)
        f = RNG.integers(-128, 128, (k, c // groups, 2, 3), "int8")
        np.testing.assert_array_equal(unpack_bytes(op.shape, pack_bytes(op.shape, f)), f)


@pytest.mark.parametrize("groups", [1, 8])
def test_unpacked_convolutions_are_the_plain_ones_and_their_bands(groups):
    """Pixels are unpacked once for all filters, and the rows of a depthwise convolution once."""
    target, c = replace(target_named("portable"), dot="halves", registers=4, architecture="generic"), 8
    window = Window((3, 3), (1, 1), (1, 0, 1, 2))
    f = RNG.integers(-127, 128, (8, c // groups, 3, 3), "int8")
    bias = RNG.integers(-900, 900, 8, "int32")
    scale = np.stack([RNG.integers(1 << 30, 1 << 31, 8), np.full(8, -9)]).astype("int32")
    shape = ByteShape(c, 6, 7, 8, target, window, groups)
    constants = byte_constants(shape, f, bias, scale, 7, Result(zero=50, fixed="twice"))
    assert constants.shape.is_unpacked and len(constants.numbers) == (1 if groups == 1 else 2)
    source = Form(2, c, 6, 7, 4, "u1", halo8(shape, window), 7)
    form = Form(2, 8, *shape.result, 4, "u1", (1, 0, 2, 1), 50)
    op = BlockedIntegerConv(constants.shape, source, form, constants.result)
    x = RNG.integers(0, 256, source.logical, "uint8")
    want = IntegerConv(Conv2d((1, 1), window.pad, (1, 1), groups), 7, op.result).meaning(x, f, bias, scale)
    packed = [source.to_blocked(x), pack_bytes(constants.shape, constants.filters), *constants.numbers]
    node = apply(op, *(cg.Var(v.shape, v.dtype) for v in packed))
    (got,) = kernel_result(node, packed, "all", target=target)
    np.testing.assert_array_equal(form.plain(got), want)
    np.testing.assert_array_equal(form.plain(op.meaning(*packed)), want)
    np.testing.assert_array_equal(unpack_bytes(constants.shape, packed[1]), f)
    assert_rows(op, packed, got, target)


def test_other_forms_are_refused_and_work_is_counted():
    op = blocked(target_named(TARGETS[0]), residual=True)
    specs = [cg.Var(v.shape, v.dtype).spec for v in operands(op, True)[1]]
    assert op.infer(*specs) == op.form.spec
    for bad in ([specs[4], *specs[1:]], [*specs[:4], specs[0]]):
        with pytest.raises(ShapeError, match="is not of the form"):
            op.infer(*bad)
    rows, columns = op.shape.result
    assert op.multiply_adds(*specs) == 2 * rows * columns * 6 * 8 * 6


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", ["u1", "i4", "f4"])
def test_products_of_bytes(dtype, name):
    target = target_named(name)
    x, y = RNG.integers(0, 256, (2, 3, 10), "uint8"), RNG.integers(-128, 128, (10, 5), "int8")
    bias, scale = RNG.integers(-99, 99, 5, "int32"), np.full(5, 1 / 256, "f4")
    op = IntegerMatmul(9, Result(dtype, zero=100))
    sums = (x.astype("i8") - 9) @ y.astype("i8") + bias
    want = {"u1": np.clip(np.rint(sums / 256) + 100, 0, 255), "i4": sums, "f4": sums / 256}[dtype]
    np.testing.assert_array_equal(op.meaning(x, y, bias, scale), want)
    shape = ByteShape(10, 1, 6, 5, target)
    packed = PackedIntegerMatmul(shape, 9, Result(dtype, zero=100))
    panels = pack_bytes(shape, np.ascontiguousarray(y.T)[:, :, None, None])
    room = -(-5 // (shape.vectors * shape.lanes)) * shape.vectors * shape.lanes
    start, scales = np.zeros(room, "i4"), np.zeros(room, "f4")
    start[:5], scales[:5] = bias - 9 * y.sum(0, dtype="i4"), scale
    xs = [x, panels, start, scales]
    node = apply(packed, *(cg.Var(v.shape, v.dtype) for v in xs))
    np.testing.assert_array_equal(packed.meaning(*xs), want)
    np.testing.assert_array_equal(kernel_result(node, xs, "all", target=target)[0], want)
    assert node.shape == (2, 3, 5) and op.multiply_adds(x, y) == 60 * 5 == packed.multiply_adds(x)
    assert packed.name == "matmul8" and packed != PackedIntegerMatmul(shape, 8, packed.result)


def test_a_residual_is_overwritten_where_it_has_the_results_form_and_tiles_do_not_repeat_pixels():
    target = target_named(TARGETS[0])
    op = blocked(target, residual=True)
    assert set(op.overwrites) <= {4} and op.work(target).overwrites == op.overwrites
    assert replace(op, residual=None).overwrites == ()
    assert replace(op, residual=replace(op.form, halo=(0, 0, 0, 0))).overwrites == ()
    point = ByteShape(8, 1, 64, 8, target)
    plain = Form(1, 8, 1, 64, target.channels_of("u1"), "u1")
    whole = BlockedIntegerConv(point, plain, plain, Result(), plain)
    assert whole.overwrites == ((4,) if conv_overwrites_residual(point, False) else ())


def test_products_of_other_sizes_are_refused():
    specs = [cg.Var(s, d).spec for s, d in (((2, 3), "uint8"), ((4, 5), "int8"))]
    fitting = [specs[0], cg.Var((3, 5), "int8").spec]
    assert IntegerMatmul(0, Result()).infer(*fitting).shape == (2, 5)
    with pytest.raises(ShapeError, match="has 3 columns, y .* has 4 rows; transpose or reshape one of them"):
        IntegerMatmul(0, Result()).infer(*specs)


@pytest.mark.parametrize("name", TARGETS)
def test_sums_over_pixels_leave_the_halo_out(name):
    target = target_named(name)
    of = Form(2, 5, 6, 7, target.channels_of("u1"), "u1", (1, 2, 3, 4), 9)
    x = RNG.integers(0, 256, of.logical, "uint8")
    want = x.sum((2, 3), dtype="i4")
    plain = apply(PixelSum(), cg.Var(x.shape, "uint8"))
    np.testing.assert_array_equal(kernel_result(plain, [x], "all", target=target)[0], want[:, :, None, None])
    op = BlockedPixelSum(of)
    blocks = of.to_blocked(x)
    node = apply(op, cg.Var(blocks.shape, "uint8"))
    for got in (op.meaning(blocks), kernel_result(node, [blocks], "all", target=target)[0]):
        np.testing.assert_array_equal(got.reshape(2, -1)[:, :5], want)
    assert node.shape == (2, of.shape[1], of.lanes)
