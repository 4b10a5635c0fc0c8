"""Running tables: same bits on any number of threads, many threads at once, signals, forks, callbacks."""

import ctypes
import os
import platform
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.engine.cpu import threads as threads_module
from cgraph.engine.cpu.threads import (
    WAITING,
    Native,
    Team,
    ThreadPool,
    futex_number,
    native,
    new_cores,
    run_table,
)
from cgraph.kernels.interpret import emit
from cgraph.kernels.kernel import Call, Pointer, View
from cgraph.kernels.move.calls import copy_calls, fill_calls
from cgraph.kernels.move.signature import FILLS, TILES
from cgraph.kernels.target import host_target
from tests.support.interrupts import interrupt_after
from tests.support.kernels import view_of
from tests.support.patience import PATIENCE
from tests.support.tables import Table, table_of

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
SIDE = 48


def transpose_calls(out: np.ndarray, x: np.ndarray) -> list[Call]:
    """``out = x.T``, in as many tasks as rows: each task reads what many tasks of the call before wrote."""
    calls = []
    for call in copy_calls(host_target(), view_of(out), View(Pointer(x), x.shape[::-1], x.strides[::-1], "f8")):
        lanes = 2
        side = SIDE // lanes
        blocks = {"block_i": lanes, "blocks_i": side, "block_j": lanes, "blocks_j": side}
        calls.append(TILES.call((8, lanes), side * side, **(TILES.named(call.kernel.params, call.args) | blocks)))
    return calls


def chain(x: np.ndarray, length: int) -> tuple[Table, np.ndarray]:
    """Transposes one after the other, to and fro, with a call of one task in between; the result is the last array."""
    arrays = [x, *(np.zeros_like(x) for _ in range(length))]
    calls = []
    for before, after in zip(arrays, arrays[1:]):
        calls += fill_calls(host_target(), view_of(after), -1.0) + transpose_calls(after, before)
    return table_of(calls), arrays[-1]


def callback_table(*functions) -> Table:
    """One row of one task for each Python function of no argument."""
    made = [KERNEL(lambda args, first, last, f=f: f()) for f in functions]
    rows = [[ctypes.cast(f, ctypes.c_void_p).value, 0, 1, 1] for f in made]
    return Table(np.array(rows, np.int64), (made,))


def naps(count: int) -> np.ndarray:
    """Rows that sleep 2 ms each, in native code."""
    usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value
    return np.array([[usleep, 2000, 1, 1]] * count, np.int64)


@pytest.fixture
def four():
    """A pool of four threads, whatever this machine has."""
    made = ThreadPool(4)
    yield made
    made.close()


def run(target: ThreadPool, table: Table, threads: int, stop: int = 0) -> int:
    return target.run(table.rows.ctypes.data, len(table.rows), threads, stop)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_any_number_of_threads_gives_the_same_result(threads):
    wide = ThreadPool(7)
    x = np.random.default_rng(1).random((SIDE, SIDE))
    for _ in range(20):
        table, out = chain(x, 9)
        assert run(wide, table, threads) == len(table.rows)
        np.testing.assert_array_equal(out, x.T)
    wide.close()


def test_thousands_of_short_runs_with_changing_numbers_of_threads(four):
    x = np.random.default_rng(2).random((SIDE, SIDE))
    table, out = chain(x, 2)
    for i in range(2000):
        out[...] = -1
        run(four, table, 1 + i % 4)
        assert (out == x).all(), i


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_every_thread_begins_with_its_own_part_of_a_call(threads, four):
    tasks, began, together = 24, {}, threading.Barrier(threads)

    def enter(_args: int, first: int, _last: int) -> None:
        if threading.get_ident() not in began:
            began[threading.get_ident()] = first
            together.wait(timeout=PATIENCE)

    kernel = KERNEL(enter)
    rows = np.array([[ctypes.cast(kernel, ctypes.c_void_p).value, 0, tasks, 1]], np.int64)
    for _ in range(3):
        began.clear()
        run(four, Table(rows, (kernel,)), threads)
        assert sorted(began.values()) == [tasks * i // threads for i in range(threads)]
        assert began[threading.get_ident()] == 0


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(("tasks", "chunk"), [(10, 4), (7, 2), (25, 8), (3, 5), (5, 5)])
def test_no_share_of_a_call_reaches_beyond_its_tasks(tasks, chunk, threads, four):
    shares = []
    kernel = KERNEL(lambda _args, first, last: shares.append((first, last)))
    rows = np.array([[ctypes.cast(kernel, ctypes.c_void_p).value, 0, tasks, chunk]] * 3, np.int64)
    run(four, Table(rows, (kernel,)), threads)
    assert sorted(i for share in shares for i in range(*share)) == sorted(3 * list(range(tasks)))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_run_on_fewer_threads_leaves_the_others_of_a_team_alone(threads, four):
    everyone, seen = threading.Barrier(4), set()

    def meet(_args: int, _first: int, _last: int) -> None:
        everyone.wait(timeout=PATIENCE)

    def note(_args: int, _first: int, _last: int) -> None:
        seen.add(threading.get_ident())
        time.sleep(0.001)  # long enough for whoever is awake to take part

    kernels = [KERNEL(meet), KERNEL(note)]
    team, some = (
        np.array([[ctypes.cast(k, ctypes.c_void_p).value, 0, n, 1]], np.int64) for k, n in zip(kernels, (4, 40))
    )
    for _ in range(3):
        run(four, Table(team, tuple(kernels)), 4)
        run(four, Table(some, tuple(kernels)), threads)
    assert threading.get_ident() in seen and len(seen) <= threads


def test_both_sides_count_the_words_of_a_team_alike():
    for name in ("WORD", "QUIT", "BUSY", "TEAM_WORDS", "FREE", "WAITING", "CORES_WORDS", "TEAM_BUSY"):
        assert getattr(threads_module, name) == getattr(emit, name), name
    assert threads_module.MOST_THREADS == emit.MOST_MEMBERS


def test_runs_from_several_python_threads_at_once(four):
    failures = []

    def repeat(seed: int) -> None:
        x = np.random.default_rng(seed).random((SIDE, SIDE))
        table, out = chain(x, 3)
        for i in range(150):
            out[...] = -1
            run(four, table, 1 + (i + seed) % 4)
            if not (out == x.T).all():
                failures.append((seed, i))

    threads = [threading.Thread(target=repeat, args=(seed,)) for seed in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_no_more_runs_go_on_than_there_are_cores():
    two, going, most, lock = ThreadPool(2), [0], [0], threading.Lock()

    def enter() -> None:
        with lock:
            going[0] += 1
            most[0] = max(most[0], going[0])
        time.sleep(0.01)
        with lock:
            going[0] -= 1

    table = callback_table(enter)
    threads = [threading.Thread(target=run, args=(two, table, 1)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] <= 2


def test_all_runs_that_fit_start_when_cores_become_free():
    two, both, free = ThreadPool(2), threading.Barrier(2), threading.Event()
    waiting = callback_table(lambda: both.wait(timeout=PATIENCE))
    others = [threading.Thread(target=run, args=(two, waiting, 1)) for _ in range(2)]

    def start_others() -> None:
        for thread in others:
            thread.start()
        free.wait(timeout=0.05)

    run(two, callback_table(start_others), 2)
    for thread in others:
        thread.join()
    assert not both.broken


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_arrives_between_calls_and_the_pool_goes_on(threads, four):
    reached_the_end = []
    last = callback_table(lambda: reached_the_end.append(1))
    table = Table(np.concatenate([naps(2000), last.rows]), last.keep)
    with pytest.raises(KeyboardInterrupt), interrupt_after(0.1):
        run(four, table, threads)
    assert reached_the_end == []
    x = np.random.default_rng(3).random((SIDE, SIDE))
    again, out = chain(x, 3)
    assert run(four, again, threads) == len(again.rows)
    np.testing.assert_array_equal(out, x.T)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_long_table_is_resumed_after_every_slice_of_time(threads, four):
    ran = []
    calls = callback_table(*[lambda: ran.append(len(ran))] * 50)
    rows = np.stack([naps(50), calls.rows], 1).reshape(-1, 4)
    assert run(four, Table(rows, calls.keep), threads) == 100
    assert ran == list(range(50))


@pytest.mark.parametrize("threads", [1, 4])
def test_the_stop_word_ends_the_run_after_the_current_call(threads, four):
    stop, ran = np.zeros(1, np.int64), []
    functions = [lambda i=i: ran.append(i) for i in range(10)]
    functions[6] = lambda: (ran.append(6), stop.__setitem__(0, 1))
    assert run(four, callback_table(*functions), threads, stop.ctypes.data) == 7
    assert ran == list(range(7))


def test_more_tasks_than_the_shared_word_counts_are_put_together(four):
    n = (1 << 24) + 5
    out = np.zeros(n, np.uint8)
    call = fill_calls(host_target(), view_of(out), 1)[0]
    one_byte_each = FILLS.named(call.kernel.params, call.args) | {"block": 1, "blocks": n}
    assert run(four, table_of([FILLS.call(call.kernel.params, n, **one_byte_each)]), 2) == 1
    assert out.all()


def function_rows(*numbers: int) -> np.ndarray:
    """Rows that call Python functions by their numbers."""
    return np.array([[0, 100 + n, n, 1] for n in numbers], np.int64)


@pytest.mark.parametrize("threads", [1, 3])
def test_python_functions_run_between_kernels_and_hold_no_core(threads, four):
    ran = []
    kernels = callback_table(*[lambda i=i: ran.append(("kernel", i)) for i in range(3)])
    rows = np.concatenate([function_rows(1, 0), kernels.rows[:2], function_rows(1), kernels.rows[2:]])
    functions = [lambda args, n=n: ran.append((n, args, four._free)) for n in range(2)]
    assert four.run(rows.ctypes.data, len(rows), threads, 0, functions) == 6
    assert ran == [(1, 101, 4), (0, 100, 4), ("kernel", 0), ("kernel", 1), (1, 101, 4), ("kernel", 2)]


def test_what_a_python_function_raises_ends_the_run(four):
    def fail(args):
        raise LookupError(args)

    ran = []
    rows = np.concatenate([function_rows(0), callback_table(lambda: ran.append(1)).rows])
    with pytest.raises(LookupError, match="100"):
        four.run(rows.ctypes.data, len(rows), 2, 0, [fail])
    assert ran == [] and four._free == 4


def test_a_python_function_may_wait_for_a_run_of_another_thread():
    one = ThreadPool(1)
    inner, rows = naps(1), function_rows(0)

    def wait_for_other(_args):
        other = threading.Thread(target=one.run, args=(inner.ctypes.data, 1))
        other.start()
        other.join(timeout=PATIENCE)
        assert not other.is_alive()

    assert one.run(rows.ctypes.data, 1, 1, 0, [wait_for_other]) == 1


def test_a_call_without_tasks_is_skipped(four):
    ran = []
    table = callback_table(lambda: ran.append(0), lambda: ran.append(1))
    table.rows[0, 2] = 0
    for threads in (1, 4):
        assert run(four, table, threads) == 2
    assert ran == [1, 1]
    assert four.run(table.rows.ctypes.data, 0, 4) == 0


def test_a_run_goes_on_with_the_threads_that_the_system_gives(monkeypatch, four):
    """Later runs ask for the missing ones again, and those that never started are not waited for at the end."""
    start, refused = threading.Thread.start, [True]

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "cgraph-2" and refused[0]:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    x = np.random.default_rng(5).random((SIDE, SIDE))
    for grown in (1, 1, 3):
        refused[0] = grown < 3
        table, out = chain(x, 3)
        assert run(four, table, 4) == len(table.rows)
        np.testing.assert_array_equal(out, x.T)
        (team,) = four._teams
        assert team._grown == grown and sum(t.is_alive() for t in team.threads) == grown
    four.close()
    assert not any(t.is_alive() for t in team.threads) and not four._teams


def test_a_pool_has_at_least_one_core_and_a_run_at_most_64_threads(monkeypatch):
    assert [ThreadPool(size).size for size in (-1, 0, 1, 5)] == [1, 1, 1, 5]
    wide, asked = ThreadPool(100), []
    monkeypatch.setattr(wide, "_slice", lambda table, row, rows, most, *_: asked.append(most) or rows)
    for threads in (0, 1, 63, 64, 65, 100):
        wide.run(0, 1, threads)
    assert asked == [64, 1, 63, 64, 64, 64]
    narrow = ThreadPool(3)
    monkeypatch.setattr(narrow, "_slice", wide._slice)
    for threads in (0, 2, 3, 4):
        narrow.run(0, 1, threads)
    assert asked[6:] == [3, 2, 3, 3]


def test_the_first_interpreter_that_is_offered_stays(monkeypatch):
    own, kernels = Native(), {k.family: k for k in threads_module.interpreter()}
    monkeypatch.setattr(threads_module, "_native", own)
    for number, memory in ((1, "first"), (2, "second")):
        addresses = {kernels["interpret.hold"]: number, kernels["interpret.lead"]: number + 10}
        threads_module.offer_native(lambda: (addresses, memory))  # noqa: B023 called at once
        assert (own.address("hold"), own.address("lead"), own.memory) == (1, 11, "first")


def test_a_forked_pool_has_all_cores_and_no_team_at_the_same_address():
    pool = ThreadPool(3)
    pool._cores[[threads_module.FREE, WAITING]] = 1, 5
    pool._teams.append(None)
    address = pool._cores.ctypes.data
    pool.forget()
    assert (pool._free, pool._cores[WAITING], pool._teams) == (3, 0, [])
    assert pool._cores.ctypes.data == address == pool._address


def test_functions_of_the_interpreter_are_loaded_when_they_are_used():
    native = Native()
    assert callable(native.halt) and vars(native).keys() == {"read", "halt"} and not native.is_used
    assert callable(native.alone) and vars(native).keys() == {"read", "halt", "alone", "hold", "release"}
    assert native.is_used and callable(native.follow) and "lead" in vars(native)
    with pytest.raises(AttributeError, match="sleep"):
        _ = native.sleep


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_starts_threads_of_its_own():
    x = np.random.default_rng(4).random((SIDE, SIDE))
    table, out = chain(x, 3)
    run_table(table.rows)
    out[...] = -1
    child = os.fork()
    if child == 0:
        done = run_table(table.rows) == len(table.rows) and (out == x.T).all()
        os._exit(0 if done else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    run_table(table.rows)
    np.testing.assert_array_equal(out, x.T)


@pytest.mark.parametrize(
    ("system", "processor", "number"),
    [("linux", "x86_64", 202), ("linux", "aarch64", 98), ("linux", "riscv64", 0), ("darwin", "x86_64", 0)],
)
def test_sleeping_asks_the_system_by_the_number_that_it_has_there(system, processor, number, monkeypatch):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: processor)
    assert futex_number() == number


def test_a_run_sleeps_while_it_waits_for_a_core():
    """What sleeps is counted. A wait lasts 20 ms, in which this thread may not run: then another begins."""
    words, most = new_cores(0), 0
    for _ in range(100):
        waiting = threading.Thread(target=native().hold, args=(words.ctypes.data, 1))
        waiting.start()
        while waiting.is_alive() and not most:
            most = int(words[WAITING])
        waiting.join()
        if most:
            break
    assert most == 1 and words[WAITING] == 0


def test_a_fork_asks_again_until_it_has_all_cores(monkeypatch):
    counts = iter([1, 2, 3])
    held = SimpleNamespace(is_used=True, hold=lambda cores, count: next(counts))
    monkeypatch.setattr(threads_module, "_native", held)
    ThreadPool(3).pause()
    assert list(counts) == []


def test_the_interpreter_is_compiled_for_the_clock_and_the_sleep_of_the_system(monkeypatch):
    monkeypatch.setattr(threads_module, "quick_clock", lambda: 5)
    monkeypatch.setattr(threads_module, "futex_number", lambda: 7)
    assert {k.params for k in threads_module.interpreter()} == {(5, 7)}


def test_a_team_that_grows_starts_only_the_threads_that_it_lacks():
    team = Team()
    for workers in (1, 3, 2):
        team.grow(workers)
    team.close()
    assert [thread.name for thread in team.threads] == ["cgraph-1", "cgraph-2", "cgraph-3"]
