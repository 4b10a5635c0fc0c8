"""Convolutions that leave out taps in the padding read images without a halo; all others read theirs."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.kernels.target import host_target
from cgraph.ops.physical.conv import BlockedConv
from tests.support.kernels import TARGETS
from tests.support.tolerance import assert_close

RNG = np.random.default_rng(5)
NONE = (0, 0, 0, 0)


def filters(k, c, window=3):
    return RNG.normal(0, 0.1, (k, c, window, window)).astype("float32")


def dilated(x, dilation, pad=None, f=None):
    f = filters(16, x.shape[1]) if f is None else f
    return cg.conv2d(x, f, 1, dilation if pad is None else pad, dilation)


def layers(*outputs, **options):
    steps = cg.compile(list(outputs), [image_of(outputs[0])], **options).compiled.layout.steps
    return [node.op for node in steps if isinstance(node.op, BlockedConv)]


def image_of(node):
    while node.operands:
        node = node.operands[0]
    return node


def image(c=16, size=14):
    return cg.Var((1, c, size, size), name="image")


def test_images_have_no_halo_as_wide_as_the_dilation():
    (layer,) = layers(dilated(image(), 12))
    assert layer.shape.is_clipped and layer.source.halo == NONE


@pytest.mark.parametrize("case", ["infinite", "rows without taps", "no gain", "a filter of the input"])
def test_layers_that_multiply_padding_read_their_halo(case):
    x, f = image(), filters(16, 16)
    if case == "infinite":
        f[0, 0, 0, 0] = np.inf
    options = {"rows without taps": (dilated(x, 12, 30), 30), "no gain": (dilated(x, 1), 1)}
    if case == "a filter of the input":
        g = cg.Var(f.shape, name="f").assign(f)
        node, halo = dilated(x, 12, f=g), 12
    else:
        node, halo = options.get(case, (dilated(x, 12, f=f), 12))
    (layer,) = layers(node, winograd=False)
    assert layer.source.halo == (halo,) * 4


def test_images_with_other_readers_have_the_halo_of_those():
    y = cg.relu(cg.conv2d(image(), filters(16, 16, 1)))
    outputs = [dilated(y, 12), dilated(y, 6), cg.conv2d(y, filters(16, 16), 1, 1)]
    point, *others = layers(*outputs, winograd=False)
    assert point.result.halo == (1, 1, 1, 1)
    assert sorted(op.shape.is_clipped for op in others) == [False, True, True]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [7, 14, 20])
def test_a_pyramid_of_dilations_has_the_values_of_the_reference(size, target):
    """In bands, too, and on any number of threads."""
    x = image(5, size)
    y = cg.relu(cg.conv2d(x, filters(24, 5), 1, 1))
    parts = [dilated(y, d, f=filters(8, 24)) for d in (2, 3, 6, 12) if d < size]
    z = cg.conv2d(cg.concat([*parts, y], 1), filters(4, 24 + 8 * len(parts)), 1, 1)
    value = RNG.normal(size=x.shape).astype("float32")
    engines = [CpuEngine(target, threads=n, poison=True) for n in (1, 3)]
    whole, threads = (cg.compile(z, [x], engine=engine)(value) for engine in engines)
    bands = cg.compile(z, [x], engine=engines[0], bands=3)(value)
    np.testing.assert_array_equal(whole, threads)
    np.testing.assert_array_equal(whole, bands)
    assert_close(whole, cg.compile(z, [x], engine="reference")(value), 20)


def test_a_cut_layer_is_not_rounded():
    x = image(32)
    y = cg.conv2d(x, filters(32, 32), 1, 1)
    near, far = layers(dilated(y, 12, f=filters(32, 32)), precision="bf16")
    assert (near.pairs, far.pairs, far.source.halo) == (host_target().bf16 != "", False, NONE)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("stride", "pad", "dilation"),
    [((1, 1), (9, 4, 7, 5), (9, 5)), ((2, 1), (8, 0, 3, 6), (8, 6)), ((1, 2), (0, 11, 12, 2), (6, 11))],
)
def test_layers_whose_axes_and_sides_differ_have_the_values_of_the_reference(stride, pad, dilation, target):
    x = cg.Var((2, 16, 20, 23), name="image")
    y = cg.relu(cg.conv2d(x, filters(24, 16), 1, 1))
    z = cg.relu(cg.conv2d(y, RNG.normal(0, 0.1, (9, 24, 3, 2)).astype("float32"), stride, pad, dilation))
    value = RNG.normal(size=x.shape).astype("float32")
    engine = CpuEngine(target, threads=1, poison=True)
    whole, bands = (cg.compile(z, [x], engine=engine, bands=n)(value) for n in (None, 3))
    np.testing.assert_array_equal(whole, bands)
    assert_close(whole, cg.compile(z, [x], engine="reference")(value), 20)
