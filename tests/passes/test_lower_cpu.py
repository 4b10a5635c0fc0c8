"""Random convolution networks: lowered equals reference, on every target, any halo, odd channels, batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate

CHANNELS = (1, 3, 4, 8, 16, 17, 21, 32, 40)


@st.composite
def networks(draw):
    """A Var of images and a list of nodes that end a random network of convolutions and what stands between them."""
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    pixels = st.integers(3, 14)
    shape = (draw(st.integers(1, 2)), draw(st.sampled_from(CHANNELS)), draw(pixels), draw(pixels))
    image = cg.Var(shape, name="image")
    nodes = [image]
    for _ in range(draw(st.integers(1, 8))):
        nodes.append(draw_layer(draw, rng, nodes))
    return image, [nodes[-1], draw(st.sampled_from(nodes))]


def draw_layer(draw, rng, nodes):
    x = draw(st.sampled_from(nodes[-3:]))
    kinds = "conv", "conv", "conv", "depthwise", "pool", "average", "add", "concat", "gate", "act"
    kind = draw(st.sampled_from(kinds))
    n, c, h, w = x.shape
    if kind in ("conv", "depthwise"):
        return draw_conv(draw, rng, x, kind == "depthwise", [y for y in nodes if y.ndim == 4])
    if kind in ("pool", "average") and min(h, w) >= 3:
        op = cg.max_pool2d if kind == "pool" else cg.avg_pool2d
        return op(x, 3, draw(st.integers(1, 2)), draw(st.integers(0, 1)), draw(st.booleans()))
    same = [y for y in nodes if y.shape == x.shape]
    if kind == "concat":
        return cg.concat([x, draw(st.sampled_from(same)), x], 1)
    if kind == "gate":
        return x * cg.sigmoid(cg.global_avg_pool(x)) + rng.normal(size=(c, 1, 1)).astype("float32")
    if kind == "add":
        return cg.relu(x + draw(st.sampled_from(same)))
    return draw(st.sampled_from((cg.sigmoid, cg.tanh, cg.relu6, lambda v: cg.exp(-cg.abs(v)))))(x)


def draw_conv(draw, rng, x, depthwise, images):
    n, c, h, w = x.shape
    r = draw(st.sampled_from([k for k in (1, 3, 3, 5) if k <= min(h, w) + 2]))
    k = c if depthwise else draw(st.sampled_from(CHANNELS))
    groups = c if depthwise else draw(st.sampled_from([g for g in (1, 1, 2, 4) if c % g == 0 and k % g == 0]))
    filters = rng.normal(0, (c // groups * r * r) ** -0.5, (k, c // groups, r, r)).astype("float32")
    y = cg.conv2d(x, filters, draw(st.integers(1, 2)), draw(st.integers(0, r // 2)) or r // 2, 1, groups)
    if draw(st.booleans()):
        y = y * rng.normal(size=(k, 1, 1)).astype("float32") + rng.normal(size=(k, 1, 1)).astype("float32")
    residual = [v for v in images if v.shape == y.shape]
    if residual and draw(st.booleans()):
        y = y + draw(st.sampled_from(residual))
    return draw(st.sampled_from((lambda v: v, cg.relu, lambda v: cg.clip(v, -0.5, 6))))(y)


def assert_near(got, want):
    scale = np.abs(want).max(initial=1e-6)
    np.testing.assert_allclose(got, want, rtol=0, atol=3e-5 * scale)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["host", "avx2", "portable"])
@settings(max_examples=40)
@given(network=networks())
def test_lowered_equals_reference(target, network):
    image, outputs = network
    value = np.random.default_rng(1).normal(size=image.shape).astype("float32")
    got = cg.compile(outputs, [image], engine=CpuEngine(target=target, poison=True))(value)
    for a, b in zip(got, evaluate(outputs, {image: value})):
        assert_near(a, b)


@settings(max_examples=15)
@given(network=networks())
def test_strategies_and_threads_give_the_same_bits_of_a_network(network):
    image, outputs = network
    value = np.random.default_rng(1).normal(size=image.shape).astype("float32")
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
