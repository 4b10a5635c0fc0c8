"""Ops on bfloat16 images: the meaning's values, the same bits in bands and for fewer images, results in place."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.dtypes.convert import convert
from cgraph.dtypes.storage import BFLOAT16
from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.kernels.activation.calls import NONE, RELU
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.tile_conv.calls import TileLayer
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.physical.conv import RESIDUAL
from cgraph.ops.physical.form import NO_HALO, Form
from cgraph.ops.physical.lanes import BlockedConcat, BlockedPool, ClearHalo, ColumnSum
from cgraph.ops.physical.tile_conv import (
    TileConv,
    TileImages,
    WideDepthwise,
    pack_layer,
    pack_tile_bias,
    pack_wide_depthwise,
)
from cgraph.ops.pool import MaxPool
from tests.support.cuts import assert_bands
from tests.support.emulated import emulate_tiles
from tests.support.kernels import TARGETS
from tests.support.ops import kernel_result
from tests.support.tolerance import assert_near

NUMBER = BFLOAT16.code
TARGET = emulate_tiles(host_target())
RNG = np.random.default_rng(11)
HALO = (1, 2, 1, 1)


def images(form):
    """Whole numbers, whose sums are exact, in a form."""
    x = RNG.integers(-4, 5, form.logical).astype("f4")
    return form.to_blocked(convert(x, form.spec.dtype))


def bf16_form(c, h, w, halo=HALO, n=2, lanes=32):
    return Form(n, c, h, w, lanes, NUMBER, halo)


def f4_form(c, h, w, halo=HALO, n=2):
    return Form(n, c, h, w, TARGET.channels_of("f4"), "f4", halo)


def check(op, xs, target=TARGET):
    """The kernels' result is the meaning's; whole numbers have one rounding."""
    node = apply(op, *(cg.Var(x.shape, x.dtype) for x in xs))
    want = op.meaning(*xs)
    for order in ("all", "reverse"):
        (got,) = kernel_result(node, list(xs), order, target=target)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    return want


WINDOW = Window((3, 3), (1, 1), (1, 1, 1, 1))


def layer(result, residual=None, window=WINDOW, c=40, k=24, size=(9, 8), activation=RELU):
    """A TileConv with its operands."""
    shape = ConvShape(c, *size, k, TARGET, window)
    source = bf16_form(c, *size, halo=TileLayer(shape).halo)
    filters = RNG.integers(-3, 4, (k, c, *window.kernel)).astype("f4")
    scale = RNG.integers(1, 3, k).astype("f4")
    bias = RNG.integers(-9, 9, k).astype("f4")
    xs = [images(source), pack_layer(shape, filters, scale), pack_tile_bias(shape, bias)]
    if residual is not None:
        xs.append(images(residual))
    return TileConv(shape, 0, 2, source, result, residual, activation), xs


RESULTS = {"float32": f4_form(24, 9, 8), "bfloat16": bf16_form(24, 9, 8)}
RESIDUALS = {"none": None, "float32": f4_form(24, 9, 8, (0, 0, 0, 3)), "bfloat16": bf16_form(24, 9, 8)}


@pytest.mark.parametrize("residual", RESIDUALS.values(), ids=RESIDUALS)
@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_convolutions_have_the_meanings_values(result, residual):
    op, xs = layer(result, residual)
    check(op, xs)
    assert_bands(op, xs, (1, 4), TARGET)
    first = op.row_rule(*(Spec(x.shape, x.dtype) for x in xs)).first(1)
    few = [x[:1] if i in (0, RESIDUAL) else x for i, x in enumerate(xs)]
    np.testing.assert_array_equal(check(first, few), op.meaning(*xs)[:1])
    assert op.overwrites == ((RESIDUAL,) if residual == result else ())
    assert op.name == "conv2d" and op.work(TARGET).nbytes == 0


@pytest.mark.parametrize("name", TARGETS)
def test_convolutions_on_every_target(name):
    target = emulate_tiles(target_named(name))
    op, xs = layer(bf16_form(24, 5, 4), window=Window((3, 3), (2, 2), (1, 1, 1, 1)), activation=NONE)
    check(op, xs, target)
    assert_bands(op, xs, (1, 2), target)


def test_a_residual_is_overwritten():
    form = bf16_form(24, 9, 8)
    op, xs = layer(form, form)
    node, want = apply(op, *(cg.Var(x.shape, x.dtype) for x in xs)), op.meaning(*xs)
    (got,) = kernel_result(node, xs, "reverse", xs[RESIDUAL], TARGET)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("c", [24, 40, 64])
def test_depthwise_convolutions(c):
    for window in (WINDOW, Window((5, 5), (2, 2), (2, 2, 2, 2)), Window((3, 9), (1, 1), (1, 4, 1, 4), (1, 1))):
        shape = ConvShape(c, 9, 8, c, TARGET, window, c)
        source = bf16_form(c, 9, 8, window.halo(9, 8))
        filters, scale = (RNG.integers(-3, 4, x).astype("f4") for x in ((c, 1, *window.kernel), c))
        xs = [images(source), pack_wide_depthwise(shape, filters, scale), pack_tile_bias(shape, scale)]
        op = WideDepthwise(shape, 0, 2, source, bf16_form(c, *shape.result), None, RELU)
        check(op, xs)
        assert_bands(op, xs, (1, 3), TARGET)
        assert op.name == "depthwise" and op.work(TARGET).nbytes == 0
        ones = pack_wide_depthwise(shape, filters, np.ones(c, "f4"))
        np.testing.assert_array_equal(pack_wide_depthwise(shape, filters, None), ones)
        scaled = pack_wide_depthwise(shape, filters * scale.reshape(c, 1, 1, 1), None)
        np.testing.assert_array_equal(xs[1], scaled)


def test_images_are_rounded_from_blocks_and_from_planes():
    blocks, planes = f4_form(40, 7, 6), RNG.standard_normal((2, 3, 7, 6)).astype("f4")
    numbers = blocks.to_blocked(RNG.standard_normal(blocks.logical).astype("f4"))
    for op, x in (
        (TileImages(blocks, bf16_form(40, 7, 6)), numbers),
        (TileImages(None, bf16_form(3, 7, 6, lanes=4)), planes),
    ):
        want = check(op, [x])
        assert_bands(op, [x], (1, 3), TARGET)
        first = op.row_rule(Spec(x.shape, x.dtype)).first(1)
        np.testing.assert_array_equal(check(first, [x[:1]]), want[:1])
        assert op.name == "to_tiles"
    with pytest.raises(ShapeError, match=r"are not \[2, 3, 7, 6\]"):
        TileImages(None, bf16_form(3, 7, 6, lanes=4)).infer(Spec((2, 4, 7, 6), np.dtype("f4")))


POOLS = {
    "max": MaxPool((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), False),
    "mean": AvgPool((2, 2), (2, 2), (0, 0, 0, 0), (1, 1), False, False),
}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_pools_of_bfloat16_images(pool):
    source = bf16_form(40, 8, 6)
    op = BlockedPool(pool, (source,), bf16_form(40, 4, 3))
    x = images(source)
    check(op, [x])
    assert_bands(op, [x], (1, 2), TARGET)


def test_concats_halos_and_sums_of_bfloat16_images():
    parts = [bf16_form(c, 5, 4) for c in (20, 30)]
    xs = [images(form) for form in parts]
    check(BlockedConcat(cg_concat(), tuple(parts), bf16_form(50, 5, 4)), xs)
    spoilt = xs[0].copy()
    spoilt[:, :, 0] = convert(np.float32(7), BFLOAT16.dtype)
    np.testing.assert_array_equal(check(ClearHalo(parts[0]), [spoilt]), xs[0])
    check(ColumnSum(parts[0]), [xs[0]])
    assert ColumnSum(parts[0]).infer(parts[0].spec).dtype == np.float32


def cg_concat():
    """The logical op of a concat of channels."""
    x = cg.Var((1, 2), name="x")
    return cg.concat([x, x], 1).op


def test_filters_are_rounded_after_their_factors():
    shape = ConvShape(32, 1, 4, 32, TARGET)
    filters, scale = RNG.standard_normal((32, 32, 1, 1)).astype("f4"), RNG.standard_normal(32).astype("f4")
    source = bf16_form(32, 1, 4, NO_HALO)
    op = TileConv(shape, 0, 2, source, f4_form(32, 1, 4))
    x = images(source)
    got = op.meaning(x, pack_layer(shape, filters, scale), pack_tile_bias(shape, None))
    rounded = convert(convert(filters * scale[:, None, None, None], BFLOAT16.dtype), np.dtype("f4"))
    plain = source.plain(convert(x, np.dtype("f4")))
    assert_near(op.result.plain(got), np.einsum("kc,nchw->nkhw", rounded[:, :, 0, 0], plain), "float32 products")
