"""Pointwise kernels in blocks of threads: the bits of a task for each thread, any size, place, strides and dtype."""

import re

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cuda.engine import SIMULATED, CudaEngine
from cgraph.kernels.expression import Trace
from cgraph.kernels.pointwise.calls import fused_calls, pointwise_calls
from cgraph.kernels.store import store
from tests.support.gpu import BLOCKS, GPU, run_on_gpu
from tests.support.kernels import view_of
from tests.support.ptxas import usage
from tests.support.tolerance import assert_near

FUNCTIONS = "exp log sin tanh erf sigmoid sqrt rint".split()
DOUBLE = {"sin"}  # large angles are reduced in float64
REGISTERS = 64  # of a thread; so 1,024 of them run on a multiprocessor


def draw(*shape, dtype="f4"):
    return np.random.default_rng(0).uniform(-3, 3, shape).astype(dtype)


def program(function, *codes):
    m = Trace()
    return m.program(function(m, *(m.load(i, code) for i, code in enumerate(codes))))


def computed(target, function, *xs, out=None):
    code = program(function, *(x.dtype.str[1:] for x in xs))
    out = np.zeros(xs[0].shape, "?" if code[-1][1] == "b1" else code[-1][1]) if out is None else out
    calls = pointwise_calls(target, code, view_of(out), *map(view_of, xs))
    run_on_gpu(calls)
    return out, calls[0].kernel


@pytest.mark.parametrize("count", [1, 3, 4, 127, 128, 513, 2048])
def test_any_number_of_elements(count):
    x, y = draw(count), draw(1)
    here, kernel = computed(BLOCKS, lambda m, a, b: m.exp(a) * b, x, np.broadcast_to(y, count))
    there, _ = computed(GPU, lambda m, a, b: m.exp(a) * b, x, np.broadcast_to(y, count))
    assert kernel.is_block and here.tobytes() == there.tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i2", "i8", "u1", "?"])
def test_every_dtype_and_comparisons(dtype):
    x, y = (draw(300, dtype="f8") * 9).astype(dtype), (draw(300, dtype="f8")[::-1] * 9).astype(dtype)
    for function in (lambda m, a, b: m.eq(a, b), lambda m, a, b: a & b if a.dtype == "b1" else a + b):
        here, kernel = computed(BLOCKS, function, x, y)
        there, _ = computed(GPU, function, x, y)
        assert kernel.is_block and here.tobytes() == there.tobytes()


@pytest.mark.parametrize(
    ("first", "out_first"), [(1, 0), (2, 0), (3, 0), (4, 0), (0, 1), (0, 2), (0, 3), (4, 4), (1, 1)]
)
def test_arrays_that_begin_anywhere(first, out_first):
    x, room = draw(400), np.zeros(404, "f4")
    out = room[out_first : out_first + 400 - first]
    here, kernel = computed(BLOCKS, lambda m, a: m.sin(a), x[first:], out=out)
    assert kernel.is_block
    np.testing.assert_array_equal(here, computed(GPU, lambda m, a: m.sin(a), x[first:].copy())[0])
    assert not room[out_first + 400 - first :].any() and not room[:out_first].any()


def test_the_result_may_lie_in_an_operands_bytes():
    x = draw(700)
    want, _ = computed(GPU, lambda m, a: m.exp(a) + a, x)
    computed(BLOCKS, lambda m, a: m.exp(a) + a, x, out=x)
    assert x.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "?"])
def test_arrays_of_any_strides(dtype):
    x, y = (draw(20, 7, 30) > 0).astype(dtype), (draw(7, 1) > 0).astype(dtype)
    for a in (x[:, :, ::2], x.transpose(2, 1, 0)[::-1], x[:, :1, 3:]):
        b = np.broadcast_to(y[: a.shape[1]], a.shape)
        here, kernel = computed(BLOCKS, lambda m, a, b: m.eq(a, b), a, b)
        assert kernel.family == "pointwise.gpu.walk"
        np.testing.assert_array_equal(here, computed(GPU, lambda m, a, b: m.eq(a, b), a.copy(), b.copy())[0])


def test_several_results_of_one_program_may_lie_in_operands_bytes():
    x, y = draw(9, 10), draw(9, 20, dtype="f8").astype("f4")[:, ::2]
    want = np.exp(x) + y, np.exp(x)
    m = Trace()
    e = m.exp(m.load(0, "f4"))
    code = m.program(e + m.load(1, "f4"))
    at = next(i for i, x in enumerate(code) if x[0] == "exp")
    run_on_gpu(fused_calls(BLOCKS, code, (len(code) - 1, at), (view_of(y), view_of(x)), (view_of(x), view_of(y))))
    assert_near(y, want[0], "float32 formulas")
    assert_near(x, want[1], "float32 formulas")


def test_walks_of_many_axes_have_the_other_kernels():
    x = draw(*[4] * 6)[::2, ::2, ::2, ::2, ::2, ::2]
    here, kernel = computed(BLOCKS, lambda m, a: m.exp(a), x)
    assert not kernel.is_block
    np.testing.assert_array_equal(here, computed(GPU, lambda m, a: m.exp(a), x.copy())[0])


def test_the_engine_chooses():
    x = cg.Var((40, 30), name="x")
    by_tier = [cg.compile(cg.exp(x) + 1, x, engine=CudaEngine(SIMULATED, blocks=b)) for b in (True, False)]
    assert [f.program.code.kernels[0].is_block for f in by_tier] == [True, False]
    here, there = (f(draw(40, 30)) for f in by_tier)
    assert here.tobytes() == there.tobytes()


def flat_text(name):
    x = np.zeros(1000, "f4")
    (call,) = pointwise_calls(BLOCKS, program(lambda m, a: getattr(m, name)(a), "f4"), view_of(x), view_of(x))
    return store().ptx(call.kernel, 8, GPU)[1].decode()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_text_of_a_float32_kernel(name):
    text = flat_text(name)
    assert not re.search(r"\.local|\bcall|\.extern|\bld\.f32|\bst\.f32", text)
    assert name in DOUBLE or ".f64" not in text
    assert "ld.global.v4" in text and "st.global.v4" in text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ptxas_finds_no_stack_and_no_spill(name, tmp_path):
    found = usage(flat_text(name), GPU.cpu, tmp_path)
    assert found.registers <= REGISTERS and found.stack == found.spills == 0


def access_of(*views):
    """The family of a sum of views, its params without the program, and its tasks."""
    out = np.zeros(views[0].shape, views[0].dtype)
    code = program(lambda m, a, *b: a + b[0] if b else a * a, *(x.dtype.str[1:] for x in views))
    (call,) = pointwise_calls(BLOCKS, code, view_of(out), *map(view_of, views))
    return call.kernel.family.rpartition(".")[2], call.kernel.params[1:], call.tasks


def test_a_thread_has_sixteen_bytes_of_the_widest_array():
    """128 threads: 512 float32, 256 float64, 2,048 bytes to a task."""
    for dtype, wide in (("f4", 4), ("f8", 2), ("i2", 8), ("u1", 16)):
        for count, tasks in ((1, 1), (128 * wide, 1), (128 * wide + 1, 2)):
            x = np.zeros(count, dtype)
            access = "sv" if count == 1 else "vv"  # one element is one for all
            assert access_of(x) == ("flat", (access, wide), tasks)


def test_only_rows_in_one_piece_are_flat():
    x = draw(6, 70)
    assert access_of(x)[0] == access_of(np.asfortranarray(x).T)[0] == "flat"
    for view in (x[:, ::2], x[:, :69], x.T, np.broadcast_to(x[:, :1], x.shape)):
        assert access_of(view.copy(), view)[0] == "walk"
    for view, rank in ((x[:, ::2], 1), (x[:, :69], 2)):  # rows of every second element are one row
        assert access_of(view, view.copy())[1] == ((2,), ("f4", "f4", "f4"), rank)


@pytest.mark.parametrize("where", range(3))
def test_every_array_may_begin_between_two_accesses(where):
    """Operands of 4 and 8 bytes and a result of 1: each is aligned for its own elements alone."""
    x, y, out = draw(601), draw(601, dtype="f8"), np.zeros(602, "?")
    x, y, got = (a[int(i == where) :][:600] for i, a in enumerate((x, y, out)))
    computed(BLOCKS, lambda m, a, b: m.lt(m.cast(a, "f8"), b), x, y, out=got)
    np.testing.assert_array_equal(got, x < y)
    assert not out[: where == 2].any() and not out[600 + (where == 2) :].any()


@pytest.mark.parametrize("count", [1, 127, 128, 129, 300])
def test_walks_end_with_the_last_element(count):
    x, out = draw(2 * count), np.full(count + 1, 77, "f4")
    computed(BLOCKS, lambda m, a: a + a, x[::2], out=out[:-1])
    np.testing.assert_array_equal(out[:-1], 2 * x[::2])
    assert out[-1] == 77
