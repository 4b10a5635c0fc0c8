"""Faults planted in the text of kernels in blocks of threads: the simulator finds each one, or the values are wrong."""

import re
from functools import partial

import numpy as np
import pytest

from cgraph.engine.cuda.simulator.text import Fault
from cgraph.kernels.gemm.matmul_calls import matmul_calls
from cgraph.kernels.index.calls import nonzero_calls
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.normalise.calls import layer_norm_calls
from cgraph.kernels.reduce.calls import reduce_calls
from cgraph.kernels.scan.calls import scan_calls
from cgraph.kernels.softmax.calls import softmax_calls
from cgraph.kernels.sort.calls import sort_calls
from tests.kernels import test_attention, test_conv, test_filter_grad
from tests.kernels.test_gpu_filter_grad import PARTS
from tests.kernels.test_reduce import identity
from tests.support.gpu import BLOCKS, run_on_gpu
from tests.support.kernels import view_of
from tests.support.tolerance import assert_close

BARRIER = re.compile(r"^\s*bar\.sync.*\n", re.M)
GUARD = re.compile(r"^\s*@%p\d+ bra .*\n", re.M)
STORE = re.compile(r"st\.shared\.b(\d\d) +\t?\[(%\w+)(?:\+(\d+))?\]")


def draw(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("f4")


def product(change=str):
    a, b, out = draw(33, 40), draw(40, 35), np.zeros((33, 35), "f4")
    run_on_gpu(matmul_calls(BLOCKS, *map(view_of, (out, a, b))), change)
    assert_close(out, a @ b, 4)


def convolution(change=str):
    rng, case = np.random.default_rng(0), test_conv.CASES["3x3 with stride and uneven padding"]
    test_conv.check(rng, case, BLOCKS, run=lambda calls, *_: run_on_gpu(calls, change))


def gradient(change=str):
    def run(calls, *_):
        run_on_gpu(calls[:1], change)
        run_on_gpu(calls[1:])  # adds up the parts

    test_filter_grad.filter_grad(PARTS, BLOCKS, run=run)


def reduction(change=str):
    x, out = draw(3, 1500), np.zeros(3, "f4")
    run_on_gpu(reduce_calls(BLOCKS, "sum", identity("f4"), view_of(out), view_of(x), axes=(1,)), change)
    assert_close(out, x.sum(1), 4)


def softmax(change=str):
    x, out = draw(5, 40), np.zeros((5, 40), "f4")
    run_on_gpu(softmax_calls(BLOCKS, "softmax", view_of(out), view_of(x), 1), change)
    assert_close(out, np.exp(x) / np.exp(x).sum(1, keepdims=True), 4)


def norm(change=str):
    x, out = draw(3, 70), np.zeros((3, 70), "f4")
    run_on_gpu(layer_norm_calls(BLOCKS, view_of(out), view_of(x), None, None, 1, 0.0), change)
    assert_close(out, (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True), 4)


def transpose(change=str):
    x = draw(33, 70)
    out = np.zeros((70, 33), "f4")
    run_on_gpu(copy_calls(BLOCKS, view_of(out), view_of(x.T)), change)
    np.testing.assert_array_equal(out, x.T)


def running_sum(change=str):
    x, out = draw(2, 600), np.zeros((2, 600), "f4")
    run_on_gpu(scan_calls(BLOCKS, view_of(out), view_of(x), 1), change)
    assert_close(out, np.cumsum(x, 1), 16)


def sort(change=str):
    x, out = draw(2, 300), np.zeros((2, 300), "f4")
    run_on_gpu(sort_calls(BLOCKS, view_of(out), None, view_of(x), 1, view_of(np.zeros(1 << 14, "u1"))), change)
    np.testing.assert_array_equal(out, np.sort(x, 1))


def places(change=str):
    x, out, count = np.round(draw(700)), np.zeros((1, 700), "i8"), np.zeros(1, "i8")
    run_on_gpu(nonzero_calls(BLOCKS, view_of(out), view_of(count), view_of(x)), change)
    np.testing.assert_array_equal(out[0, : count[0]], np.flatnonzero(x))


def attention(change=str):
    q, k, v = test_attention.draw("f4", 1, 2, 1, 2, 70, 8, 5)
    run = lambda calls, *_: run_on_gpu(calls, change)  # noqa: E731
    got = test_attention.computed(BLOCKS, q, k, v, run=run, orders=["all"])
    test_attention.assert_agrees(got, test_attention.formula(q, k, v, None, None, False, 0))


KERNELS = [product, convolution, gradient, reduction, softmax, norm, transpose, running_sum, sort, places, attention]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda f: f.__name__)


def changed(pattern, number, put, text):
    """A text with its find of this number replaced; as it is when there are fewer."""
    finds = list(pattern.finditer(text))
    if number >= len(finds):
        return text
    at = finds[number]
    return text[: at.start()] + put(at) + text[at.end() :]


def count(kernel, pattern):
    """The most finds in the text of any of its kernels."""
    texts = []
    kernel(lambda text: texts.append(text) or text)
    return max(len(pattern.findall(text)) for text in texts)


def nothing(found):
    return ""


def next_word(found):
    bits, register, offset = found.groups()
    return f"st.shared.b{bits} \t[{register}+{int(offset or 0) + int(bits) // 8}]"


def is_found(kernel, change):
    with np.errstate(all="ignore"):
        try:
            kernel(change)
        except (Fault, AssertionError):
            return True
    return False


@every_kernel
def test_a_missing_barrier_is_found(kernel):
    barriers = count(kernel, BARRIER)
    assert barriers
    # after a reduction's last one only the thread that wrote the result reads it
    for number in range(barriers - (kernel is reduction)):
        with pytest.raises(Fault, match="a race|nobody wrote"):
            kernel(partial(changed, BARRIER, number, nothing))


@every_kernel
def test_a_wrong_index_of_shared_memory_is_found(kernel):
    stores = count(kernel, STORE)
    assert stores
    for number in {0, max(0, stores - 2)}:  # the last one is a sum's rounding error, too small to be seen
        assert is_found(kernel, partial(changed, STORE, number, next_word)), number


@pytest.mark.slow
@every_kernel
def test_a_missing_guard_of_the_last_elements_is_found(kernel):
    guards = count(kernel, GUARD)
    faults = [number for number in range(guards) if is_found(kernel, partial(changed, GUARD, number, nothing))]
    assert faults
