"""Small networks made by hand, one for each thing that lowering may do wrong in silence, quick enough for every check.

Random ones stand in `test_lower.py`.
"""

from collections.abc import Callable

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.traverse import post_order
from cgraph.ops.physical.conv import BlockedConv
from cgraph.ops.physical.lanes import ClearHalo, ToBlocked, ToPlain
from cgraph.ops.pool import MaxPoolIndices
from cgraph.record import Record
from tests.lowering.test_lower import assert_layers_near

RNG = np.random.default_rng(0)


def const(*shape: int) -> np.ndarray:
    return RNG.normal(0, 0.3, shape).astype("float32")


def var(*shape: int) -> cg.Var:
    return cg.Var(shape, "float32", "v").assign(const(*shape))


def conv(x: cg.Node, filters: int = 17, size: int = 3) -> cg.Node:
    return cg.conv2d(x, const(filters, x.shape[1], size, size), 1, size // 2)


def transposed_twice(x: cg.Node) -> cg.Node:
    """Apply the same filters in two transposed layers of unequal strides and pads: each packs them its own way."""
    f = cg.Const(const(17, 17, 3, 3))
    y = cg.relu(cg.conv_transpose2d(cg.conv2d(x, const(17, 17, 1, 1)), f, (2, 1), (1, 0)))
    return cg.relu(cg.conv_transpose2d(y, f, (1, 2), (0, 1)))


def twice(x: cg.Node, filters: np.ndarray) -> cg.Node:
    """Convolve with the same filters twice, each time with other factors of the channels."""
    f = cg.Const(filters)
    y = cg.relu(cg.conv2d(x, f, 1, 1) * const(17, 1, 1))
    return cg.relu(cg.conv2d(y, f, 1, 1) * const(17, 1, 1))


class Network(Record):
    """What stands between two convolutions, the second of which reads a frame and all lanes.

    Fields
        between: makes nodes of the first convolution's result
        channels: of that result
        moved: how often a value enters or leaves lanes, the image and the results included
        cleared: how many frames are written anew
    """

    between: Callable[[cg.Node], cg.Node | list[cg.Node]]
    channels: int = 17
    moved: int = 2
    cleared: int = 0


NETWORKS = {
    "nothing": Network(lambda x: x),
    "whole lanes": Network(cg.exp, 16, cleared=1),
    "odd channels, zero": Network(cg.tanh),
    "odd channels, not finite": Network(lambda x: cg.log(cg.abs(x) + 0.5), moved=4),
    "odd channels, divided": Network(lambda x: 1 / (cg.abs(x) + 0.5), moved=4),
    "whole lanes, divided": Network(lambda x: 1 / (cg.abs(x) + 0.5), 16, cleared=1),
    "a frame that stays": Network(lambda x: cg.sin(x) * cg.relu(x)),
    "a frame of ones": Network(lambda x: cg.cos(x), 16, cleared=1),
    "a factor and a term": Network(lambda x: x * const(17, 1, 1) + const(17, 1, 1)),
    "a term for each channel of whole lanes": Network(lambda x: cg.tanh(x) + const(16, 1, 1), 16, cleared=1),
    "a term for each channel of odd ones": Network(lambda x: cg.tanh(x) + const(17, 1, 1), cleared=1),
    "a residual": Network(lambda x: cg.relu(conv(x) + x)),
    "a residual behind relu": Network(lambda x: cg.relu(conv(x)) + x),
    "a factor behind relu": Network(lambda x: cg.relu(x) * const(17, 1, 1)),
    "a Var's factor": Network(lambda x: cg.relu(x) * var(17, 1, 1), 17, 3, cleared=1),
    "a factor of each row": Network(lambda x: cg.tanh(x) * const(7, 1), moved=4),
    "a factor of each image": Network(lambda x: cg.tanh(x) * const(2, 1, 1, 1), 16),
    "a gate": Network(lambda x: x * cg.sigmoid(cg.mean(x, (2, 3), keepdims=True)), 17, 3, cleared=1),
    "a gate for each image": Network(lambda x: x * cg.sigmoid(conv(cg.mean(x, (2, 3), keepdims=True), 1, 1)), 17, 5, 1),
    "filters with two factors": Network(lambda x: twice(x, const(17, 17, 3, 3))),
    "another dtype": Network(lambda x: cg.tanh(x.astype("float64")).astype("float32")),
    "a comparison that is shown": Network(lambda x: [x, x > 0.1], 16, 3),
    "whole numbers that are shown": Network(lambda x: [x, cg.floor(x).astype("int32")], 16, 3),
    "three axes": Network(lambda x: cg.reshape(cg.tanh(cg.reshape(x, (2, 17, 56))), x.shape), moved=4),
    "a largest pool": Network(lambda x: cg.max_pool2d(x, 3, 1, 1)),
    "a mean pool": Network(lambda x: cg.avg_pool2d(x, 3, 2, 1)),
    "a mean pool that counts its frame": Network(lambda x: cg.avg_pool2d(x, 3, 2, 1, count_pad=True)),
    "resized": Network(lambda x: cg.resize(x, (5, 9), "linear")),
    "joined, odd": Network(lambda x: cg.concat([x, conv(x, 5)], 1)),
    "joined, whole": Network(lambda x: cg.concat([x, conv(x, 5)], 1), 16),
    "joined, odd in the middle": Network(lambda x: cg.concat([x, conv(x, 5), x], 1), 16),
    "joined with the image": Network(lambda x: cg.concat([x, var(2, 3, 7, 8)], 1), 17, 4),
    "joined along rows": Network(lambda x: cg.concat([x, cg.tanh(x)], 2), 17, 5),
    "filters that two transposed layers share": Network(transposed_twice),
    "transposed": Network(lambda x: cg.conv_transpose2d(x, const(17, 8, 3, 3), 2, 1)),
    "depthwise": Network(lambda x: cg.relu(cg.conv2d(x, const(16, 1, 3, 3), 1, 1, groups=16)), 16),
    "another stride, pad and dilation for each axis and side": Network(
        lambda x: cg.conv2d(x, const(17, 17, 3, 2), (2, 1), (0, 1, 2, 3), (1, 2))
    ),
    "groups with unequal windows": Network(
        lambda x: cg.conv2d(x, const(16, 8, 2, 3), (1, 2), (1, 0, 0, 2), groups=2), 16
    ),
    "depthwise with unequal windows": Network(
        lambda x: cg.conv2d(x, const(16, 1, 3, 2), (1, 2), (2, 0, 0, 1), (2, 1), groups=16), 16
    ),
    "transposed with unequal windows": Network(
        lambda x: cg.conv_transpose2d(x, const(17, 9, 3, 2), (2, 3), (1, 0, 2, 1), (1, 2), output_pad=(1, 2))
    ),
    "a residual behind unequal windows": Network(
        lambda x: cg.relu(cg.conv2d(x, const(17, 17, 3, 2), 1, (2, 1, 0, 0)) + cg.tanh(x))
    ),
    "a largest pool of unequal windows": Network(lambda x: cg.max_pool2d(x, (3, 2), (2, 1), (1, 0, 0, 1))),
    "a largest pool with holes": Network(lambda x: cg.max_pool2d(x, (2, 3), 1, (1, 2, 0, 1), dilation=(2, 1))),
    "a mean pool of unequal windows": Network(lambda x: cg.avg_pool2d(x, (3, 2), (1, 2), (1, 0, 2, 1))),
    "a mean pool of unequal windows that counts its frame": Network(
        lambda x: cg.avg_pool2d(x, (3, 2), (2, 1), (0, 1, 2, 0), count_pad=True)
    ),
    "sums over pixels": Network(lambda x: [x, cg.sum(x, (2, 3)), cg.sum(cg.tanh(x), (0, 2, 3))]),
    "sums over channels": Network(lambda x: [x, cg.sum(x, (1, 2, 3))], 17, 3),
    "a value that is shown": Network(lambda x: [cg.relu(x), x], 17, 3),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_lowered_equals_reference(name):
    network = NETWORKS[name]
    image = cg.Var((2, 8, 7, 8), name="image")
    found = network.between(conv(image, network.channels))
    found = found if isinstance(found, list) else [found]
    outputs = [conv(found[0]), *found[1:]]
    value = np.random.default_rng(1).normal(size=image.shape).astype("float32")
    function = cg.compile(outputs, [image], engine=CpuEngine(poison=True))
    for got, want in zip(function(value), evaluate(outputs, {image: value})):
        assert_layers_near(got, want)
    steps = function.compiled.layout.steps
    assert sum(isinstance(n.op, ToBlocked | ToPlain) for n in steps) == network.moved
    assert sum(isinstance(n.op, ClearHalo) for n in steps) == network.cleared


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("channels", [16, 17])
def test_gradients_of_lowered_layers_equal_reference(channels, dtype):
    image = cg.Var((2, 3, 8, 8), dtype, "image")
    first, second = (cg.Var(shape, dtype, "f") for shape in ((channels, 3, 3, 3), (8, channels, 3, 3)))
    for x in (first, second):
        x.assign(RNG.normal(0, 0.2, x.shape).astype(dtype))
    y = cg.max_pool2d(cg.tanh(cg.conv2d(image, first, 1, 1)), 2)
    total = cg.sum(cg.square(cg.conv2d(y, second, 1, 1)))
    outputs = [total, *cg.gradient(total, [first, second, image])]
    value = RNG.normal(size=image.shape).astype(dtype)
    for got, want in zip(
        cg.compile(outputs, [image], engine=CpuEngine(poison=True))(value), evaluate(outputs, {image: value})
    ):
        assert_layers_near(got, want, 20)


def test_places_that_are_shown_are_whole_numbers_of_the_plain_image():
    image = cg.Var((1, 8, 6, 6), name="image")
    pooled = cg.max_pool2d(cg.relu(conv(image)), 2)
    gradient = cg.gradient(cg.sum(cg.square(pooled)), image)
    (places,) = (n for n in post_order([gradient]) if isinstance(n.op, MaxPoolIndices))
    outputs = [pooled, places, gradient]
    value = np.random.default_rng(1).normal(size=image.shape).astype("float32")
    got = cg.compile(outputs, [image], engine=CpuEngine(poison=True))(value)
    want = evaluate(outputs, {image: value})
    np.testing.assert_array_equal(got[1], want[1])
    for a, b in zip((got[0], got[2]), (want[0], want[2])):
        assert_layers_near(a, b)


def test_what_is_made_of_a_plain_result_stays_plain():
    """The gradient of filters is no image, though it has four axes; nor is what is made of it."""
    image, filters = cg.Var((2, 8, 8, 8), name="image"), cg.Var((16, 8, 3, 3), name="f").assign(const(16, 8, 3, 3))
    gradient = cg.gradient(cg.sum(cg.square(cg.conv2d(image, filters, 1, 1))), filters)
    moved = []
    for outputs in ([gradient], [cg.tanh(filters - 0.1 * gradient)]):
        steps = cg.compile(outputs, [image]).compiled.layout.steps
        moved.append(sum(isinstance(n.op, ToBlocked | ToPlain) for n in steps))
    assert moved[0] == moved[1]


def test_winograd_only_where_it_is_allowed():
    image = cg.Var((1, 64, 28, 28), name="image")
    y = cg.conv2d(image, const(64, 64, 3, 3), 1, 1)
    for winograd, name in ((True, "winograd4"), (False, "conv2d")):
        steps = cg.compile(y, [image], winograd=winograd).compiled.layout.steps
        assert [n.op.name for n in steps] == ["to_blocked", name, "to_plain"]


def test_taps_that_meet_padding_are_left_out_if_filters_are_finite():
    image, filters = cg.Var((1, 16, 14, 14), name="image"), const(16, 16, 3, 3)
    x = const(1, 16, 14, 14)
    for is_finite in (True, False):
        filters[0, 0, 0, 0] = 1 if is_finite else np.inf
        y = cg.relu(cg.conv2d(image, filters, 1, 12, 12) + image)
        function, in_bands = cg.compile(y, [image]), cg.compile(y, [image], bands=2)
        steps = [n.op for n in function.compiled.layout.steps if isinstance(n.op, BlockedConv)]
        assert [op.shape.is_clipped for op in steps] == [is_finite]
        np.testing.assert_array_equal(function(x), in_bands(x))
        assert np.isnan(function(x)).any() != is_finite


def test_the_gradient_for_filters_reads_few_channels_where_they_are_blocked():
    image, filters = cg.Var((2, 16, 8, 8), name="image"), cg.Var((16, 3, 3, 3), name="f").assign(const(16, 3, 3, 3))
    total = cg.sum(cg.square(cg.conv2d(cg.relu(conv(image, 3)), filters, 1, 1)))
    steps = cg.compile(cg.gradient(total, filters), [image]).compiled.layout.steps
    assert sum(isinstance(n.op, ToBlocked | ToPlain) for n in steps) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pool", [cg.max_pool2d, cg.avg_pool2d], ids=["largest", "mean"])
def test_gradients_of_layers_whose_axes_and_sides_differ_equal_reference(pool, dtype):
    image = cg.Var((2, 5, 9, 8), dtype, "image")
    first, second = (cg.Var(shape, dtype, "f") for shape in ((16, 5, 3, 2), (9, 16, 2, 3)))
    for x in (first, second):
        x.assign(RNG.normal(0, 0.2, x.shape).astype(dtype))
    y = cg.tanh(cg.conv2d(image, first, (1, 2), (2, 0, 1, 3), (2, 1)))
    y = pool(y, (3, 2), (2, 1), (1, 0, 0, 1))
    z = cg.conv2d(y, second, (2, 1), (0, 1, 2, 0), (1, 2))
    total = cg.sum(cg.square(z) * np.linspace(0.5, 1.5, z.size, dtype=dtype).reshape(z.shape))
    outputs = [total, *cg.gradient(total, [first, second, image])]
    value = RNG.normal(size=image.shape).astype(dtype)
    got = cg.compile(outputs, [image], engine=CpuEngine(poison=True))(value)
    for a, b in zip(got, evaluate(outputs, {image: value}), strict=True):
        assert_layers_near(a, b, 20)
