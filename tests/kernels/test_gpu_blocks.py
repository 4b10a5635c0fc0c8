"""Kernels in blocks of threads against those that give each thread a task: same bits, any size, place and dtype."""

import re

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cuda.engine import SIMULATED, CudaEngine
from cgraph.kernels.calls.pointwise import pointwise_calls
from cgraph.kernels.expression import Trace
from cgraph.kernels.store import store
from tests.support.gpu import BLOCKS, GPU, run_on_gpu
from tests.support.kernels import view_of
from tests.support.ptxas import usage

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


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_arrays_that_begin_anywhere(first):
    x, room = draw(400), np.zeros(400, "f4")
    here, kernel = computed(BLOCKS, lambda m, a: m.sin(a), x[first:], out=room[: 400 - first])
    assert kernel.is_block
    np.testing.assert_array_equal(here, computed(GPU, lambda m, a: m.sin(a), x[first:].copy())[0])
    assert not room[400 - first :].any()


def test_the_result_may_lie_in_an_operands_bytes():
    x = draw(700)
    want, _ = computed(GPU, lambda m, a: m.exp(a) + a, x)
    computed(BLOCKS, lambda m, a: m.exp(a) + a, x, out=x)
    assert x.tobytes() == want.tobytes()


def test_arrays_that_do_not_lie_in_one_piece_have_the_other_kernels():
    x = draw(20, 30)
    here, kernel = computed(BLOCKS, lambda m, a: m.exp(a), x[:, ::2])
    assert not kernel.is_block
    np.testing.assert_array_equal(here, computed(GPU, lambda m, a: m.exp(a), x[:, ::2].copy())[0])


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
