"""Ops on channel-blocked frames: the plain op's values, zeros around them, what is refused."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.kernels.target import target_named
from cgraph.ops.physical.blocked_frames import BlockedFrames, ToBlockedFrames, ToPlainFrames
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.frames import PadFrames, PoolFrames, ToFrames
from cgraph.record import replace
from tests.support.kernels import TARGETS
from tests.support.ops import kernel_result
from tests.support.tolerance import assert_close

RNG = np.random.default_rng(0)
HALO = (1, 2, 3, 1)


def form(target, dtype="f4", n=10):
    return Form(n, 5, 6, 7, target_named(target).channels_of(dtype), dtype, HALO)


def run(op, x, target):
    (got,) = kernel_result(apply(op, cg.Var(x.shape, x.dtype)), [x], "all", target=target_named(target))
    assert_close(got, op.meaning(x))
    return got


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_volumes_go_to_blocked_frames_and_back(dtype, target):
    of, x = form(target, dtype), RNG.normal(size=(2, 5, 5, 6, 7)).astype(dtype)
    blocked = run(ToBlockedFrames(of, 2), x, target)
    np.testing.assert_array_equal(blocked, of.to_blocked(ToFrames().meaning(x)))
    np.testing.assert_array_equal(run(ToPlainFrames(of, 2), blocked, target), x)


def test_other_volumes_are_refused():
    for shape in ((2, 5, 5, 6, 8), (1, 5, 10, 6, 7)):
        with pytest.raises(ShapeError, match="are not the frames"):
            ToBlockedFrames(form("host"), 2).infer(cg.Var(shape).spec)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "op", [PadFrames(2, 1, 2), PoolFrames(2, 3, "max", 3, 2, (1, 1), 1), PoolFrames(2, 5, "mean", 3, 1, (1, 1), 1)]
)
def test_padding_and_pools_keep_the_zeros_around_frames(op, target):
    of = form(target)
    x = RNG.normal(size=of.logical).astype("f4")
    result = replace(of, n=op.infer(cg.Var(x.shape).spec).shape[0])
    got = run(BlockedFrames(op, (of,), result), of.to_blocked(x), target)
    assert_close(result.plain(got), op.meaning(x))
    np.testing.assert_array_equal(got, result.to_blocked(result.plain(got)))
