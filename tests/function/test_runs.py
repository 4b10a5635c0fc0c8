"""Calls: from several threads, interrupted, repeated; nothing is compiled or looked up in a run."""

import copy
import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cgraph as cg
from cgraph.kernels.store import KernelStore
from tests.support.interrupts import interrupt_after

MOST_RUNS = 1000  # before an interrupt is heard, at the very most


def script(n: int = 20_000):
    x = cg.Var((n,), "float64", "x")
    y = np.sin(x) * 2 + cg.exp(-cg.square(x))
    return x, [y, cg.sum(y), cg.reshape(y, (100, -1)).T @ cg.reshape(y, (100, -1))]


def test_one_function_from_several_threads():
    x, outputs = script()
    function = cg.compile(outputs, [x])
    values = [np.random.default_rng(i).normal(size=x.shape) for i in range(8)]
    want = [function(v) for v in values]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda i: function(values[i % 8]), range(80)))
    for i, got in enumerate(found):
        for a, b in zip(got, want[i % 8]):
            np.testing.assert_array_equal(a, b)


def test_two_functions_at_once():
    x, outputs = script()
    y, others = script(30_000)
    first, second = cg.compile(outputs, [x]), cg.compile(others, [y], threads=1)
    a, b = np.linspace(0, 1, 20_000), np.linspace(0, 3, 30_000)
    want = first(a), second(b)
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(f, v) for _ in range(25) for f, v in ((first, a), (second, b))]
        for i, job in enumerate(jobs):
            for got, good in zip(job.result(), want[i % 2]):
                np.testing.assert_array_equal(got, good)


def test_updates_from_several_threads_all_count():
    x = cg.Var((1000,), "float64").assign(np.zeros(1000))
    step = cg.compile([], updates={x: x + 1.0})
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: step(), range(200)))
    np.testing.assert_array_equal(x.value, np.full(1000, 200.0))


@pytest.mark.slow
def test_an_interrupt_is_heard_and_the_function_stays_usable():
    x = cg.Var((600, 600), "float64", "x")
    y = x
    for _ in range(60):
        y = cg.tanh(y @ x)
    function = cg.compile(y, [x])
    value = np.random.default_rng(0).normal(size=x.shape)
    want = function(value)
    with pytest.raises(KeyboardInterrupt), interrupt_after(0.1):
        for _ in range(MOST_RUNS):
            function(value)
    np.testing.assert_array_equal(function(value), want)


def test_a_run_looks_up_no_kernel(monkeypatch):
    x, outputs = script()
    function = cg.compile(outputs, [x])
    function(np.zeros(x.shape))

    def refuse(*_):
        raise AssertionError("a run asked for a kernel")

    monkeypatch.setattr(KernelStore, "load", refuse)
    function(np.ones(x.shape))


def test_a_new_shape_compiles_no_kernel():
    def misses(n: int) -> int:
        x, outputs = script(n)
        cg.compile(outputs, [x])
        return cg.kernels.store.store().misses

    misses(20_000)
    assert misses(21_000) == misses(35_000)


ASKS_FOR_FOUR_THREADS_A_CORE = """
import threading
import numpy as np
import cgraph as cg
from cgraph.engine.cpu.cores import cores

x = cg.Var((200_000,), name="x")
cg.compile(cg.sum(cg.sin(x)), [x], threads=4 * cores())(np.zeros(x.shape, "f4"))
workers = sum(thread.name.startswith("cgraph-") for thread in threading.enumerate())
assert workers == cores() - 1, workers
"""


def test_threads_never_outnumber_cores():
    """In a process of its own: the pool is the process's, and tests of teams let it grow."""
    subprocess.run([sys.executable, "-c", ASKS_FOR_FOUR_THREADS_A_CORE], check=True)


def test_views_of_outputs_are_overwritten_by_the_next_run_and_copies_are_not():
    x = cg.Var((4,), "float64", "x")
    function = cg.compile(x * 2, [x])
    view, copy = function(np.ones(4), copy=False), function(np.ones(4))
    function(np.zeros(4))
    np.testing.assert_array_equal(view, np.zeros(4))
    np.testing.assert_array_equal(copy, np.full(4, 2.0))


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_a_view_of_an_output_is_an_input_like_any_other(engine):
    """Though it lies where the run writes: the state of a loop may go round without copies."""
    x, y = cg.Var((40, 40), "float32", "x"), cg.Var((40, 40), "float32", "y")
    step = cg.compile([cg.softmax(cg.sort(x, 0) @ y), cg.transpose(x) + y], [x, y], engine=engine)
    for pick in (lambda a, b: (a, b), lambda a, b: (b, a), lambda a, b: (a, a)):
        given = kept = [np.random.default_rng(i).normal(size=(40, 40)).astype("float32") for i in range(2)]
        for _ in range(3):
            given, kept = step(*pick(*given), copy=False), step(*pick(*kept))
            for a, b in zip(given, kept):
                np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.parametrize("name", ["self", "args", "named", "a/b", "", " ", "é", "class", "%s{}", "x\ny"])
def test_an_input_of_any_name_is_given_by_it(name):
    x = cg.Var((2,), "float32", name)
    np.testing.assert_array_equal(cg.compile(x + 1, [x])(**{x.name: np.ones(2, "float32")}), [2, 2])


def test_out_takes_the_outputs():
    x = cg.Var((4,), "float64", "x")
    out = np.empty(4)
    assert cg.compile(x * 2, [x])(np.ones(4), out=out) is out
    np.testing.assert_array_equal(out, np.full(4, 2.0))


def test_functions_that_are_dropped_free_their_arenas():
    gc.collect()
    before = sum(issubclass(type(o), cg.Function) for o in gc.get_objects())
    for n in range(20):
        x, outputs = script(1000 + 100 * n)
        cg.compile(outputs, [x])(np.zeros(x.shape))
    del x, outputs
    gc.collect()
    assert sum(issubclass(type(o), cg.Function) for o in gc.get_objects()) <= before + 1


def test_one_input_needs_no_list_and_a_function_says_what_it_is():
    x = cg.Var((4,), "float64", "x")
    function = cg.compile(x * 2, x)
    np.testing.assert_array_equal(function(np.ones(4)), np.full(4, 2.0))
    assert repr(function) == "<Function (x float64[4]) -> float64[4]; arena 64 B>"


def test_item_is_a_python_number():
    x = cg.Var((3,), "int64").assign([1, 2, 3])
    assert cg.sum(x).item() == 6 and type(cg.sum(x).item()) is int


@pytest.mark.parametrize("turned", [False, True])
def test_an_array_that_is_assigned_without_a_copy_is_read_and_never_written(turned):
    given = np.arange(12, dtype="float32").reshape(3, 4)
    given = given.T if turned else given
    kept = given.copy()
    given.flags.writeable = False
    x = cg.Var(given.shape).assign(given, copy=False)
    assert (x.cell.array is given) != turned
    step = cg.compile(cg.sum(x), updates={x: x * 2})
    assert [float(step()) for _ in range(3)] == [66, 132, 264]
    np.testing.assert_array_equal(x.value, kept * 8)
    np.testing.assert_array_equal(given, kept)
    x.assign(given, copy=False).assign(kept + 1)
    np.testing.assert_array_equal(given, kept)
    np.testing.assert_array_equal(x.value, kept + 1)


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_a_value_that_is_shared_between_runs_is_not_written_any_more(runs):
    x, scale = cg.Var((5,), name="x"), cg.Var((), name="scale")
    x.assign(np.ones(5, "float32"))
    scale.assign(np.float32(2))
    double, read = cg.compile([], updates={x: x * scale}), cg.compile(x + 1)
    for _ in range(runs):
        double()
        read()
    kept = x.cell.share()
    before = kept.copy()
    double()
    np.testing.assert_array_equal(kept, before)
    np.testing.assert_array_equal(read(), before * 2 + 1)
    scale.assign(np.float32(3))
    double()
    np.testing.assert_array_equal(read(), before * 6 + 1)
    np.testing.assert_array_equal(kept, before)


def test_values_that_were_bound_once_are_bound_again_when_others_replace_them():
    x, y = cg.Var((5,), name="x"), cg.Var((5,), name="y")
    x.assign(np.ones(5, "float32"))
    function = cg.compile(cg.sum(x + y), y)
    for number in range(4):
        assert function(np.full(5, number, "float32")) == 5 + 5 * number
    own = np.full(5, 10, "float32")
    x.assign(own, copy=False)
    for number in range(3):
        assert function(np.full(5, number, "float32")) == 50 + 5 * number
    assert (own == 10).all()
    x.assign(np.zeros(5, "float32"))
    assert function(np.zeros(5, "float32")) == 0


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_a_call_that_is_refused_for_its_out_has_changed_nothing(engine):
    x = cg.Var((4,), "float64").assign(np.zeros(4))
    step = cg.compile(cg.sum(x), updates={x: x + 1}, engine=engine)
    read_only = np.zeros(())
    read_only.flags.writeable = False
    for out in (np.empty(3), np.zeros((), "float32"), read_only, [np.zeros(())] * 2, ["text"]):
        with pytest.raises(cg.InputError, match="out has"):
            step(out=out)
    np.testing.assert_array_equal(x.value, np.zeros(4))


def test_views_of_outputs_cannot_be_written():
    x = cg.Var((4,), "float64").assign(np.ones(4))
    function = cg.compile(x * 2)
    view = function(copy=False)
    with pytest.raises(ValueError, match="read-only"):
        view -= 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.flags.writeable = True
    np.testing.assert_array_equal(function(), np.full(4, 2.0))


def test_an_arena_that_the_machine_does_not_give_is_refused_with_the_plan():
    x = cg.Var((), "float32", "x")
    with pytest.warns(cg.MemoryWarning, match=r"needs 16384 GiB, this machine has [\d.]+ [MG]iB"):
        function = cg.compile(cg.sort(cg.exp(cg.broadcast_to(x, (1 << 40,)) * 2)), [x])
    with pytest.raises(cg.ArenaError, match="needs 16384 GiB, which the machine does not give; no plan"):
        function(np.float32(1))


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_an_input_of_any_strides_is_read_in_its_own_order(engine):
    whole = np.arange(24, dtype="float32").reshape(4, 6)
    for value in (whole[:, :3], whole[::2], whole.T, whole[::-1], np.asfortranarray(whole), whole[1, ::2], whole[0, 0]):
        x = cg.Var(np.shape(value), name="x")
        found = cg.compile(cg.reshape(x, (-1,)) + 1, [x], engine=engine)(np.asarray(value))
        np.testing.assert_array_equal(found, np.ravel(value) + 1)


def test_a_copy_of_a_function_runs_in_memory_of_its_own():
    """Views of one are not overwritten by the other, whichever ran before; the cells are the same."""
    x, w = cg.Var((4,), "float64", "x"), cg.Var((4,), "float64", "w").assign(np.ones(4))
    function = cg.compile(x * 2 + w, [x])
    function(np.zeros(4))  # its memory is idle when it is copied
    other = copy.copy(function)
    first = function(np.ones(4), copy=False)
    second = other(np.zeros(4), copy=False)
    np.testing.assert_array_equal(first, np.full(4, 3.0))
    np.testing.assert_array_equal(second, np.ones(4))
    w.assign(np.zeros(4))
    assert other(np.ones(4)).tolist() == function(np.ones(4)).tolist() == [2.0] * 4


def test_runs_that_are_timed_leave_nothing_that_a_later_call_takes_for_its_own():
    """A looked-at run has other inputs: what it left in the arena belongs to no version of the Vars."""
    x, w = cg.Var((64,), "float64", "x"), cg.Var((64,), "float64", "w").assign(np.ones(64))
    function = cg.compile([cg.cumsum(w, 0), cg.cumsum(x, 0) * 2], [x])
    want = [np.cumsum(np.ones(64)), np.cumsum(np.ones(64)) * 2]
    for _ in range(2):
        for got, expected in zip(function(np.ones(64)), want):
            np.testing.assert_array_equal(got, expected)
        with function.instance_for((np.full(64, 7.0),), {}) as instance:
            w.assign(np.full(64, 5.0))
            w.assign(np.ones(64))
            instance.run(None)
