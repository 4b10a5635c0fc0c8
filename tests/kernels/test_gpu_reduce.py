"""Reductions by teams of threads: any axes, layouts and lengths, parts, indices, always in one order."""

import numpy as np
import pytest
from hypothesis import given, settings

from cgraph.kernels.expression import Trace
from cgraph.kernels.reduce.calls import reduce_calls, reduce_nbytes
from cgraph.kernels.team.gpu_signature import FEW, MANY
from tests.kernels.test_reduce import cases, expected, identity
from tests.support.gpu import BLOCKS, run_on_gpu
from tests.support.kernels import view_of
from tests.support.tolerance import assert_close, assert_near

LENGTHS = [(3, 5), (5, FEW + 1), (2, MANY + 3)]  # results by elements: a thread, a warp, a block for each


def draw(*shape, dtype="f4"):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def reduced(kind, x, axes, program=None, block=True):
    """The result; the workspace is as large as promised."""
    kept = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    out = np.full(kept, -7, "i8" if kind.startswith("arg") else x.dtype)
    dtype = x.dtype.str[1:]
    room = np.full(reduce_nbytes(kind, dtype, x.shape, axes), 255, "u1")
    code = program or identity(dtype)
    calls = reduce_calls(BLOCKS, kind, code, view_of(out), view_of(x), axes=axes, workspace=view_of(room))
    assert all(call.kernel.is_block for call in calls) == block or not calls
    run_on_gpu(calls)
    return out


@settings(max_examples=40, deadline=None)
@given(cases())
def test_any_axes_of_any_layout_agree_with_numpy(case):
    """The values are small integers, whose sums and products are exact in any order."""
    kind, x, axes = case
    np.testing.assert_array_equal(reduced(kind, x, axes), expected(kind, x, axes))


@pytest.mark.parametrize("kind", ["sum", "max", "argmin"])
@pytest.mark.parametrize("results, length", LENGTHS)
def test_every_size_of_a_team(kind, results, length):
    x = draw(results, length)
    for y, axis in ((x, 1), (np.ascontiguousarray(x.T), 0), (np.repeat(x.T, 8, 1), 0)):
        assert_near(reduced(kind, y, (axis,)), expected(kind, y, (axis,)), "float32 products")


@pytest.mark.parametrize("kind", ["sum", "argmax"])
def test_results_of_few_elements_side_by_side_go_across_memory(kind):
    x = draw(FEW, 70)
    assert_near(reduced(kind, x, (0,)), expected(kind, x, (0,)), "float32 sums near zero")


def test_large_reductions_in_parts():
    x = draw(70_001)
    got = reduced("sum", x, (0,))
    assert got.tobytes() == reduced("sum", x, (0,)).tobytes()
    assert_near(got, x.sum(dtype="f8"), "float32 sums of many thousand on a GPU")
    assert reduced("argmax", x, (0,)) == x.argmax()


def test_a_nan_wins_and_the_first_of_equals_is_found():
    x = np.zeros((3, 300), "f4")
    x[0, 7] = x[0, 200] = np.nan
    x[1, 40] = x[1, 290] = 5
    x[2] = -np.inf
    for kind in ("max", "argmax", "argmin"):
        np.testing.assert_array_equal(reduced(kind, x, (1,)), expected(kind, x, (1,)))


def test_a_program_in_the_load_and_nothing_to_reduce():
    m = Trace()
    v = m.load(0, "f4")
    x = draw(4, 50)
    assert_close(reduced("sum", x, (1,), m.program(v * v)), (x * x).sum(1), 4)
    assert reduced("sum", draw(3, 0), (1,)).tolist() == [0, 0, 0]


def test_walks_of_many_axes_have_the_other_kernels():
    x = np.arange(6**6, dtype="f4").reshape([6] * 6)[::2, ::2, ::2, ::2, ::2, ::2]
    np.testing.assert_array_equal(reduced("max", x, (5,), block=False), x.max(5))


BEHIND = {"sum": 50, "prod": 50, "max": 50, "argmax": 50, "min": -50, "argmin": -50}


@pytest.mark.parametrize("kind", BEHIND)
@pytest.mark.parametrize("length", [3, FEW + 1, MANY + 1])
def test_nothing_behind_the_last_element_or_result_counts(kind, length):
    """A block has more teams than there are results; an element behind each row would be its extreme one."""
    x = np.ones((3, length + 1), "f4")
    x[:, length] = BEHIND[kind]
    room, part = np.full(4, 9, "i8" if kind.startswith("arg") else "f4"), x[:, :length]
    work = np.zeros(reduce_nbytes(kind, "f4", part.shape, (1,)) + 1, "u1")
    views = view_of(room[:3]), view_of(part)
    run_on_gpu(reduce_calls(BLOCKS, kind, identity("f4"), *views, axes=(1,), workspace=view_of(work)))
    np.testing.assert_array_equal(room[:3], getattr(np, kind)(part, axis=1))
    assert room[3] == 9


def test_the_index_of_parts_is_that_of_the_whole():
    """The largest and its equals lie in different parts; the first one counts."""
    x = np.zeros(70_001, "f4")
    for place in (69_999, 40_000, 123):
        x[place] = 5
        assert reduced("argmax", x, (0,)) == place
    x[:] = -np.inf
    assert reduced("argmax", x, (0,)) == 0 and reduced("max", x, (0,)) == -np.inf


@pytest.mark.parametrize("length", [5, FEW + 1, MANY + 3])
def test_two_operands_in_the_load(length):
    m = Trace()
    code = m.program(m.load(0, "f4") * m.load(1, "f4"))
    x, y = (np.random.default_rng(i).integers(-4, 5, (4, length)).astype("f4") for i in range(2))
    out, room = np.full(4, np.nan, "f4"), np.zeros(reduce_nbytes("sum", "f4", x.shape, (1,)) + 1, "u1")
    spread = np.broadcast_to(y[:1], x.shape)
    views = view_of(out), view_of(x), view_of(spread)
    run_on_gpu(reduce_calls(BLOCKS, "sum", code, *views, axes=(1,), workspace=view_of(room)))
    np.testing.assert_array_equal(out, (x * spread).sum(1))
