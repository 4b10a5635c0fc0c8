"""Work that several threads, programs or processes share: one at a time, and nothing of another's."""

import os
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from weakref import ref

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu import threads as pools
from cgraph.engine.cpu.cores import cores
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cpu.threads import (
    BUSY,
    FREE,
    QUIT,
    TEAM_BUSY,
    Native,
    Team,
    ThreadPool,
    aligned_words,
    native,
    run_rows,
    run_table,
)
from cgraph.kernels.callback import callback_call
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.store import KernelStore
from cgraph.kernels.target import host_target
from cgraph.storage.shared_arenas import SharedArena, SharedArenas
from cgraph.system.fair_lock import FairLock, Ticket
from tests.support.kernels import view_of
from tests.support.patience import PATIENCE


def until(is_so: Callable[[], bool]) -> None:
    """Wait for an event."""
    end = time.monotonic() + PATIENCE
    while not is_so() and time.monotonic() < end:
        time.sleep(0.001)
    assert is_so()


class Entered:
    """A function that is inside until it may leave. Changes: counts who came."""

    def __init__(self) -> None:
        self.count, self.may_leave = 0, threading.Event()

    def __call__(self, *_: object) -> None:
        self.count += 1
        assert self.may_leave.wait(PATIENCE)


def check_alone(entered: Entered, turns: FairLock, work: Callable[[], object]) -> None:
    """Of two calls at once the second waits in line while the first is inside."""
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    until(lambda: len(turns._line) == 2 or entered.count == 2)
    until(lambda: entered.count > 0)
    count = entered.count
    entered.may_leave.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert count == 1


def test_a_team_grows_for_one_run_at_a_time(monkeypatch):
    team, entered = Team(), Entered()
    monkeypatch.setattr(team, "_start", entered)
    check_alone(entered, team._turns, lambda: team.grow(2))


KERNEL = Kernel("blocked_copy.fill_halo", ("f4", 4))


def test_a_store_compiles_for_one_caller_at_a_time(monkeypatch):
    store, entered, target = KernelStore(None), Entered(), host_target()

    def add(kernels, target) -> None:
        entered()
        store._addresses[KERNEL, target] = 1

    monkeypatch.setattr(store, "_add", add)
    check_alone(entered, store._lock, lambda: store.load([KERNEL], target))


@pytest.mark.parametrize("work", ["load", "image", "ptx"])
def test_nobody_compiles_between_pause_and_resume(monkeypatch, work):
    store, begun, target = KernelStore(None), [], host_target()
    for name in ("_link", "_stored_code", "_compile_and_store"):
        monkeypatch.setattr(
            KernelStore, name, lambda self, *given: begun.append(given) or (_ for _ in ()).throw(LookupError)
        )
    calls = {
        "load": lambda: store.load([KERNEL], target),
        "image": lambda: store.image([KERNEL], target),
        "ptx": lambda: store.ptx(KERNEL, 3, target),
    }
    ended = []

    def run() -> None:
        try:
            calls[work]()
        except LookupError:
            ended.append(len(begun))

    store.pause()
    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: len(store._lock._line) == 2 or bool(begun))
    assert not begun
    store.resume()
    thread.join(PATIENCE)
    assert ended and begun


def test_texts_for_gpus_of_other_numbers_of_arguments_have_other_names(monkeypatch):
    store, names = KernelStore(None), []
    monkeypatch.setattr(KernelStore, "_compile_and_store", lambda *_: b"")
    for words in (3, 4):
        names.append(store.ptx(KERNEL, words, host_target())[0])
    assert len(set(names)) == 2


def test_a_team_that_is_busy_is_not_sent_home():
    team = Team()
    team.words[BUSY] = 1
    team.close()
    assert not team.words[QUIT]


@pytest.mark.parametrize(("threads", "expected"), [(0, cores()), (1, 1), (3, 3)])
def test_a_program_runs_with_the_threads_that_were_asked_for(threads, expected):
    x = cg.Var((4,), name="x")
    assert cg.compile(cg.exp(x), [x], engine=CpuEngine(threads=threads)).program.threads == expected


# -- turns and rooms ------------------------------------------------------------


def test_a_turn_of_another_process_is_over(monkeypatch):
    """A forked child has a copy of the line, and nobody who would end it."""
    turns, turn = FairLock(), Ticket()
    turns.join(turn)
    assert not turn.is_over
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    assert turn.is_over
    done = []
    thread = threading.Thread(target=lambda: turns.run(lambda: done.append(True)))
    thread.start()
    thread.join(PATIENCE)
    assert done


def test_memory_that_is_too_small_since_another_program_came_is_not_taken_again():
    rooms = SharedArenas()
    rooms.need(64)
    first = rooms.take()
    rooms.need(4096)
    rooms.give(first)
    assert rooms.take().memory.nbytes >= 4096


def test_memory_is_taken_by_one_run_at_a_time_and_given_again():
    rooms = SharedArenas()
    rooms.need(64)
    first, second = rooms.take(), rooms.take()
    assert first is not second
    rooms.give(first)
    assert rooms.take() is first


def test_instances_of_programs_that_are_gone_are_dropped():
    class Program:
        pass

    room, kept, gone = SharedArena(64), Program(), Program()
    room.instances = {ref(kept): "kept", ref(gone): "gone"}
    del gone
    rooms = SharedArenas()
    rooms.give(room)
    assert list(room.instances.values()) == ["kept"]


def test_what_a_program_held_is_computed_again_after_another_ran_in_its_memory():
    rooms, turns = SharedArenas(), FairLock()
    functions, wants = [], []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        v, w = cg.Var((30, 30), name="v"), cg.Var((30, 30), name="w")
        v.assign(rng.normal(size=(30, 30)).astype("f4"))
        w.assign(rng.normal(size=(30, 30)).astype("f4"))
        graph = cg.sort(cg.tanh(v) @ w, 0) @ v
        wants.append(cg.compile(graph)())
        functions.append(cg.compile(graph))
        functions[-1].share(rooms, turns)
    for _ in range(3):
        for function, want in zip(functions, wants):
            for _ in range(2):
                np.testing.assert_array_equal(function(), want)


# -- Python functions among kernels ------------------------------------------------------------


@pytest.mark.parametrize("outs", [0, 1, 2, 3])
def test_a_python_function_among_kernels_writes_its_results_and_nothing_else(outs):
    """Others read its operands; it gets each array from its own address."""
    arrays = [np.full(3, i, "f4") for i in range(3)]
    views = [view_of(x) for x in arrays]
    seen = []
    call = callback_call(lambda ys, xs: seen.append((ys, xs)), views[:outs], views[outs:])
    words = np.array([x.ctypes.data for x in arrays], np.int64)
    call.kernel.function(words.ctypes.data)
    ((ys, xs),) = seen
    assert [x[0] for x in (*ys, *xs)] == [0, 1, 2] and len(ys) == outs
    assert all(y.flags.writeable for y in ys) and not any(x.flags.writeable for x in xs)


@pytest.mark.parametrize(("free", "teams"), [(0, 0), (1, 0), (2, 1), (4, 1)])
def test_a_team_is_made_only_for_more_than_one_core(free, teams):
    """A run has a core of its own; a team without a second one would only wait for it."""
    pool = ThreadPool(4)
    try:
        pool._cores[FREE] = free
        team = pool._idle_team()
        assert len(pool._teams) == teams and (team is None) == (teams == 0)
    finally:
        pool.close()


def test_a_run_takes_an_idle_team_and_another_one_where_all_are_busy():
    pool, busy, idle = ThreadPool(4), Team(), Team()
    pool._teams, busy.words[BUSY] = [busy, idle], 1
    assert pool._idle_team() is idle and pool._teams == [busy, idle]
    idle.words[BUSY] = 1
    third = pool._idle_team()
    assert pool._teams == [busy, idle, third] and third not in (busy, idle)


def test_a_run_goes_on_where_it_was_if_another_has_taken_its_team():
    pool, grown, asked, ends = ThreadPool(4), [], [], [TEAM_BUSY, 5]
    team = SimpleNamespace(
        is_busy=False, grow=grown.append, lead=lambda *given: asked.append(given) or ends[len(asked) - 1]
    )
    pool._teams = [team]
    assert [pool._slice(7, 2, 6, 3, 11, 13) for _ in range(2)] == [2, 5]
    assert asked == [(pool._address, 3, 7, 2, 6, 11, 13)] * 2 and grown == [2, 2]


def test_a_fork_waits_for_all_cores_and_gives_them_back(monkeypatch):
    pool = ThreadPool(3)
    assert native().alone
    pool.pause()
    assert pool._free == 0
    pool.resume()
    assert pool._free == 3
    unused = Native()
    monkeypatch.setattr(pools, "_native", unused)
    pool.pause()
    pool.resume()
    assert not vars(unused) and pool._free == 3, "no native code is loaded for a fork"


@pytest.mark.parametrize("whole", [False, True])
def test_rows_run_in_slices_of_time_unless_they_are_one_whole(monkeypatch, whole):
    asked, functions = [], [print]
    monkeypatch.setattr(pools, "_pool", SimpleNamespace(run=lambda *given: asked.append(given) or 7))
    table, stop = np.zeros((4, 4), np.int64), np.zeros(1, np.int64)
    assert run_rows(64, 3, 2, 5, functions, whole) == run_table(table, 3, stop, functions, whole) == 7
    assert run_table(table) == 7
    slice_ns = pools.NEVER_OVER if whole else pools.SLICE_NANOSECONDS
    assert asked == [
        (64, 3, 2, 5, functions, slice_ns),
        (table.ctypes.data, 4, 3, stop.ctypes.data, functions, slice_ns),
        (table.ctypes.data, 4, 0, 0, (), pools.SLICE_NANOSECONDS),
    ]


@pytest.mark.parametrize("count", [1, 15, 16, 17, 100])
def test_shared_words_are_zeros_that_begin_at_a_pair_of_cache_lines(count):
    several = [aligned_words(count) for _ in range(9)]
    for words in several:
        assert (words.shape, words.dtype) == ((count,), np.int64) and not words.any()
        assert words.ctypes.data % 128 == 0
        words[...] = 1


def test_a_pool_ends_the_threads_of_all_its_teams():
    pool, teams = ThreadPool(4), [Team() for _ in range(3)]
    for team in teams:
        team.grow(1)
    pool._teams = list(teams)
    pool.close()
    threads = [thread for team in teams for thread in team.threads]
    assert len(threads) == 3 and not any(thread.is_alive() for thread in threads) and pool._teams == []
