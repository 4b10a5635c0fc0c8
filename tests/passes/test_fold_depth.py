"""Volumes become frames, with the same values; between convolutions they stay frames."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cuda.engine import CudaEngine
from cgraph.ir.traverse import post_order
from cgraph.ops.conv import Conv2d, Conv3d
from cgraph.ops.physical.frames import FramesConv, FromFrames, PadFrames, PoolFrames, ToFrames
from cgraph.passes.fold_depth import fold_depth
from tests.support.kernels import TARGETS
from tests.support.rewrites import assert_left, assert_same_values, ops_of
from tests.support.tolerance import assert_close

RNG = np.random.default_rng(0)


def volume(n=2, c=5, shape=(5, 6, 7), dtype="float32"):
    return cg.Var((n, c, *shape), dtype, name="x")


def filters(*shape, dtype="float32"):
    return cg.Const(RNG.normal(size=shape).astype(dtype))


def frames(x):
    """Volumes that become frames, since a convolution of windows of one element computes them."""
    return cg.conv3d(x, filters(x.shape[1], x.shape[1], 1, 1, 1))


def kinds(node):
    return {type(n.op) for n in post_order(fold_depth((node,)))}


@pytest.mark.parametrize("window", [(3, 3, 3), (1, 3, 3), (3, 1, 1), (2, 3, 1), (1, 1, 1), (5, 1, 2)])
@pytest.mark.parametrize("stride, pad", [(1, 0), (1, (1, 1, 1)), ((2, 1, 2), (2, 0, 1, 1, 1, 0))])
def test_convolutions_keep_their_values(window, stride, pad):
    node = cg.conv3d(volume(), filters(4, 5, *window), stride, pad)
    assert Conv3d not in kinds(node) and (FramesConv in kinds(node)) == (window[0] > 1)
    assert_same_values(fold_depth, node)


@pytest.mark.parametrize("groups, dilation", [(1, 2), (2, 1), (6, (2, 1, 2)), (3, (1, 2, 1))])
def test_groups_and_dilation_become_a_convolution_for_each_depth(groups, dilation):
    node = cg.conv3d(volume(c=6), filters(6, 6 // groups, 2, 3, 2), (2, 1, 1), 1, dilation, groups)
    assert ops_of(fold_depth((node,)))["conv2d"] == 2 and FramesConv not in kinds(node)
    assert_same_values(fold_depth, node)


@pytest.mark.parametrize(
    "ceil, window, stride", [*product([False, True], [(2, 3, 3), 3, (1, 2, 2), (3, 1, 1)], [1, 2])]
)
def test_pools_keep_their_values(ceil, window, stride):
    x = frames(volume(shape=(6, 7, 5)))
    assert_same_values(fold_depth, cg.max_pool3d(x, window, stride, ceil=ceil))
    for count_pad in (False, True):
        node = cg.avg_pool3d(x, window, stride, ceil=ceil, count_pad=count_pad)
        assert PoolFrames in kinds(node) or window == (1, 2, 2)
        assert_same_values(fold_depth, node)


def test_padded_and_dilated_pools_keep_their_values():
    x = frames(volume())
    assert_same_values(fold_depth, cg.max_pool3d(x, 3, 2, 1), cg.max_pool3d(x, 2, 1, 1, 2))
    assert_same_values(fold_depth, cg.avg_pool3d(x, 3, 2, 1), cg.avg_pool3d(x, 3, 1, 1, count_pad=True))


UNEQUAL = {"window": (3, 2, 2), "stride": (2, 1, 3), "pad": (1, 0, 1, 0, 1, 0)}  # along each axis, on each side


@pytest.mark.parametrize("ceil", [False, True])
def test_pools_keep_their_values_where_axes_and_sides_differ(ceil):
    x = frames(volume(shape=(5, 6, 7)))
    for more in ({}, {"dilation": (1, 2, 3)}, {"dilation": (2, 1, 1), "stride": (1, 2, 1)}):
        assert_same_values(fold_depth, cg.max_pool3d(x, **UNEQUAL | {"ceil": ceil} | more))
    for count_pad in (False, True):
        assert_same_values(fold_depth, cg.avg_pool3d(x, **UNEQUAL, ceil=ceil, count_pad=count_pad))
    across = {"window": (1, 3, 2), "stride": (1, 2, 1), "pad": (0, 1, 0, 0, 0, 1)}
    assert_same_values(fold_depth, cg.max_pool3d(x, **across), cg.avg_pool3d(x, **across))


@pytest.mark.parametrize("axis", [0, 2, 3, -1])
def test_a_concat_along_another_axis_keeps_its_values(axis):
    x = volume()
    y, z = (cg.conv3d(x, filters(5, 5, 3, 3, 3), 1, 1) for _ in range(2))
    node = cg.conv3d(cg.concat([y, z], axis), filters(4, 5, 1, 1, 1))
    assert_same_values(fold_depth, node)


def residual_network(x):
    """Convolutions with factors, residuals, activations, a pool and a concat between them."""
    y = cg.conv3d(x, filters(8, x.shape[1], 3, 3, 3), 1, 1)
    y = cg.relu(y * cg.Const(np.float32(RNG.normal(size=(8, 1, 1, 1)))) + np.float32(0.5))
    z = cg.conv3d(y, filters(8, 8, 1, 3, 3), 1, (0, 1, 1)) + y
    z = cg.concat([cg.max_pool3d(z, 3, 1, 1), y, cg.tanh(z)], 1)
    return cg.conv3d(z, filters(4, 24, 3, 1, 1), (2, 1, 1), (1, 0, 0))


def test_volumes_stay_frames_between_convolutions():
    node = residual_network(volume())
    counts = ops_of(fold_depth((node,)))
    assert counts["to_frames"] == counts["from_frames"] == 1
    assert_same_values(fold_depth, node)


def test_a_concat_of_frames_and_a_volume_has_the_volumes_values():
    for first in (True, False):
        x = volume()
        y = cg.conv3d(x, filters(5, 5, 3, 3, 3), 1, 1)
        other = cg.Var(y.shape, name="other")
        node = cg.conv3d(cg.concat([y, other] if first else [other, y], 1), filters(4, 10, 3, 1, 1))
        assert FramesConv in kinds(node)
        assert_same_values(fold_depth, node)


def test_a_value_for_each_channel_is_computed_and_broadcast_to_frames():
    x = volume(n=1)
    y = cg.conv3d(x, filters(5, 5, 3, 3, 3), 1, 1)
    gate = cg.sigmoid(cg.mean(y, (2, 3, 4), keepdims=True))
    node = cg.conv3d(y * cg.broadcast_to(gate, y.shape), filters(4, 5, 1, 1, 1))
    assert ops_of(fold_depth((node,)))["from_frames"] == 2  # the mean's operand, and the result
    assert_same_values(fold_depth, node)
    many = cg.conv3d(volume(), filters(5, 5, 3, 3, 3), 1, 1)  # a value for each volume is not one for each frame
    assert_same_values(fold_depth, many * cg.broadcast_to(cg.mean(many, (2, 3, 4), keepdims=True), many.shape))


def test_what_gains_nothing_is_left():
    x, f = volume(), cg.Var((4, 5, 3, 3, 3), name="f")
    assert_left(fold_depth, cg.conv3d(x, f))
    assert_left(fold_depth, cg.conv3d(volume(c=2), filters(3, 2, 3, 3, 3)))
    assert_left(fold_depth, cg.max_pool3d(volume(c=2), 2), cg.avg_pool3d(x, 2))
    assert_left(fold_depth, cg.max_pool3d(volume(dtype="int32"), 2))
    pooled_first = cg.conv3d(cg.max_pool3d(x, 2), filters(4, 5, 2, 2, 2))
    assert PoolFrames not in kinds(pooled_first) and FramesConv in kinds(pooled_first)
    assert_left(fold_depth, cg.relu(x), cg.max_pool2d(cg.Var((2, 5, 6, 7)), 2))


def test_infinite_filters_meet_the_padding_as_in_the_meaning():
    f = RNG.normal(size=(4, 5, 3, 3, 3)).astype("float32")
    f[0, 0, 0, 0, 0] = np.inf
    assert_same_values(fold_depth, cg.conv3d(volume(), cg.Const(f), 1, 1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("c, dtype", [(3, "float32"), (9, "float32"), (5, "float64")])
def test_kernels_compute_the_values(c, dtype, target):
    x = volume(c=c, dtype=dtype)
    f, g = filters(17, c, 3, 3, 3, dtype=dtype), filters(4, 17, 2, 3, 3, dtype=dtype)
    y = cg.relu(cg.conv3d(x, f, (1, 2, 1), 1) + x.dtype.type(1))
    outputs = [cg.conv3d(y, g, 1, 1), cg.conv3d(cg.max_pool3d(y, 3, 1, 1), g), cg.avg_pool3d(y, 2), y]
    value = RNG.normal(size=x.shape).astype(dtype)
    engines = [CpuEngine(target=target, threads=threads, poison=True) for threads in (1, 3)]
    runs = [cg.compile(outputs, [x], engine=engine)(value) for engine in engines]
    for got, again, want in zip(*runs, cg.compile(outputs, [x], engine="reference")(value)):
        np.testing.assert_array_equal(got, again)
        assert_close(got, want, 20)


@pytest.mark.parametrize("c", [3, 8])
def test_a_simulated_gpu_computes_the_values(c):
    x = volume(c=c, shape=(4, 5, 6))
    y = cg.relu(cg.conv3d(x, filters(8, c, 3, 3, 3), 1, 1))
    node = cg.conv3d(cg.max_pool3d(y, 3, 1, 1), filters(8, 8, 3, 1, 1), 1, (1, 0, 0)) + y
    value = RNG.normal(size=x.shape).astype("float32")
    got, want = (cg.compile([node], [x], engine=e)(value)[0] for e in (CudaEngine(device=-1), "reference"))
    assert_close(got, want, 20)


def test_gradients_are_those_of_the_reference():
    x = volume(n=1)
    y = residual_network(x)
    (gradient,) = cg.gradient(cg.sum(y * y), [x])
    value = RNG.normal(size=x.shape).astype("float32")
    got, want = (cg.compile([gradient], [x], engine=e)(value)[0] for e in ("cpu", "reference"))
    assert_close(got, want, 100)


def test_every_kind_of_node_of_the_pass_appears():
    nodes = kinds(residual_network(volume()))
    assert {ToFrames, FromFrames, PadFrames, PoolFrames, FramesConv, Conv2d} <= nodes


BROADCAST = [(), (7,), (6, 1), (5, 1, 1), (5, 1, 1, 1), (1, 5, 1, 1, 1), (2, 1, 1, 1, 1), (2, 5, 1, 1, 1), (5, 1, 6, 1)]


@pytest.mark.parametrize("shape", BROADCAST, ids=str)
def test_values_that_are_broadcast_to_volumes_are_those_of_their_elements(shape):
    """Only a value for each channel, or one for all, is broadcast to frames; others end the frames."""
    y = cg.conv3d(volume(), filters(5, 5, 3, 3, 3), 1, 1)
    node = cg.conv3d(y * cg.Var(shape, name="factor"), filters(4, 5, 1, 1, 1))
    wanted = 1 if len(shape) < 1 or set(shape) <= {1, 5} and shape[-1] == 1 and shape[-3:-1] != (5, 1) else 2
    assert ops_of(fold_depth((node,)))["to_frames"] == wanted
    assert_same_values(fold_depth, node)


def test_volumes_of_nothing_and_filters_of_nothing_are_left():
    assert_left(fold_depth, cg.conv3d(volume(n=0), filters(4, 5, 3, 3, 3)))
    x = volume(shape=(2, 6, 7))
    nothing = cg.conv3d(x, filters(4, 5, 0, 3, 3), 1, (1, 1, 1))
    assert nothing.size
    assert_left(fold_depth, nothing)
