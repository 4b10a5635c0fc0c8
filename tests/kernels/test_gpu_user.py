"""Users' functions of numbers in blocks of threads: the numbers of the processor, any strides, ends, many axes."""

import math

import numpy as np
import pytest

from cgraph.kernels.team.gpu_signature import ELEMENTS
from cgraph.kernels.user.calls import each_calls
from cgraph.kernels.user_function import user_function
from tests.kernels.test_user import weighted, weighted_by_numpy
from tests.support.gpu import BLOCKS, run_on_gpu
from tests.support.kernels import view_of
from tests.support.tolerance import assert_near


def computed(function, out, *xs):
    (call,) = each_calls(BLOCKS, user_function(function), view_of(out), *map(view_of, xs))
    run_on_gpu([call])
    return call


def draw(*shape, dtype="f4"):
    return np.random.default_rng(0).uniform(-2, 2, shape).astype(dtype)


@pytest.mark.parametrize("count", [1, ELEMENTS - 1, ELEMENTS, 2 * ELEMENTS + 1])
def test_elements_end_with_the_last_one(count):
    x, room = draw(count, dtype="f8"), np.full(count + 1, 77.0)
    call = computed(lambda x: x * 2, room[:-1], x)
    assert call.kernel.family == "user.gpu.each" and call.tasks == -(-count // ELEMENTS)
    np.testing.assert_array_equal(room[:-1], x * 2)
    assert room[-1] == 77


def test_operands_keep_their_order_in_any_strides():
    x, y = draw(7, 90), draw(90, dtype="f8")
    for a, b in ((x, y), (x[::-1, ::2], y[:45]), (x.T, y[:, None]), (x, np.broadcast_to(y[:1], 90)), (x[:, :1], y)):
        shape = np.broadcast_shapes(a.shape, b.shape)
        room = np.full((*shape[:-1], 2 * shape[-1]), 77.0)
        computed(weighted, room[..., ::2], a, b)
        np.testing.assert_array_equal(room[..., ::2], weighted_by_numpy(a.astype("f8"), b))
        assert (room[..., 1::2] == 77).all()


@pytest.mark.parametrize("dtype", ["f4", "i2", "u1", "i8", "?"])
def test_every_dtype(dtype):
    x = (draw(300, dtype="f8") * 20).astype(dtype)
    flags, halves = np.zeros(300, "?"), np.zeros(300)
    computed(lambda x: x > 1, flags, x)
    computed(lambda x: x * 0.5, halves, x)
    np.testing.assert_array_equal(flags, x > 1)
    np.testing.assert_array_equal(halves, x * 0.5)


def test_mathematics_and_remainders():
    """Remainders are exact, although GPUs divide."""
    x, y, out = draw(100, dtype="f8"), draw(100, dtype="f8")[::-1].copy(), np.zeros(100)
    computed(lambda x, y: math.exp(-x * x) + math.atan2(x, y) + math.lgamma(abs(x) + 1) + math.gamma(abs(x)), out, x, y)
    want = [math.exp(-a * a) + math.atan2(a, b) + math.lgamma(abs(a) + 1) + math.gamma(abs(a)) for a, b in zip(x, y)]
    assert_near(out, np.array(want), "float64 formulas near zero")
    computed(lambda x, y: np.fmod(x * 1e9, y), out, x, y)
    np.testing.assert_array_equal(out, np.fmod(x * 1e9, y))


def test_the_result_may_be_an_operand():
    x, y = draw(5, 40), draw(5, 40)[::-1].copy()
    want = weighted_by_numpy(x, y).astype("f4")
    computed(weighted, x, x, y)
    np.testing.assert_array_equal(x, want)


def test_walks_of_many_axes_have_the_other_kernel():
    x = draw(*[4] * 6)[::2, ::2, ::2, ::2, ::2, ::2]
    out = np.zeros(x.shape, "f4")
    assert computed(lambda x: x + 1, out, x).kernel.family == "user.each"
    np.testing.assert_array_equal(out, x + 1)
