"""Random networks of convolutions and what stands between them: odd channels, batches, any halo."""

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import cgraph as cg

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
        assume(nodes[-1].size)
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
        lateral = draw(st.sampled_from([y for y in nodes if y.shape[:2] == x.shape[:2]]))
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
