"""Ops on frames of volumes: kernels against the meaning, the views of windows, what is refused."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.kernels.target import target_named
from cgraph.ops.physical.frames import (
    Depth,
    FramesConv,
    FromFrames,
    PadFrames,
    PoolFrames,
    ToFrames,
    stack_filters,
)
from tests.support.kernels import TARGETS, view_of
from tests.support.ops import kernel_result
from tests.support.tolerance import assert_close

RNG = np.random.default_rng(0)


def frames(n=2, d=5, c=3, h=4, w=6, dtype="float32"):
    return RNG.normal(size=(n * d, c, h, w)).astype(dtype)


def run(op, x, target):
    (got,) = kernel_result(apply(op, cg.Var(x.shape, x.dtype)), [x], "all", target=target_named(target))
    assert_close(got, op.meaning(x))
    return got


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_volumes_go_to_frames_and_back(dtype, target):
    x = RNG.normal(size=(2, 3, 5, 4, 6)).astype(dtype)
    flat = run(ToFrames(), x, target)
    np.testing.assert_array_equal(flat[5 + 2, 1], x[1, 1, 2])
    np.testing.assert_array_equal(run(FromFrames(2), flat, target), x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("before, after", [(1, 2), (0, 1), (3, 0)])
def test_frames_of_zeros_surround_each_volume(before, after, target):
    x = frames()
    got = run(PadFrames(2, before, after), x, target).reshape(2, -1, 3, 4, 6)
    np.testing.assert_array_equal(got[:, before : before + 5], x.reshape(2, 5, 3, 4, 6))
    assert not got[:, :before].any() and not got[:, before + 5 :].any()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "uint8"])
@pytest.mark.parametrize("shape", [(3, 4, 6), (3, 5, 1), (16, 4, 4)])  # elements that lanes divide or not
def test_pools_along_the_depth(shape, dtype, target):
    x = (frames(2, 6, *shape) * 20 + 100 * (dtype == "uint8")).astype(dtype)
    kinds = (("max", False), ("mean", False), ("mean", True))
    for kind, count_pad in kinds if x.dtype.kind == "f" else kinds[:1]:
        got = run(PoolFrames(2, 3, kind, 3, 2, (1, 0), 1, count_pad), x, target)
        assert got.shape == (6, *shape) and got.dtype == dtype


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 4, 6), (3, 5, 1), (16, 4, 4)])
def test_a_nan_is_the_largest_of_the_frames_around_it(shape, dtype, target):
    x = frames(2, 6, *shape, dtype)
    x[7, 0, 0, 0] = np.nan
    assert np.isnan(run(PoolFrames(2, 6, "max", 3, 1, (1, 1), 1), x, target)[6:9, 0, 0, 0]).all()


@pytest.mark.parametrize("target", TARGETS)
def test_a_window_of_one_frame_takes_every_second_from_the_third_on(target):
    x = frames(2, 6)
    got = run(PoolFrames(2, 2, "max", 1, 2, (-2, 0), 1), x, target)
    np.testing.assert_array_equal(got, x[[2, 4, 8, 10]])


def test_windows_of_frames_are_images_that_overlap():
    x, depth = frames(2, 5), Depth(2, 3, 2)
    stack = depth.stack(x, 4)
    assert stack.shape == (4, 12, 4, 6)
    np.testing.assert_array_equal(stack[3, 4:7], x[5 + 2 + 1])
    assert not stack[:, 3::4].any()
    view = depth.stacked(view_of(x), 1)
    assert view.shape == (2, 9, 4, 6) and view.strides[0] == 2 * x.strides[0]


def test_frames_that_are_not_adjacent_are_refused():
    with pytest.raises(ValueError, match="not adjacent; copy them first"):
        Depth(1, 2).stacked(view_of(frames()[:, :2]), 0)


def test_filters_of_stacked_frames():
    f = RNG.normal(size=(4, 3, 2, 3, 3)).astype("float32")
    flat = stack_filters(f, 8)
    assert flat.shape == (4, 16, 3, 3)
    np.testing.assert_array_equal(flat[:, 8:11], f[:, :, 1])
    assert not flat[:, 3:8].any() and not flat[:, 11:].any()


def test_a_convolution_of_frames_means_that_of_volumes():
    x, f = RNG.normal(size=(2, 3, 5, 6, 6)).astype("float32"), RNG.normal(size=(4, 3, 2, 3, 3)).astype("float32")
    op = FramesConv((2, 1), (1, 0, 0, 1), (1, 1), 1, Depth(2, 2, 3))
    want = cg.conv3d(x, f, (3, 2, 1), (0, 1, 0, 0, 0, 1)).eval()
    got = op.meaning(ToFrames().meaning(x), f)
    assert_close(FromFrames(2).meaning(got), np.array(want))
    assert op.infer(cg.Var((10, 3, 6, 6)).spec, cg.Var(f.shape).spec).shape == got.shape
    with pytest.raises(ShapeError, match="do not fit frames"):
        op.infer(cg.Var((10, 3, 6, 6)).spec, cg.Var((4, 3, 3, 3, 3)).spec)


def test_filters_and_frames_of_other_axes_or_channels_are_refused():
    op = FramesConv((1, 1), (0, 0, 0, 0), (1, 1), 1, Depth(2, 3, 1))
    x, f = (10, 3, 4, 6), (5, 3, 3, 2, 2)
    f4 = np.dtype("f4")
    assert op.infer(Spec(x, f4), Spec(f, f4)) == Spec((6, 5, 3, 5), f4)
    for shape, window in (
        (x, f[:4]),
        (x, (*f, 1)),
        (x[:3], f),
        ((*x, 1), f),
        (x, (5, 2, 3, 2, 2)),
        (x, (5, 3, 2, 2, 2)),
    ):
        with pytest.raises(ShapeError, match="do not fit frames"):
            op.infer(Spec(shape, f4), Spec(window, f4))


@pytest.mark.parametrize("volumes, taps, stride", [(2, 3, 1), (1, 4, 2), (3, 2, 3), (2, 5, 1), (2, 6, 1), (1, 1, 4)])
def test_windows_of_each_volume_are_stacked(volumes, taps, stride):
    """One more tap than a volume has frames gives no window."""
    depth, x = Depth(volumes, taps, stride), frames(volumes, 5)
    each = x.reshape(volumes, 5, 3, 4, 6)
    starts = range(0, 5 - taps + 1, stride)
    assert depth.windows(len(x)) == len(starts) and depth.frames(len(x)) == 5
    want = [each[v, i : i + taps].reshape(-1, 4, 6) for v in range(volumes) for i in starts]
    np.testing.assert_array_equal(depth.stack(x, 3), np.reshape(want, (-1, taps * 3, 4, 6)))
    wide = depth.stack(x, 4).reshape(-1, taps, 4, 4, 6)
    np.testing.assert_array_equal(wide[:, :, :3].reshape(-1, taps * 3, 4, 6), depth.stack(x, 3))
    assert not wide[:, :, 3].any()
