"""Update edges that write straight into their Vars: same values as copies, fewer bytes, never half done."""

import numpy as np
import pytest

import cgraph as cg
from tests.support.interrupts import seconds_of, was_interrupted
from tests.support.tolerance import assert_near

N = 1 << 16


def var(seed: int, *shape: int) -> cg.Var:
    return cg.Var(shape, "float64", f"v{seed}").assign(np.random.default_rng(seed).normal(size=shape))


def in_place(function: cg.Function) -> list[bool]:
    return [source.op.writes for source in function.compiled.sources]


def test_an_update_takes_no_bytes():
    x = var(0, N)
    before = x.value
    function = cg.compile([], updates={x: cg.sin(x) + x})
    assert in_place(function) == [True] and function.nbytes == 0
    function()
    assert_near(x.value, np.sin(before) + before, "float64 through float32")


def test_a_later_reader_of_the_old_value_runs_before():
    x, y = var(1, 8, 8), var(2, 8, 8)
    old = x.value, y.value
    function = cg.compile([], updates={x: x * 2.0, y: (x @ y) + y})
    function()
    assert_near(x.value, old[0] * 2, "float64 through float32")
    assert_near(y.value, old[0] @ old[1] + old[1], "float64 through float32")


def test_a_reader_that_needs_both_values_keeps_the_copy():
    x = var(3, 8)
    old = x.value
    new = cg.tanh(x) + 1.0
    function = cg.compile(cg.sum(new * x), updates={x: new})
    assert in_place(function) == [False]
    assert_near(function(), (x.value * old).sum(), "float64 through float32")


def test_an_exchange_of_two_vars():
    x, y = var(4, 5), var(5, 5)
    old = x.value, y.value
    cg.compile([], updates={x: y * 1.5, y: x * 0.5})()
    assert_near(x.value, old[1] * 1.5, "float64 through float32")
    assert_near(y.value, old[0] * 0.5, "float64 through float32")


def test_a_transposed_reader_in_the_same_op_keeps_the_copy():
    x = var(6, 6, 6)
    old = x.value
    function = cg.compile([], updates={x: x + x.T})
    function()
    np.testing.assert_array_equal(x.value, old + old.T)


def test_an_input_is_never_written():
    x = cg.Var((4,), "float64", "x")
    given = np.ones(4)
    cg.compile(cg.sum(x), [x], updates={x: x * 3.0})(given)
    np.testing.assert_array_equal(given, np.ones(4))
    np.testing.assert_array_equal(x.value, np.full(4, 3.0))


def test_a_user_function_that_fails_leaves_every_var():
    x, y = var(7, 4), var(8, 4)
    old = x.value, y.value

    def fails(value):
        raise RuntimeError("no")

    function = cg.compile([], updates={x: x * 2.0, y: cg.delay(fails, y)})
    with pytest.raises(RuntimeError):
        function()
    np.testing.assert_array_equal(x.value, old[0])
    np.testing.assert_array_equal(y.value, old[1])


def test_the_source_runs_again_when_only_its_var_was_assigned():
    u, x = var(9, 4), var(10, 4)
    function = cg.compile(cg.sum(x), updates={x: cg.sin(u)})
    function()
    x.assign(np.zeros(4))
    assert function() == 0
    assert_near(x.value, np.sin(u.value), "float64 through float32")


@pytest.mark.slow
def test_an_interrupt_leaves_all_updates_done_or_none():
    x, y = var(11, 900, 900), var(12, 900, 900)
    function = cg.compile([], updates={x: cg.tanh(x @ x), y: y + 1.0})
    function()
    seconds, count = seconds_of(function), 0
    y.assign(np.zeros(y.shape))
    for i in range(30):
        before, ticks = x.value, y.value[0, 0]
        count += was_interrupted(function, seconds * i / 30)
        moved = not np.array_equal(x.value, before)
        assert moved == (y.value[0, 0] != ticks)
    assert count


def test_a_frozen_value_stays_when_its_var_changes():
    x, w = cg.Var((8,), "float64", "x"), var(13, 8)
    old = w.value
    frozen = cg.compile(x * w, [x], freeze=[w])
    train = cg.compile([], updates={w: w * 2.0})
    train()
    w.assign(w.value + 1)
    np.testing.assert_array_equal(frozen(np.ones(8)), old)
    np.testing.assert_array_equal(w.value, old * 2 + 1)


def test_what_only_has_to_run_before_an_update_does_not_wait_for_it():
    n = 256
    w, x, y = var(40, 1, n), var(41, n, 1), var(42, n, n)
    old = w.value
    small = cg.max(cg.sin(x @ w), axis=0, keepdims=True)  # reads w, makes n * n numbers of it, and is done
    change = cg.max(cg.tanh(y @ y), axis=0, keepdims=True)
    function = cg.compile(small, updates={w: w - change}, order="depth_first")
    assert in_place(function) == [True] and function.nbytes < 2.5 * y.spec.nbytes  # y @ y and its workspace
    assert_near(function(), np.sin(x.value @ old).max(0, keepdims=True), "float64 through float32")
    assert_near(w.value, old - np.tanh(y.value @ y.value).max(0, keepdims=True), "float64 through float32")
