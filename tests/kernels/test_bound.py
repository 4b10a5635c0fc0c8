"""Kernels called from Python: words of arguments, tasks from the first to before the last, arrays kept alive."""

import gc
import struct

import numpy as np
import pytest

from cgraph.kernels.bound import Bound, word_of
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.target import host_target
from tests.support.kernels import view_of


@pytest.mark.parametrize("value", [0, -1, 2**63 - 1, -(2**63), True])
def test_an_integer_is_its_own_word(value):
    assert word_of(value) == int(value)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, float("inf"), 5e-324])
def test_a_float_is_the_word_of_its_bits(value):
    assert struct.pack("q", word_of(value)) == struct.pack("d", value)


def test_a_pointer_is_the_address_in_its_array():
    x = np.zeros(10)
    assert word_of(Pointer(x)) == x.ctypes.data and word_of(Pointer(x, 24)) == x[3:].ctypes.data


def copy(rows=12):
    x, out = 1 + np.arange(rows * 40_000.0).reshape(rows, 40_000), np.zeros((rows, 40_000))
    (call,) = copy_calls(host_target(), view_of(out), view_of(x[:, ::-1]))
    return x, out, call


def test_only_the_tasks_asked_for_are_run():
    x, out, call = copy()
    _, rest, other = copy()
    run, run_rest = Bound(call, host_target()), Bound(other, host_target())
    assert call.tasks >= 4
    run(1, 3)
    run_rest(0, 1)
    run_rest(3, other.tasks)
    assert out.any() and ((out != 0) ^ (rest != 0)).all()
    before = out.copy()
    run(2, 2)
    np.testing.assert_array_equal(out, before)
    run(0, call.tasks)
    np.testing.assert_array_equal(out, x[:, ::-1])
    assert run.call is call and run.words.tolist() == [word_of(a) for a in call.args]


def test_the_arrays_live_as_long_as_the_bound_call():
    x, out, call = copy(4)
    want, run = x[:, ::-1].copy(), Bound(call, host_target())
    del x, call
    gc.collect()
    run(0, run.call.tasks)
    np.testing.assert_array_equal(out, want)
