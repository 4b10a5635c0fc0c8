"""Filters that change between runs, on tiles: packed as constants, and their gradient of blocked images."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.kernels.conv.transpose_calls import TransposedShape
from cgraph.kernels.target import target_named
from cgraph.kernels.tile_conv.calls import pack_tile_filters
from cgraph.kernels.tile_conv.filter_grad_calls import TileFilterGrad
from cgraph.kernels.tile_conv.transposed_calls import pack_tile_transposed
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from cgraph.ops.conv import ConvFilters
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.tile_filters import PackTileFilters, PackTileTransposed, TileConvFilters
from tests.support.emulated import emulate_tiles
from tests.support.kernels import ORDERS, TARGETS
from tests.support.ops import kernel_result, scattered
from tests.support.tiles import bfloat16_bits, floats_of
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(9)
WINDOW = Window((2, 3), (2, 1), (1, 0, 1, 2), (1, 2))
every_target = pytest.mark.parametrize("target", [emulate_tiles(target_named(name)) for name in TARGETS], ids=TARGETS)


SHAPES = {
    "a convolution": lambda target: (PackTileFilters(ConvShape(35, 9, 8, 40, target, WINDOW)), (40, 35, 2, 3)),
    "a transposed one": lambda target: (
        PackTileTransposed(TransposedShape(35, 9, 8, 40, target, WINDOW, (1, 0))),
        (35, 40, 2, 3),
    ),
}


@every_target
@pytest.mark.parametrize("case", SHAPES.values(), ids=SHAPES)
def test_filters_are_packed_as_numpy_packs_them(case, target):
    op, shape = case(target)
    f = RNG.standard_normal(shape).astype("f4")
    node = apply(op, cg.Var(shape))
    pack = pack_tile_filters if isinstance(op, PackTileFilters) else pack_tile_transposed
    want = pack(op.layer, bfloat16_bits(f))
    assert node.shape == want.shape and node.dtype == want.dtype
    np.testing.assert_array_equal(op.meaning(f), want)
    for order, given in zip(ORDERS, (f, scattered(f), f)):
        np.testing.assert_array_equal(kernel_result(node, [given], order, target=target)[0], want)


def gradient(target, is_plain=False):
    shape = ConvShape(5, 6, 7, 6, target, WINDOW, 1, is_plain)
    form = Form(2, 6, *shape.result, shape.lanes)
    source = None if is_plain else Form(2, 5, 6, 7, shape.lanes, "f4", WINDOW.halo(6, 7))
    return TileConvFilters(TileFilterGrad(shape, 2), source, form)


@every_target
@pytest.mark.parametrize("is_plain", [False, True])
def test_the_gradient_is_that_of_rounded_images(is_plain, target):
    op = gradient(target, is_plain)
    x, g = (RNG.standard_normal(shape).astype("f4") for shape in ((2, 5, 6, 7), op.gradient.logical))
    xs = [x if is_plain else op.source.to_blocked(x), op.gradient.to_blocked(g)]
    node = apply(op, *(cg.Var(v.shape) for v in xs))
    assert node.shape == (6, 5, 2, 3) and op.name == "conv_filters"
    conv = ConvFilters(WINDOW.stride, WINDOW.pad, WINDOW.dilation, 1, WINDOW.kernel)
    want = conv.meaning(*(floats_of(bfloat16_bits(v)) for v in (x, g)))
    assert_near(op.meaning(*xs), want, "normal products")
    assert_near(kernel_result(node, xs, "reverse", target=target)[0], want, "normal products")


def test_forms_are_checked_and_multiply_adds_counted():
    op = gradient(emulate_tiles(target_named("host")))
    x, g = op.source.spec, op.gradient.spec
    for bad in ((g, g), (x, x)):
        with pytest.raises(ShapeError, match="is not of the form"):
            op.infer(*bad)
    rows, columns = op.plan.shape.result
    assert op.multiply_adds(x, g) == 2 * rows * columns * 6 * 5 * 2 * 3
