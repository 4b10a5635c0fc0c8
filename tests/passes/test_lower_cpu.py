"""Random convolution networks: lowered equals reference, on every target, any halo, odd channels, batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.ops.physical.blocked import BlockedPlaces, ToBlocked, ToPlain
from cgraph.ops.physical.conv import BlockedConv
from cgraph.ops.physical.conv_transpose import BlockedConvTranspose
from cgraph.ops.physical.filters import BlockedConvFilters
from cgraph.ops.physical.regions import BlockedRoiAlign, BlockedRoiAlignGrad

CHANNELS = (1, 3, 4, 8, 16, 17, 21, 32, 40)


KINDS = "conv conv conv depthwise transposed pool average resize add upsampled concat gate act divide regions".split()
ACTIVATIONS = (cg.sigmoid, cg.tanh, cg.relu6, lambda v: cg.exp(-cg.abs(v)))


# gradients: equal elements of a window, which resizing makes, may be told apart by rounding
SMOOTH = [kind for kind in KINDS if kind != "pool"]
POOLED = [kind for kind in KINDS if kind not in ("resize", "upsampled")]


@st.composite
def networks(draw, kinds=KINDS):
    """A Var of images and a list of nodes that end a random network of convolutions and what stands between them."""
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    pixels = st.integers(3, 14)
    shape = (draw(st.integers(1, 3)), draw(st.sampled_from(CHANNELS)), draw(pixels), draw(pixels))
    image = cg.Var(shape, draw(st.sampled_from(("float32", "float32", "float64"))), name="image")
    nodes = [image]
    for _ in range(draw(st.integers(1, 8))):
        nodes.append(draw_layer(draw, rng, nodes, kinds))
    return image, [nodes[-1], draw(st.sampled_from(nodes))]


def draw_layer(draw, rng, nodes, kinds):
    x = draw(st.sampled_from(nodes[-3:]))
    kind = draw(st.sampled_from(kinds))
    n, c, h, w = x.shape
    if kind in ("conv", "depthwise"):
        return draw_conv(draw, rng, x, kind == "depthwise", nodes)
    if kind == "transposed" and h * w <= 400:
        return draw_transposed(draw, rng, x)
    if kind in ("pool", "average") and min(h, w) >= 3:
        op = cg.max_pool2d if kind == "pool" else cg.avg_pool2d
        pad = draw(st.sampled_from((0, 1, (0, 1, 1, 0))))
        return op(x, 3, draw(st.integers(1, 2)), pad, draw(st.booleans()))
    if kind == "resize":
        return draw_resized(draw, x, (draw(st.integers(1, 20)), draw(st.integers(1, 20))))
    if kind == "upsampled":
        lateral = draw(st.sampled_from([y for y in nodes if y.shape[1] == c]))
        return lateral + draw_resized(draw, x, lateral.shape[2:])
    if kind == "regions":
        return draw_regions(draw, rng, x, draw(st.sampled_from([y for y in nodes if y.shape[:2] == x.shape[:2]])))
    same = [y for y in nodes if y.shape == x.shape]
    if kind == "concat":
        return cg.concat([x, draw(st.sampled_from(same)), x], 1)
    if kind == "gate":
        return x * cg.sigmoid(cg.global_avg_pool(x)) + normal(rng, x, 1, (c, 1, 1))
    if kind == "divide":
        return x / cg.sqrt(cg.var(x, (0, 2, 3), keepdims=True) + 0.1) if draw(st.booleans()) else 1 / (cg.abs(x) + 0.5)
    if kind == "norm":
        mean, variance = cg.mean(x, (0, 2, 3)), cg.var(x, (0, 2, 3))
        return cg.batch_norm(x, normal(rng, x, 1, c), normal(rng, x, 1, c), mean, variance + 0.1)
    if kind == "add":
        return cg.relu(x + draw(st.sampled_from(same)))
    return draw(st.sampled_from(ACTIVATIONS))(x)


def draw_resized(draw, x, shape):
    mode = draw(st.sampled_from(("nearest", "linear")))
    return cg.resize(x, shape, mode, draw(st.sampled_from(("half_pixel", "asymmetric", "align_corners"))))


def draw_regions(draw, rng, x, y):
    """What some boxes see of two sizes of images, which may be the same."""
    count = draw(st.integers(1, 4))
    low = rng.uniform(-2, 9, (count, 2))
    boxes = np.concatenate([low, low + rng.uniform(0, 9, (count, 2))], 1).astype(x.dtype)
    batch, level = rng.integers(0, x.shape[0], count), rng.integers(0, 2, count)
    shape = draw(st.integers(3, 5)), draw(st.integers(3, 5))
    return cg.roi_align_levels([x, y], boxes, batch, level, shape, (1.0, 0.5))


def draw_conv(draw, rng, x, depthwise, nodes):
    n, c, h, w = x.shape
    r, dilation = draw(st.sampled_from([k for k in ((1, 1), (3, 1), (3, 1), (3, 2), (5, 1)) if fits(k, h, w)]))
    k = c if depthwise else draw(st.sampled_from(CHANNELS))
    groups = c if depthwise else draw(st.sampled_from(groups_of(c, k)))
    filters = draw_filters(draw, rng, x, (c // groups * r * r) ** -0.5, (k, c // groups, r, r))
    half = r // 2 * dilation
    pad = draw(st.sampled_from((half, half, (half, half + 2, half + 1, half))))
    y = cg.conv2d(x, filters, draw(st.integers(1, 2)), pad, dilation, groups)
    y = draw_factors(draw, rng, y)
    residual = [v for v in nodes if v.shape == y.shape]
    if residual and draw(st.booleans()):
        y = y + draw(st.sampled_from(residual))
    return draw_bounds(draw, y)


def draw_transposed(draw, rng, x):
    n, k, h, w = x.shape
    r, stride = draw(st.sampled_from(((1, 1), (2, 2), (3, 1), (3, 2), (4, 2))))
    c = draw(st.sampled_from(CHANNELS))
    groups = draw(st.sampled_from(groups_of(c, k)))
    filters = draw_filters(draw, rng, x, (k // groups * r * r) ** -0.5, (k, c // groups, r, r))
    pad = draw(st.sampled_from((0, r // 2, (0, r // 2, r // 2, 0))))
    y = cg.conv_transpose2d(x, filters, stride, pad, 1, groups, draw(st.integers(0, stride - 1)))
    return draw_bounds(draw, draw_factors(draw, rng, y))


def draw_filters(draw, rng, x, deviation, shape):
    """Constant filters, or a Var that holds them."""
    values = normal(rng, x, deviation, shape)
    return values if draw(st.booleans()) else cg.Var(shape, x.dtype, name="filters").assign(values)


def draw_factors(draw, rng, y):
    """Perhaps a factor and a term for each channel."""
    if not draw(st.booleans()):
        return y
    shape = (y.shape[1], 1, 1)
    return y * normal(rng, y, 1, shape) + normal(rng, y, 1, shape)


def draw_bounds(draw, y):
    return draw(st.sampled_from((lambda v: v, cg.relu, lambda v: cg.clip(v, -0.5, 6))))(y)


def fits(window, h, w):
    """A filter of this size and dilation is not larger than the padded image."""
    r, dilation = window
    return (r - 1) * dilation < min(h, w) + 2 * (r // 2 * dilation)


def groups_of(c, k):
    return [g for g in (1, 1, 2, 4) if c % g == 0 and k % g == 0]


def normal(rng, x, deviation, shape):
    """A constant of the dtype of `x`."""
    return rng.normal(0, deviation, shape).astype(x.dtype)


def assert_near(got, want, factor=1):
    assert got.dtype == want.dtype
    error = factor * np.abs(want).max(initial=1e-6) * (3e-5 if got.dtype == np.float32 else 1e-12)
    np.testing.assert_allclose(got, want, rtol=0, atol=error)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["host", "avx2", "portable"])
@settings(max_examples=40)
@given(network=networks())
def test_lowered_equals_reference(target, network):
    image, outputs = network
    value = np.random.default_rng(1).normal(size=image.shape).astype(image.dtype)
    got = cg.compile(outputs, [image], engine=CpuEngine(target=target, poison=True))(value)
    for a, b in zip(got, evaluate(outputs, {image: value})):
        assert_near(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["host", "avx2", "portable"])
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
        assert_near(a, b, 20)


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
    assert_near(function(value), want)


def test_a_training_step_stays_in_blocks_between_its_convolutions():
    x, f, g = cg.Var((2, 16, 8, 8), name="x"), cg.Var((32, 16, 3, 3), name="f"), cg.Var((16, 32, 3, 3), name="g")
    y = cg.max_pool2d(cg.relu(cg.conv2d(x, f, 1, 1)), 2)
    total = cg.sum(cg.square(cg.conv2d(y, g, 1, 1)))
    steps = cg.compile(cg.gradient(total, [f, g]), [x]).compiled.layout.steps
    moved = [n.op for n in steps if isinstance(n.op, (ToBlocked, ToPlain))]
    assert len(moved) == 1  # of x, which is given in no blocks
    assert {type(n.op) for n in steps} > {BlockedConv, BlockedConvTranspose, BlockedConvFilters, BlockedPlaces}


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
