"""Filters that change between runs: packed by kernels as by NumPy, and the gradient for them of blocked images."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.kernels.conv.transpose_calls import TransposedShape, pack_transposed
from cgraph.kernels.depthwise.calls import pack_depthwise
from cgraph.kernels.filter_grad.calls import FilterGrad
from cgraph.kernels.pack_filters.calls import pack_depthwise_calls
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.pack import pack_conv
from cgraph.kernels.views.window import Window
from cgraph.lowering.lower import lower_images
from cgraph.lowering.options import LoweringOptions
from cgraph.ops.conv import ConvFilters
from cgraph.ops.physical.filters import BlockedConvFilters, PackDepthwise, PackFilters, RoundFilters
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.pairs import pack_pairs, round_to_bfloat16
from cgraph.passes.fuse_epilogues import fuse_epilogues
from cgraph.record import replace
from tests.support.kernels import TARGETS, view_of
from tests.support.ops import kernel_result, scattered
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
WINDOW = Window((2, 3), (2, 1), (1, 0, 1, 2), (1, 2))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("c, k, groups", [(5, 7, 1), (6, 9, 3), (33, 20, 1)])
def test_filters_are_packed_as_numpy_packs_them(c, k, groups, name):
    target = target_named(name)
    shape = ConvShape(c, 6, 7, k, target, WINDOW, groups)
    f = RNG.normal(size=(k, c // groups, 2, 3)).astype("f4")
    op = PackFilters(shape)
    node = apply(op, cg.Var(f.shape))
    for given in (f, scattered(f)):
        np.testing.assert_array_equal(
            kernel_result(node, [given], "all", target=target)[0], pack_conv(shape, f).ravel()
        )
    assert node.shape == (shape.weights_nbytes // 4,) and node.dtype == "float32"


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("c", [3, 16, 37, 64])
def test_depthwise_filters_are_packed_as_numpy_packs_them(c, name):
    """Blocks that are full, and a last one that is not."""
    target = target_named(name)
    shape = ConvShape(c, 6, 7, c, target, WINDOW, c)
    f = RNG.normal(size=(c, 1, 2, 3)).astype("f4")
    node = apply(PackDepthwise(shape), cg.Var(f.shape))
    want = pack_depthwise(shape, f)
    assert node.shape == want.shape
    for given in (f, scattered(f)):
        np.testing.assert_array_equal(kernel_result(node, [given], "all", target=target)[0], want)


def test_depthwise_filters_of_another_shape_are_refused():
    shape = ConvShape(5, 6, 7, 5, host_target(), WINDOW, 5)
    out, f = (view_of(np.zeros(s, "f4")) for s in ((1, 6, shape.lanes), (5, 1, 3, 2)))
    with pytest.raises(ValueError, match=r"filters of shape \(5, 1, 3, 2\) do not fit"):
        pack_depthwise_calls(shape, out, f)


@pytest.mark.parametrize("engine", [*TARGETS, "cuda-sim"])
@pytest.mark.parametrize("c", [8, 19, 48])
def test_depthwise_convolutions_with_computed_filters_read_blocks(c, engine):
    """As a mixture of experts computes filters from the picture; the channels need not fill their blocks."""
    x, share = cg.Var((2, c, 9, 8), name="x"), cg.Var((1, 4), name="share")
    f = cg.reshape(share @ cg.Const(RNG.normal(size=(4, c * 9)).astype("f4")), (c, 1, 3, 3))
    y = cg.relu(cg.conv2d(cg.relu(x), f, 2, 1, groups=c) + cg.Const(RNG.normal(size=(c, 1, 1)).astype("f4")))
    given = RNG.normal(size=x.shape).astype("f4"), RNG.normal(size=share.shape).astype("f4")
    chosen = engine if engine == "cuda-sim" else CpuEngine(target=engine, poison=True)
    function = cg.compile(y, [x, share], engine=chosen)
    want = cg.compile(y, [x, share], engine="reference")(*given)
    assert_near(function(*given), want, "float32 products")
    lowered = lower_images(fuse_epilogues((y,)), host_target(), LoweringOptions())
    assert PackDepthwise in {type(node.op) for node in post_order(lowered)}


def test_transposed_filters_have_their_own_order():
    target = host_target()
    shape = TransposedShape(6, 4, 5, 7, target, Window((2, 3), (2, 1), (1, 0, 0, 2)))
    f = RNG.normal(size=(6, 7, 2, 3)).astype("f4")
    node = apply(PackFilters(shape), cg.Var(f.shape))
    got = kernel_result(node, [f], "all", target=target)[0]
    np.testing.assert_array_equal(got, pack_transposed(shape, f).ravel())
    np.testing.assert_array_equal(node.op.meaning(f), got)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("c", [5, 33])
def test_packed_filters_are_rounded_in_pairs_of_channels(c, name):
    target = target_named(name)
    convolution = ConvShape(c, 6, 7, 20, target, WINDOW)
    transposed = TransposedShape(c, 6, 7, 20, target, Window((3, 2), (2, 3), (1, 0, 0, 1)))
    for shape in (convolution, transposed):
        f = RNG.normal(size=shape.weights_nbytes // 4).astype("f4")
        op = RoundFilters.of(shape)
        node = apply(op, cg.Var(f.shape))
        want = pack_pairs(f.reshape(-1, op.channels, op.width))
        got = kernel_result(node, [f], "reverse", target=target)[0]
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(op.meaning(f), want)
        assert node.shape == want.shape and node.dtype == "int32"
    assert {(p.shape.unroll, p.shape.panel_channels) for p in transposed.phases()} == {(op.channels, op.width)}


def gradient(target, is_plain=False, dtype="f4"):
    lanes = target.channels_of(dtype)
    shape = ConvShape(3 if is_plain else 5, 6, 7, 6, target, WINDOW, 1, is_plain, dtype)
    rows, columns = shape.result
    source = None if is_plain else Form(2, shape.c, 6, 7, lanes, dtype, WINDOW.halo(6, 7))
    return BlockedConvFilters(FilterGrad(shape, 2), source, Form(2, 6, rows, columns, lanes, dtype))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_gradient_for_filters_is_that_of_plain_images(dtype, is_plain, name):
    target = target_named(name)
    op = gradient(target, is_plain, dtype)
    shape, form = op.plan.shape, op.gradient
    x = RNG.normal(size=(2, shape.c, 6, 7)).astype(dtype)
    g = RNG.normal(size=form.logical).astype(dtype)
    xs = [x if op.source is None else op.source.to_blocked(x), form.to_blocked(g)]
    node = apply(op, *(cg.Var(v.shape, v.dtype) for v in xs))
    assert node.shape == (6, shape.c, 2, 3) and node.dtype == dtype and op.name == "conv_filters"
    plain = ConvFilters(WINDOW.stride, WINDOW.pad, WINDOW.dilation, 1, WINDOW.kernel)
    want = plain.meaning(x, g)
    assert_near(op.meaning(*xs), want, "normal products")
    assert_near(kernel_result(node, xs, "reverse", target=target)[0], want, "normal products")


@pytest.mark.parametrize("name", TARGETS)
def test_the_gradient_in_pairs_is_that_of_rounded_images(name):
    target = replace(target_named(name), bf16="emulated")
    op = gradient(target)
    op = replace(op, plan=replace(op.plan, pairs=True))
    x, g = (RNG.normal(size=form.logical).astype("f4") for form in (op.source, op.gradient))
    xs = [op.source.to_blocked(x), op.gradient.to_blocked(g)]
    node = apply(op, *(cg.Var(v.shape) for v in xs))
    plain = ConvFilters(WINDOW.stride, WINDOW.pad, WINDOW.dilation, 1, WINDOW.kernel)
    want = plain.meaning(*map(round_to_bfloat16, (x, g)))
    assert_near(op.meaning(*xs), want, "normal products")
    assert_near(kernel_result(node, xs, "reverse", target=target)[0], want, "normal products")


def test_forms_are_checked_and_multiply_adds_counted():
    op = gradient(host_target())
    x, g = op.source.spec, op.gradient.spec
    for bad in ((g, g), (x, x)):
        with pytest.raises(ShapeError, match="is not of the form"):
            op.infer(*bad)
    rows, columns = op.plan.shape.result
    assert op.multiply_adds(x, g) == 2 * rows * columns * 6 * 5 * 2 * 3
