"""The machine: processors, memory, clocks and forks on each system."""

import ctypes
import os
import sys
import time

import pytest

from cgraph.errors import WeightsError
from cgraph.system import machine
from cgraph.system.machine import (
    MemoryStatus,
    allowed_processors,
    check_pread,
    mac_features,
    machine_nbytes,
    quick_clock,
)
from tests.support.without_posix import MEMORY, Library


def test_windows_tells_processors_and_memory(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(machine, "kernel32", Library)
    assert allowed_processors() == 3 and machine_nbytes() == MEMORY


def test_without_an_answer_of_windows_all_processors_count_and_memory_is_an_error(monkeypatch):
    class Silent:
        def GlobalMemoryStatusEx(self, status):
            return 0

        def GetProcessAffinityMask(self, *args):
            return 0

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(machine, "kernel32", Silent)
    assert allowed_processors() == (os.cpu_count() or 1)
    with pytest.raises(OSError, match="size of the memory"):
        machine_nbytes()


def test_the_record_of_memory_has_the_layout_of_windows():
    """Source: sysinfoapi.h: two words of 32 bits and seven of 64."""
    assert ctypes.sizeof(MemoryStatus) == 64 and MemoryStatus.total.offset == 8


def test_only_processors_that_the_process_may_run_on_count(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 5, 9}, raising=False)
    assert allowed_processors() == 3


def test_without_affinity_all_processors_count(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert allowed_processors() == (os.cpu_count() or 1)


@pytest.mark.skipif(not hasattr(time, "clock_gettime_ns"), reason="clocks have no numbers here")
def test_the_quick_clock_goes_with_the_other(monkeypatch):
    before = time.clock_gettime_ns(quick_clock())
    assert before <= time.perf_counter_ns()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert quick_clock() == time.CLOCK_MONOTONIC


def test_weights_are_not_streamed_where_native_code_cannot_read_at_offsets(monkeypatch):
    monkeypatch.delattr(os, "pread", raising=False)
    with pytest.raises(WeightsError, match="has no pread.*Compile without weights="):
        check_pread()


def test_macos_tells_features_of_its_processor_by_number(monkeypatch):
    class Library:
        def sysctlbyname(self, name, value, nbytes, new, new_nbytes):
            assert nbytes._obj.value == 8 and new is None and new_nbytes.value == 0
            value._obj.value = name == b"hw.optional.arm.FEAT_DotProd"
            return -1 if name.endswith(b"BF16") else 0

    monkeypatch.setattr(machine, "c_library", Library)
    monkeypatch.setattr(sys, "platform", "linux")
    assert mac_features() == frozenset()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert mac_features() == {"asimddp"}


@pytest.mark.parametrize("feature", ["asimddp", "i8mm", "bf16"])
def test_each_feature_of_macos_has_linuxs_name(monkeypatch, feature):
    names = {"asimddp": "DotProd", "i8mm": "I8MM", "bf16": "BF16"}
    monkeypatch.setattr(machine, "mac_number", lambda name: int(name == f"hw.optional.arm.FEAT_{names[feature]}"))
    monkeypatch.setattr(sys, "platform", "darwin")
    assert mac_features() == {feature}


def test_functions_around_a_fork_have_their_own_moments(monkeypatch):
    asked = {}
    monkeypatch.setattr(os, "register_at_fork", asked.update, raising=False)
    machine.at_fork("before", "in the parent", "in the child")
    assert asked == {"before": "before", "after_in_parent": "in the parent", "after_in_child": "in the child"}
    monkeypatch.delattr(os, "register_at_fork")
    machine.at_fork("before", "in the parent", "in the child")


@pytest.mark.parametrize(("system", "is_linux"), [("linux", True), ("darwin", False), ("win32", False)])
def test_only_linux_has_a_coarse_clock_and_sleeps_until_a_word_changes(monkeypatch, system, is_linux):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(machine.platform, "machine", lambda: "a processor")
    assert machine.system_name() == f"{system} a processor"
    assert machine.is_linux() is machine.has_futex() is is_linux
    assert quick_clock() == (6 if is_linux else machine.MONOTONIC_CLOCK)


@pytest.mark.parametrize(("system", "count", "processors"), [
    ("win32", None, 1), ("win32", 6, 6), ("darwin", None, 1), ("darwin", 8, 8), ("linux", None, 1),
])  # fmt: skip
def test_a_system_that_does_not_count_processors_has_one(monkeypatch, system, count, processors):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(machine, "bits_of_affinity", lambda: 0)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert allowed_processors() == processors


def test_processors_that_windows_allows_count_before_all(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(machine, "bits_of_affinity", lambda: 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert allowed_processors() == 2
