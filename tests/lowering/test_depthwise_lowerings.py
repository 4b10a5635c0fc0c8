"""Depthwise convolutions of few channels stay plain, unless their images are channel-blocked."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ops.physical.lanes import ToBlocked
from cgraph.ops.physical.plain_depthwise import PlainDepthwise
from tests.support.kernels import TARGETS
from tests.support.tolerance import assert_close

RNG = np.random.default_rng(3)


def filters(*shape):
    return RNG.normal(size=shape).astype("float32")


def image(c=3, size=40):
    return cg.Var((2, c, size, size), name="image")


def blurred(x, f=None):
    c = x.shape[1]
    return cg.conv2d(x, filters(c, 1, 3, 3) if f is None else f, 1, 1, groups=c)


def kinds(node, x):
    return [type(n.op) for n in cg.compile(node, [x]).compiled.layout.steps]


@pytest.mark.parametrize("c", [2, 3, 4])
def test_few_channels_of_plain_images_stay_plain(c):
    x = image(c)
    steps = kinds(cg.relu(blurred(x) * filters(c, 1, 1) + filters(c, 1, 1)), x)
    assert steps == [PlainDepthwise]


@pytest.mark.parametrize("case", ["many channels", "blocked images", "infinite filters", "filters of the input"])
def test_all_others_are_blocked(case):
    x, f = image(5 if case == "many channels" else 3), filters(3, 1, 3, 3)
    node = blurred(x)
    if case == "blocked images":
        node = blurred(cg.conv2d(x, filters(4, 3, 3, 3), 1, 1))
    if case == "infinite filters":
        f[0, 0, 0, 0] = np.inf
        node = blurred(x, f)
    if case == "filters of the input":
        node = blurred(x, cg.Var(f.shape, name="f").assign(f))
    assert PlainDepthwise not in kinds(node, x)


@pytest.mark.parametrize("target", TARGETS)
def test_a_pyramid_of_blurred_pictures_has_the_values_of_the_reference(target):
    """In bands, too, and on any number of threads; the last layer is blocked."""
    x = image()
    y = cg.relu(blurred(x))
    z = cg.conv2d(blurred(y) - x, filters(16, 3, 3, 3), 2, 1)
    value = RNG.normal(size=x.shape).astype("float32")
    engines = [CpuEngine(target, threads=n, poison=True) for n in (1, 3)]
    whole, threads = (cg.compile([y, z], [x], engine=engine)(value) for engine in engines)
    bands = cg.compile([y, z], [x], engine=engines[0], bands=4)(value)
    for got, again, cut, want in zip(whole, threads, bands, cg.compile([y, z], [x], engine="reference")(value)):
        np.testing.assert_array_equal(got, again)
        np.testing.assert_array_equal(got, cut)
        assert_close(got, want, 20)


def test_images_come_in_blocks_only_where_a_layer_needs_them():
    x = image()
    assert kinds(cg.conv2d(blurred(x), filters(16, 3, 3, 3), 1, 1), x).count(ToBlocked) == 0


@pytest.mark.parametrize("side", range(4))
@pytest.mark.parametrize("dilation", [1, 2])
def test_images_are_blocked_where_a_window_may_lie_in_the_padding_of_any_side(side, dilation):
    """The window of 3 rows and 2 columns, dilated, is as long as the padding, or one longer."""
    x, f = image(), filters(3, 1, 3, 2)
    value = RNG.normal(size=x.shape).astype("float32")
    extent = 2 * dilation + 1 if side % 2 == 0 else dilation + 1
    for pad, plain in ((extent - 1, True), (extent, False)):
        pads = [pad if i == side else 0 for i in range(4)]
        node = cg.conv2d(x, f, 1, tuple(pads), dilation, groups=3)
        assert (PlainDepthwise in kinds(node, x)) is plain
        assert_close(cg.compile(node, [x])(value), cg.compile(node, [x], engine="reference")(value), 20)
