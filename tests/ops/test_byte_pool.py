"""Average pools of bytes: what floats between two quantisations give, layouts, bands of rows, what is refused."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, NoKernelError
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.kernels.pool8.rounding_margin import Mean
from cgraph.kernels.target import host_target, target_named
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.physical.byte_pool import BytePool
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.lanes import BlockedPool
from tests.ops.test_lanes import MOVES
from tests.support.cuts import assert_bands
from tests.support.kernels import TARGETS
from tests.support.ops import kernel_result

MEAN = Mean(0.125, 7, 0.25, 90, 60, 200)


def pool(count_pad, mean=MEAN):
    return BytePool(*MOVES, False, count_pad, mean)


def drawn(shape):
    return np.random.default_rng(2).integers(0, 256, shape, "uint8")


@pytest.mark.parametrize("count_pad", [False, True])
def test_a_mean_of_bytes_is_that_of_the_dequantised_floats(count_pad):
    """Scales are powers of two, so no operation on floats rounds except the divisions."""
    x, op = drawn((2, 5, 9, 11)), pool(count_pad)
    floats = (x.astype("f8") - 7) * 0.125
    window, stride, pad, dilation = MOVES
    mean = AvgPool(window, stride, pad, dilation, False, count_pad).meaning(floats)
    want = np.clip(np.rint((mean / 0.25).astype("f4")) + 90, 60, 200)
    np.testing.assert_array_equal(op.meaning(x), want)
    assert op.infer(Spec(x.shape, x.dtype)) == Spec(want.shape, np.dtype("u1"))
    assert len(np.unique(want)) > 20


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("count_pad", [False, True])
def test_blocked_images_and_bands_have_the_bits_of_the_meaning(count_pad, target):
    target, op, x = target_named(target), pool(count_pad), drawn((2, 19, 9, 11))
    want = op.meaning(x)
    source = Form(*x.shape, target.lanes, "u1", (2, 1, 1, 3), 5)
    result = Form(*want.shape, target.lanes, "u1", (1, 0, 2, 1), 9)
    blocked = BlockedPool(op, (source,), result)
    node = apply(blocked, cg.Var(source.shape, "uint8"))
    (got,) = kernel_result(node, [source.to_blocked(x)], "reverse", target=target)
    np.testing.assert_array_equal(result.plain(got), want)
    top, left, bottom, right = result.halo
    inside = (slice(None), slice(None), slice(top, -bottom), slice(left, -right or None))
    got[inside] = 9
    assert (got == 9).all()
    assert_bands(blocked, [source.to_blocked(x)], [1, 2], target=target)


def test_floats_are_refused_and_plain_images_have_no_kernel():
    with pytest.raises(DTypeError, match="needs uint8, not float32"):
        pool(False).infer(Spec((1, 2, 9, 9), np.dtype("f4")))
    with pytest.raises(NoKernelError):
        pool(False).work(host_target(), Spec((1, 2, 9, 9), np.dtype("u1")))
