"""The tile of products and the plain loop: edges, activations, what is added, NaN, whole numbers, unrolled steps."""

import numpy as np
import pytest

from cgraph.kernels.activation.calls import NONE, RELU, RELU6, BoundedActivation, leaky
from cgraph.kernels.gemm.matmul_calls import matmul_calls, matmul_nbytes
from cgraph.kernels.gemm.signature import unroll
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.gemm_tile import gemm_tile
from tests.support.images import activated, workspace
from tests.support.kernels import TARGETS, run_calls, view_of

ACTIVATIONS = [NONE, RELU, RELU6, leaky(0.25), BoundedActivation(-2.0, 3.0, 0.5)]


def computed(out, a, b, bias=None, activation=NONE, target="host", adds=False):
    target = target_named(target)
    views = [view_of(x) for x in (out, a, b)]
    beside = None if bias is None else view_of(bias)
    room = workspace(matmul_nbytes(target, *views, beside, adds))
    calls = matmul_calls(target, *views, beside, activation, room, adds)
    run_calls(calls, target)
    return {call.kernel.family for call in calls}


def whole(seed, *shape):
    """Small whole numbers, whose sums of products are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("f4")


def sizes(target):
    """Rows and columns of whole tiles, and around them."""
    width = 2 * target.lanes_of("f4")
    for m in (3, 5, 14, 17):
        tile = gemm_tile(m, 3 * width, 9, "f4", target)
        yield from ((m, n) for n in (tile.width - 1, tile.width, 2 * tile.width + 3))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_bias_and_activation_at_every_edge(activation, name):
    """A bias of its own for every element; beyond the result nothing is written."""
    for m, n in sizes(target_named(name)):
        a, b, bias = whole(0, m, 9), whole(1, 9, n), whole(2, m, n) / 2
        room = np.full((m + 1, n + 3), 77, "f4")
        families = computed(room[:m, :n], a, b, bias, activation, name)
        assert "gemm.tile" in families
        np.testing.assert_array_equal(room[:m, :n], activated(a @ b + bias, activation))
        assert (room[m:] == 77).all() and (room[:, n:] == 77).all()


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_the_activation_is_that_of_the_sum_with_what_was_there(activation, name):
    for m, n in sizes(target_named(name)):
        a, b, before = whole(3, m, 9), whole(4, 9, n), whole(5, m, n) * 3
        out = before.copy()
        computed(out, a, b, None, activation, name, adds=True)
        np.testing.assert_array_equal(out, activated(a @ b + before, activation))


def with_gaps(x):
    """The same numbers, with other numbers between the rows and between the matrices."""
    count, m, n = x.shape
    room = np.full((count, m + 3, n + 5), 55, x.dtype)
    room[:, 1 : m + 1, 2 : n + 2] = x
    return room[:, 1 : m + 1, 2 : n + 2]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("gaps", ["out", "a", "b", "bias", "out a b bias"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 9, 40), (29, 9, 40), (70, 40, 150), (70, 40, 3)])
def test_each_matrix_may_have_gaps_between_its_rows_and_behind_it(m, k, n, gaps, name):
    shapes = {"out": (2, m, n), "a": (2, m, k), "b": (2, k, n), "bias": (2, m, n)}
    close = {x: whole(i, *shape) for i, (x, shape) in enumerate(shapes.items())}
    views = {x: with_gaps(value) if x in gaps.split() else value for x, value in close.items()}
    computed(*views.values(), target=name)
    np.testing.assert_array_equal(views["out"], close["a"] @ close["b"] + close["bias"])
    if "out" in gaps:
        views["out"][:] = 55
        assert (views["out"].base == 55).all(), "numbers between the rows were written"


@pytest.mark.parametrize("k", [0, 1, 3, 4, 5, 7, 8, 9, 17])
@pytest.mark.parametrize("turned", [False, True])
def test_sums_around_the_unrolled_steps(k, turned):
    """Rows of `a` in place, four steps to a round, or in panels, eight."""
    a, b, out = whole(6, 6, k), whole(7, k, 40), np.full((6, 40), np.nan, "f4")
    a = np.asfortranarray(a) if turned else a
    computed(out, a, b)
    np.testing.assert_array_equal(out, a @ b)
    assert (unroll(True), unroll(False)) == (8, 4)


@pytest.mark.parametrize("activation", [NONE, RELU, RELU6], ids=str)
def test_a_nan_reaches_its_row_or_column_alone_and_stays_one(activation):
    a, b, out = whole(8, 9, 12), whole(9, 12, 41), np.zeros((9, 41), "f4")
    a[2, 3] = b[5, 40] = np.nan
    computed(out, a, b, activation=activation)
    is_nan = np.zeros(out.shape, bool)
    is_nan[2], is_nan[:, 40] = True, True
    np.testing.assert_array_equal(np.isnan(out), is_nan)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u4", "i8"])
def test_whole_numbers_wrap_as_numpys(dtype):
    info = np.iinfo(dtype)
    a, b = (np.random.default_rng(i).integers(info.min, info.max, (5, 7), dtype, endpoint=True) for i in range(2))
    out = np.zeros((5, 5), dtype)
    assert computed(out, a, b.T) == {"gemm.simple"}
    np.testing.assert_array_equal(out, a @ b.T)


def test_the_plain_loop_with_strides_of_either_sign():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 9, (3, 4, 10)), rng.integers(0, 9, (3, 10, 12))
    out = np.zeros((3, 8, 6), "i8")
    got = out[:, ::-2, ::-1]
    assert computed(got, a[:, ::-1, ::2], b[:, 9:4:-1, ::-2]) == {"gemm.simple"}
    np.testing.assert_array_equal(got, a[:, ::-1, ::2] @ b[:, 9:4:-1, ::-2])
    assert not out[:, ::2].any()


def test_truth_values_of_the_plain_loop():
    rng = np.random.default_rng(1)
    for k in (0, 1, 6):
        a, b = rng.random((4, k)) < 0.4, rng.random((k, 5)) < 0.4
        out = np.ones((4, 5), bool)
        computed(out, a, b)
        np.testing.assert_array_equal(out, a @ b)


def test_several_products_with_sides_and_biases_of_their_own():
    a, b, bias = whole(1, 4, 6, 9), whole(2, 4, 9, 2 * host_target().lanes_of("f4") + 3), whole(3, 4, 6, 1)
    bias = np.ascontiguousarray(np.broadcast_to(bias, (4, 6, b.shape[2])))
    out = np.full(bias.shape, np.nan, "f4")
    computed(out, a, b, bias, RELU)
    np.testing.assert_array_equal(out, np.maximum(a @ b + bias, 0))
