"""Instructions of the interpreter: words exchanged and added to, calls by address, clocks, sleeps."""

import ctypes
import threading
import time

import numpy as np
import pytest

from cgraph.kernels.interpret.atomics import add, call, give_way, load, now, sleep_briefly, store, swap
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import KERNEL_TYPE, Builder
from cgraph.kernels.target import host_target
from tests.support.emitted import OWN, compiled, emitter_over, run_emitted, words_of
from tests.support.kernels import KERNEL
from tests.support.patience import PATIENCE

HOST = host_target()
LINUX, WINDOWS = "x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc"
ENDS = [0, 1, -1, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("value", ENDS)
def test_a_word_is_loaded_and_stored_whole_and_its_neighbours_stay(value):
    source, to = np.array([5, value, 6]), np.array([7, 8, 9])
    run_emitted(lambda k, x, out: store(k, out + 1, load(k, x + 1)), HOST, source, to)
    assert to.tolist() == [7, value, 9] and source.tolist() == [5, value, 6]


@pytest.mark.parametrize(("before", "old", "new", "after", "swapped"), [(3, 3, 9, 9, 1), (4, 3, 9, 4, 0)])
def test_a_word_is_swapped_only_if_it_is_the_old_one(before, old, new, after, swapped):
    word, told = np.array([before]), np.array([-1])

    def write(k, at, out):
        out.store(k.cast(swap(k, at, k.const(old, "i8"), k.const(new, "i8")), "i8"))

    run_emitted(write, HOST, word, told)
    assert (word[0], told[0]) == (after, swapped)


def test_numbers_of_either_sign_are_added():
    word = np.array([10, 100])

    def write(k, at):
        add(k, at, k.const(-12, "i8"))
        add(k, at + 1, k.const(2**40, "i8"))

    run_emitted(write, HOST, word)
    assert word.tolist() == [-2, 100 + 2**40]


def test_threads_that_add_to_one_word_lose_nothing():
    word, rounds, members = np.zeros(1, np.int64), 20_000, 4

    def write(k, at):
        with k.loop(0, rounds):
            add(k, at, k.const(1, "i8"))

    memory, function = compiled(emitter_over(write, (word,)), OWN, HOST)
    words = words_of(word.ctypes.data)
    threads = [threading.Thread(target=function, args=(words.ctypes.data, 0, 1)) for _ in range(members)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads) and memory.size
    assert word[0] == rounds * members


def test_a_kernel_is_called_with_its_arguments_and_tasks_in_order():
    calls = []
    kernel = KERNEL(lambda *args: calls.append(args))
    words = np.array([ctypes.cast(kernel, ctypes.c_void_p).value, 4096, 3, 2**40])
    run_emitted(lambda k, x: call(k, *(x.load(i) for i in range(4))), HOST, words)
    assert calls == [(4096, 3, 2**40)]


@pytest.mark.parametrize("clock", ["CLOCK_MONOTONIC", "CLOCK_PROCESS_CPUTIME_ID"])
def test_a_clock_has_the_nanoseconds_of_pythons(clock):
    number = getattr(time, clock)
    read = np.zeros(1, np.int64)
    before = time.clock_gettime_ns(number)
    run_emitted(lambda k, out: out.store(now(k, number)), HOST, read)
    assert before <= read[0] <= time.clock_gettime_ns(number)


def calls_on(triple: str, write) -> list[str]:
    """The calls of a kernel's text for a system."""
    module = ir.Module("own")
    module.triple = triple
    k = Builder(module, ir.Function(module, KERNEL_TYPE, "own"), OWN, HOST)
    write(k)
    k.b.ret_void()
    k.finish()
    return [line.split("@")[1].replace('"', "") for line in str(module).splitlines() if " call " in line]


@pytest.mark.parametrize(("microseconds", "milliseconds"), [(1, 1), (1000, 1), (1001, 2), (0, 0)])
def test_a_sleep_is_as_long_as_it_says_and_on_windows_not_shorter(microseconds, milliseconds):
    def write(k):
        sleep_briefly(k, microseconds)

    assert calls_on(LINUX, write) == [f"usleep(i32 {microseconds})"]
    assert calls_on(WINDOWS, write) == [f"Sleep(i32 {milliseconds})"]


def test_a_thread_gives_way_by_the_function_of_the_system():
    assert calls_on(LINUX, give_way) == ["sched_yield()"] and calls_on(WINDOWS, give_way) == ["SwitchToThread()"]


def test_a_clock_is_asked_for_by_its_number_and_windows_for_its_ticks():
    (call_of_linux,) = calls_on(LINUX, lambda k: now(k, 7))
    assert call_of_linux.startswith("clock_gettime(i32 7, ")
    names = [x.split("(")[0] for x in calls_on(WINDOWS, lambda k: now(k, 7))]
    assert names == ["QueryPerformanceCounter", "QueryPerformanceFrequency"]
