"""Real signals, forks and other threads in the midst of calls: what they leave is whole, and nothing waits for ever."""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu import threads as threads_module
from tests.support.patience import PATIENCE
from tests.support.tolerance import assert_near

needs_alarm = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer signals here")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


alarm = SimpleNamespace(armed=False)


class Timeout(Exception):
    """What a user's handler raises."""


@pytest.fixture(params=[KeyboardInterrupt, Timeout])
def error(request):
    """An exception that a timer's signal raises."""

    def raise_it(*_: Any) -> None:
        if alarm.armed:  # what comes too late is lost
            raise request.param

    before = signal.signal(signal.SIGALRM, raise_it)
    yield request.param
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupted(call: Callable[[], Any], seconds: float, error: type[BaseException]) -> bool:
    """Call it with a signal after some time; whether that came before the end."""
    alarm.armed = True
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            call()
        finally:
            alarm.armed = False
    except error:  # the timer rings once
        return True
    signal.setitimer(signal.ITIMER_REAL, 0)
    return False


@needs_alarm
def test_signals_at_any_moment_lose_no_core_and_block_no_call(error):
    x = cg.Var((8,), "float64", "x")
    f, a = cg.compile(cg.sin(x), [x]), np.ones(8)
    for i in range(1500):
        interrupted(lambda: [f(a) for _ in range(20)], 3e-5 + 1e-6 * (i % 60), error)
        assert threads_module._pool._free == threads_module._pool.size
    np.testing.assert_array_equal(f(a), np.sin(a))


@needs_alarm
@pytest.mark.parametrize("shown", [False, True])
def test_update_edges_are_all_written_or_none(error, shown):
    held = [cg.Var((5000,), "float64").assign(np.zeros(5000)) for _ in range(20)]
    step = cg.compile(held if shown else [], updates={v: v + 1.0 for v in held})  # shown Vars are copied, others not
    read = cg.compile([cg.max(v) for v in held])
    for i in range(60):
        read()
        interrupted(step, 2e-5 * (i + 1), error)
        seen = {float(x) for v in held for x in v.value}
        assert len(seen) == 1
        assert {float(x) for x in read()} == seen


@needs_alarm
def test_values_that_changed_before_an_interrupted_call_are_seen_by_the_next(error):
    held = [cg.Var((8,), "float64").assign(np.ones(8)) for _ in range(6)]
    f = cg.compile(cg.sum(cg.stack([cg.max(cg.sort(v)[::-1]) for v in held])))
    f()
    for i in range(80):
        held[i % 6].assign(np.full(8, float(i)))
        held[i % 5].assign(np.full(8, float(i + 1)))
        interrupted(f, 2e-5 + 1e-5 * (i % 40), error)
        assert float(f()) == sum(float(v.value[0]) for v in held)


def test_an_assignment_during_a_call_is_seen_by_the_next():
    n = 300_000
    x = cg.Var((n,), "float64").assign(np.zeros(n))
    f = cg.compile(cg.sum(x))
    for i in range(1, 30):
        thread = threading.Thread(target=x.assign, args=(np.full(n, float(i % 4)),))
        thread.start()
        while thread.is_alive():
            f()
        assert float(f()) == n * float(i % 4)


def test_a_value_that_is_assigned_during_a_call_stays():
    x, y = cg.Var((3,), "float64").assign(np.zeros(3)), cg.Var((3,), "float64").assign(np.zeros(3))
    entered, assigned = threading.Event(), threading.Event()

    def wait(v: np.ndarray) -> np.ndarray:
        entered.set()
        assert assigned.wait(timeout=PATIENCE)
        return v

    step = cg.compile([], updates={x: cg.delay(wait, x) + 1, y: y + 1})
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(step)
        assert entered.wait(timeout=PATIENCE)
        x.assign(np.full(3, 7.0))
        assigned.set()
        job.result(timeout=PATIENCE)
    np.testing.assert_array_equal(x.value, np.full(3, 7.0))  # as if it came after the call
    np.testing.assert_array_equal(y.value, np.ones(3))


def test_a_python_function_may_wait_for_a_function_of_another_thread():
    x = cg.Var((200, 200), "float64", "x")
    inner = cg.compile(cg.exp(x @ x), [x])
    with ThreadPoolExecutor(1) as pool:
        outer = cg.compile(cg.delay(lambda v: pool.submit(inner, v).result(timeout=PATIENCE), x) + x, [x])
        a = np.full((200, 200), 0.01)
        assert_near(outer(a), np.exp(a @ a) + a, "float64 through float32")


@contextmanager
def calling(function: Callable[[], Any], count: int = 2):
    """Threads that call it all the time."""
    over = threading.Event()
    threads = [threading.Thread(target=lambda: [function() for _ in iter(over.is_set, True)]) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_other_threads_run_leaves_a_child_that_runs_and_sees_whole_values():
    n = 200_000
    x = cg.Var((n,), "float64").assign(np.zeros(n))
    step = cg.compile([], updates={x: cg.sqrt(cg.square(x)) + 1.0})
    step()
    with calling(step):
        for _ in range(10):
            child = os.fork()
            if not child:
                signal.alarm(int(PATIENCE))  # a child that hangs is killed
                before = x.value
                step()
                fine = len(set(before.tolist())) == 1 and (x.value == before + 1).all()
                os._exit(0 if fine else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
