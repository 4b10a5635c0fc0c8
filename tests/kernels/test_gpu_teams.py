"""Reductions, softmax and normalisation by teams of threads: any axes, layouts and lengths, always in one order."""

import numpy as np
import pytest
from hypothesis import given, settings

from cgraph.kernels.expression import Trace
from cgraph.kernels.normalise.calls import group_norm_calls, layer_norm_calls
from cgraph.kernels.reduce.calls import reduce_calls, reduce_nbytes
from cgraph.kernels.softmax.calls import softmax_calls
from cgraph.kernels.store import store
from cgraph.kernels.team.gpu_signature import FEW, MANY
from tests.kernels.test_normalise import normalised
from tests.kernels.test_reduce import cases, expected, identity
from tests.kernels.test_softmax import every_kind, formula
from tests.support.gpu import BLOCKS, GPU, run_on_gpu
from tests.support.kernels import view_of
from tests.support.ptxas import usage
from tests.support.tolerance import assert_close, assert_near

LENGTHS = [(3, 5), (5, FEW + 1), (2, MANY + 3)]  # results by elements: a thread, a warp, a block for each
every_float = pytest.mark.parametrize("dtype", ["f4", "f8"])


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


@every_kind
@every_float
@pytest.mark.parametrize("shape, axis", [((5, 7), 1), ((3, 40), 1), ((2, MANY + 1), 1), ((33, 40), 0), ((2, 5, 3), 1)])
def test_softmax_along_any_axis(kind, dtype, shape, axis):
    x = draw(*shape, dtype=dtype) * 20
    want = formula(kind, x, axis)
    out = np.full(want.shape, np.nan, dtype)
    (call,) = softmax_calls(BLOCKS, kind, view_of(out), view_of(x), axis)
    run_on_gpu([call])
    assert call.kernel.is_block
    assert_near(out, want, "softmax", np.abs(x).max())


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_in_place_and_of_strided_views(axis):
    x = draw(40, 45)
    want = formula("softmax", x[:, ::2], axis)
    run_on_gpu(softmax_calls(BLOCKS, "softmax", view_of(x[:, ::2]), view_of(x[:, ::2]), axis))
    assert_near(x[:, ::2], want, "float32 sums near zero")
    np.testing.assert_array_equal(x[:, 1::2], draw(40, 45)[:, 1::2])


@every_float
@pytest.mark.parametrize("results, length", LENGTHS)
def test_layer_norm(results, length, dtype):
    x, scale, shift = draw(results, length, dtype=dtype) + 3, draw(length, dtype=dtype), draw(length, dtype=dtype)
    want = normalised(x, (1,)) * scale + shift
    (call,) = layer_norm_calls(BLOCKS, *map(view_of, (x, x, scale, shift)), 1, 1e-5)
    run_on_gpu([call])
    assert call.kernel.is_block
    assert_close(x, want.astype(dtype), 4)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups):
    x, scale, shift = draw(2, 6, 3, 5), draw(6), draw(6)[::-1].copy()
    out = np.full_like(x, np.nan)
    run_on_gpu(group_norm_calls(BLOCKS, *map(view_of, (out, x, scale, shift)), groups, 1e-5))
    want = normalised(x.reshape(2, groups, -1), (2,)).reshape(x.shape)
    assert_close(out, (want * scale[:, None, None] + shift[:, None, None]).astype("f4"), 4)


def test_ptxas_finds_no_stack_and_no_spill(tmp_path):
    x, row, out = draw(64, 2048), draw(2048), np.zeros(64, "f4")
    calls = [
        *reduce_calls(BLOCKS, "sum", identity("f4"), view_of(out), view_of(x), axes=(1,)),
        *softmax_calls(BLOCKS, "softmax", view_of(x), view_of(x), 1),
        *layer_norm_calls(BLOCKS, *map(view_of, (x, x, row, row)), 1, 1e-5),
    ]
    for call in calls:
        text = store().ptx(call.kernel, -(-len(call.args) // 8) * 8, GPU)[1].decode()
        found = usage(text, GPU.cpu, tmp_path)
        assert found.registers <= 64 and found.stack == found.spills == 0, call.kernel
        assert ".f64" not in text.replace("cvt.rn.f32.f64", "", 1)  # epsilon
