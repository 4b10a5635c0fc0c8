"""Random convolution networks: lowered equals reference, on every target, any halo, odd channels, batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.lowering.image_lowerings import Lowering
from cgraph.lowering.lower import fills_of
from cgraph.ops.physical.conv import BlockedConv
from cgraph.ops.physical.conv_layer import LEAST_FILTERS
from cgraph.ops.physical.conv_transpose import BlockedConvTranspose
from cgraph.ops.physical.filters import BlockedConvFilters
from cgraph.ops.physical.lanes import (
    BlockedPoolIndices,
    BlockedRoiAlign,
    BlockedRoiAlignGrad,
    PlainRoiAlign,
    ToBlocked,
    ToPlain,
)
from cgraph.record import replace
from tests.support.kernels import TARGETS
from tests.support.networks import POOLED, SMOOTH, networks, normal
from tests.support.tolerance import assert_near


def assert_layers_near(got, want, factor=1):
    assert got.dtype == want.dtype
    assert_near(got, want, "channel-blocked layers", factor * np.abs(want).max(initial=1e-6))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=40)
@given(network=networks())
def test_lowered_equals_reference(target, network):
    image, outputs = network
    value = np.random.default_rng(1).normal(size=image.shape).astype(image.dtype)
    got = cg.compile(outputs, [image], engine=CpuEngine(target=target, poison=True))(value)
    for a, b in zip(got, evaluate(outputs, {image: value})):
        assert_layers_near(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=30)
@given(network=st.sampled_from((SMOOTH, POOLED)).flatmap(networks))
def test_lowered_gradients_equal_reference(target, network):
    image, (result, _) = network
    rng = np.random.default_rng(2)
    variables = [x for x in post_order([result]) if isinstance(x, cg.Var)]
    total = cg.sum(result * normal(rng, result, 1, result.shape))
    gradients = cg.gradient(total, variables)
    value = rng.normal(size=image.shape).astype(image.dtype)
    got = cg.compile(gradients, [image], engine=CpuEngine(target=target, poison=True))(value)
    for a, b in zip(got, evaluate(gradients, {image: value})):
        assert_layers_near(a, b, 20)


@settings(max_examples=15)
@given(network=networks())
def test_strategies_and_threads_give_the_same_bits_of_a_network(network):
    image, outputs = network
    value = np.random.default_rng(1).normal(size=image.shape).astype(image.dtype)
    want = cg.compile(outputs, [image], memory="one_each", threads=1)(value)
    for options in ({"threads": 3}, {"memory": "strip_packing"}, {"engine": CpuEngine(poison=True)}):
        for a, b in zip(cg.compile(outputs, [image], **options)(value), want):
            np.testing.assert_array_equal(a, b)


def test_a_frozen_var_is_a_constant():
    x, f = cg.Var((1, 4, 6, 6), name="x"), cg.Var((8, 4, 3, 3), name="f")
    f.assign(np.random.default_rng(0).normal(size=f.shape).astype("float32"))
    function = cg.compile(cg.conv2d(x, f, 1, 1), [x], freeze=[f])
    assert [n.name for n in function.compiled.layout.steps][:2] != ["conv2d", "conv2d"]
    value = np.ones(x.shape, "float32")
    want = evaluate([cg.conv2d(x, f, 1, 1)], {x: value})[0]
    f.assign(np.zeros(f.shape, "float32"))
    assert_layers_near(function(value), want)


def test_a_training_step_stays_in_blocks_between_its_convolutions():
    x, f, g = cg.Var((2, 16, 8, 8), name="x"), cg.Var((32, 16, 3, 3), name="f"), cg.Var((16, 32, 3, 3), name="g")
    y = cg.max_pool2d(cg.relu(cg.conv2d(x, f, 1, 1)), 2)
    total = cg.sum(cg.square(cg.conv2d(y, g, 1, 1)))
    steps = cg.compile(cg.gradient(total, [f, g]), [x]).compiled.layout.steps
    moved = [n.op for n in steps if isinstance(n.op, (ToBlocked, ToPlain))]
    assert len(moved) == 1  # of x, which is given in no blocks
    assert {type(n.op) for n in steps} > {BlockedConv, BlockedConvTranspose, BlockedConvFilters, BlockedPoolIndices}


def test_features_of_boxes_that_nobody_reads_in_lanes_are_made_plain():
    x = cg.Var((2, 8, 12, 12), name="x")
    y = cg.conv2d(x, normal(np.random.default_rng(0), x, 0.1, (8, 8, 3, 3)), 1, 1)
    boxes, zero = np.array([[1, 1, 9, 9]], "float32"), np.zeros(1, np.int64)
    seen = cg.reshape(cg.roi_align_levels([y], boxes, zero, zero, (6, 6), (1.0,)), (1, -1))
    steps = cg.compile(seen @ np.ones((8 * 36, 4), "float32"), [x]).compiled.layout.steps
    assert PlainRoiAlign in {type(n.op) for n in steps}
    assert not any(isinstance(n.op, ToPlain) for n in steps)


def test_a_residual_that_nobody_else_reads_is_overwritten_by_a_result_with_a_frame():
    x, rng = cg.Var((1, 64, 12, 12), name="x"), np.random.default_rng(0)
    wide, point = (normal(rng, x, 0.1, (64, 64, size, size)) for size in (3, 1))
    small = cg.conv2d(x, point, 2)
    joined = cg.conv2d(x, point) + cg.resize(small, (12, 12), "nearest")
    layout = cg.compile(cg.conv2d(joined, wide, 1, 1), [x], winograd=False).compiled.layout
    node = next(n for n in layout.steps if isinstance(n.op, BlockedConv) and n.op.residual is not None)
    assert node.op.result.halo == (1, 1, 1, 1) and node.op.residual == node.op.result
    assert layout.values[layout.value_of[node]].overwritable


@pytest.mark.parametrize(
    ("name", "filters", "groups"),
    [("winograd4", (64, 64, 3, 3), 1), ("depthwise", (64, 1, 3, 3), 64), ("conv2d", (64, 64, 1, 1), 1)],
)
def test_a_step_says_which_way_it_is_computed(name, filters, groups):
    x = cg.Var((1, 64, 28, 28), name="x")
    f = normal(np.random.default_rng(0), x, 0.1, filters)
    steps = cg.compile(cg.conv2d(x, f, 1, filters[2] // 2, 1, groups), [x]).compiled.layout.steps
    assert [n.op.name for n in steps] == ["to_blocked", name, "to_plain"]


def test_layers_with_the_same_filters_share_the_packed_ones():
    x, y = cg.Var((1, 16, 12, 12), name="x"), cg.Var((1, 16, 20, 20), name="y")
    f = cg.Const(normal(np.random.default_rng(0), x, 0.1, (16, 16, 3, 3)))
    steps = cg.compile([cg.conv2d(x, f, 1, 1), cg.conv2d(y, f, 1, 1)], [x, y], winograd=False).compiled.layout.steps
    first, second = (n.operands[1] for n in steps if isinstance(n.op, BlockedConv))
    assert first is second


@pytest.mark.parametrize(
    ("filters", "groups"), [((8, 4, 3, 3), 1), ((3, 8, 3, 3), 1), ((8, 4, 3, 3), 2), ((8, 1, 3, 3), 8)]
)
def test_the_gradient_for_filters_is_lowered_where_lanes_are_full_and_of_one_group(filters, groups):
    x, f = cg.Var((2, filters[1] * groups, 6, 6), name="x"), cg.Var(filters, name="f")
    rng = np.random.default_rng(0)
    f.assign(rng.normal(size=filters).astype("float32"))
    found = cg.gradient(cg.sum(cg.square(cg.conv2d(x, f, 1, 1, groups=groups))), f)
    function, value = cg.compile(found, [x]), rng.normal(size=x.shape).astype("float32")
    ops = [n.op for n in function.compiled.layout.steps]
    assert any(isinstance(op, BlockedConvFilters) for op in ops) == (groups == 1 and filters[0] >= LEAST_FILTERS)
    assert_layers_near(function(value), evaluate([found], {x: value})[0])


def test_features_of_boxes_whose_pixels_are_summed_stay_in_lanes():
    x = cg.Var((2, 16, 12, 12), name="x")
    rng = np.random.default_rng(0)
    y = cg.conv2d(x, normal(rng, x, 0.1, (16, 16, 3, 3)), 1, 1)
    boxes, zero = np.array([[1, 1, 9, 9]], "float32"), np.zeros(1, np.int64)
    seen = cg.sum(cg.roi_align_levels([y], boxes, zero, zero, (6, 6), (1.0,)), (2, 3))
    function = cg.compile(seen, [x])
    kinds = {type(n.op) for n in function.compiled.layout.steps}
    assert BlockedRoiAlign in kinds and PlainRoiAlign not in kinds
    value = rng.normal(size=x.shape).astype("f4")
    assert_layers_near(function(value), cg.compile(seen, [x], engine="reference")(value))


@pytest.mark.parametrize("window", [1, 3, 5])
def test_images_that_two_results_share_have_one_halo(window):
    """The halo of one reader of one result; else images would be copied between the two halos."""
    x, rng = cg.Var((1, 16, 9, 9), name="x"), np.random.default_rng(0)

    def conv(image, size=1):
        return cg.conv2d(image, normal(rng, x, 0.1, (16, 16, size, size)), 1, size // 2)

    a, b = conv(x), conv(x)
    product, total = a * b, cg.tanh(a) + b
    outputs = [conv(product), conv(total, window), conv(b, 3)]
    steps = cg.compile(outputs, x).compiled.layout.steps
    assert sum(isinstance(n.op, ToBlocked) for n in steps) == 1
    assert sum(isinstance(n.op, ToPlain) for n in steps) == len(outputs)


def test_features_of_boxes_and_their_gradient_stay_in_lanes():
    x = cg.Var((2, 8, 12, 12), name="x")
    rng = np.random.default_rng(0)
    first, second = (normal(rng, x, 0.1, (8, 8, 3, 3)) for _ in range(2))
    y = cg.conv2d(x, first, 1, 1)
    boxes, batch, level = np.array([[1, 1, 9, 9]], "float32"), np.zeros(1, np.int64), np.zeros(1, np.int64)
    seen = cg.conv2d(cg.roi_align_levels([y], boxes, batch, level, (6, 6), (1.0,)), second, 1, 1)
    steps = cg.compile(cg.gradient(cg.sum(cg.square(seen)), x), [x]).compiled.layout.steps
    moved = [n.op for n in steps if isinstance(n.op, (ToBlocked, ToPlain))]
    assert len(moved) == 2  # of x and of its gradient
    assert {type(n.op) for n in steps} > {BlockedRoiAlign, BlockedRoiAlignGrad}


def test_a_halo_has_the_zero_point_of_the_first_convolution_that_reads_the_image_or_else_a_concat_of_it():
    x, y, z = (cg.Var((1, 8, 6, 6), "uint8", name) for name in "xyz")
    inner = cg.concat([x, y], 1)
    outer = cg.concat([inner, z], 1)
    row = Lowering(lambda node, context: True, lambda b, node: node)
    laned = [x, y, inner, z, outer]
    for readers, want in (
        (((x, 3), (outer, 9)), {x: 3, y: 9, inner: 9, z: 9, outer: 9}),
        (((outer, 9), (x, 3), (outer, 5)), {x: 3, y: 9, inner: 9, z: 9, outer: 9}),
        (((inner, 4), (outer, 9)), {x: 4, y: 4, inner: 4, z: 9, outer: 9}),
        ((), dict.fromkeys((x, y, inner, z), 0)),
    ):
        rows = {cg.expand_dims(v, i): replace(row, fill=lambda _, n=n: n) for i, (v, n) in enumerate(readers)}
        assert fills_of(laned, rows) == want
