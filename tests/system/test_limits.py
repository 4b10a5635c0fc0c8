"""Limits of a process: those of POSIX in a child process, and the job that Windows is asked for."""

import ctypes
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from cgraph.system import limits
from cgraph.system.limits import JobLimits, limit_process, smaller

BOUNDED = """
import resource
from cgraph.system.limits import limit_process
resource.setrlimit(resource.RLIMIT_CPU, (90, 90))
limit_process(3 << 30, 7)
limit_process(4 << 30, 100)
print([resource.getrlimit(x) for x in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_CORE)])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
@pytest.mark.skipif("EMULATED_PYTHON" in os.environ, reason="QEMU does not limit addresses")
def test_a_process_limits_memory_time_and_core_files_and_keeps_lower_limits():
    output = subprocess.run([sys.executable, "-c", BOUNDED], capture_output=True, text=True, check=True).stdout
    assert output.strip() == str([(3 << 30, 3 << 30), (90, 90), (0, 0)])


@pytest.mark.parametrize(("value", "hard", "limit"), [(5, -1, 5), (5, 9, 5), (9, 5, 5), (5, (1 << 63) - 1, 5)])
def test_a_hard_limit_is_not_raised(value, hard, limit):
    assert smaller(value, hard) == limit


class Kernel32:
    """Windows's functions of jobs; `refuses` is the name of the one that fails."""

    def __init__(self, refuses: str = "") -> None:
        self.calls: list[tuple] = []
        self.refuses = refuses
        self.CreateJobObjectW = self.function("CreateJobObjectW")
        self.SetInformationJobObject = self.function("SetInformationJobObject")
        self.AssignProcessToJobObject = self.function("AssignProcessToJobObject")

    def function(self, name: str):
        def call(*args):
            self.calls.append((name, *args))
            return 0 if name == self.refuses else 77

        return call


def test_windows_puts_the_process_into_a_job_with_the_limits(monkeypatch):
    library = Kernel32()
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(limits.ctypes, "CDLL", lambda name: {"kernel32": library}[name])
    limit_process(1 << 30, 9)
    create, change, assign = library.calls
    assert create == ("CreateJobObjectW", None, None)
    record = change[3]._obj
    assert change[1].value == assign[1].value == 77 and change[2] == 9 and change[4].value == ctypes.sizeof(JobLimits)
    assert (record.process_time, record.process_memory, record.flags) == (90_000_000, 1 << 30, 0x502)
    assert assign[2].value == (1 << 64) - 1


@pytest.mark.parametrize("name", ["CreateJobObjectW", "SetInformationJobObject", "AssignProcessToJobObject"])
def test_what_windows_refuses_is_an_error(monkeypatch, name):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(limits.ctypes, "CDLL", lambda _: Kernel32(name))
    with pytest.raises(OSError, match="Windows does not limit this process"):
        limit_process(1 << 30, 9)


def test_the_record_of_limits_has_the_layout_of_windows():
    """Source: winnt.h, 64 bits: 64 bytes of basic limits, 48 of counters, four sizes."""
    assert ctypes.sizeof(JobLimits) == 144
    assert (JobLimits.flags.offset, JobLimits.affinity.offset, JobLimits.process_memory.offset) == (16, 48, 112)


@pytest.mark.parametrize(
    ("system", "refuses"), [("linux", False), ("darwin", False), ("linux", True), ("darwin", True)]
)
def test_macos_alone_may_refuse_a_limit_of_addresses(monkeypatch, system, refuses):
    limited, hard = {}, {"AS": 100, "CPU": 5, "CORE": 9}

    def setrlimit(kind, pair):
        if kind == "AS" and refuses:
            raise ValueError("current limit exceeds maximum limit")
        limited[kind] = pair

    own = {f"RLIMIT_{kind}": kind for kind in hard}
    monkeypatch.setattr(sys, "platform", system)
    resource = SimpleNamespace(**own, getrlimit=lambda kind: (1, hard[kind]), setrlimit=setrlimit)
    monkeypatch.setattr(limits, "resource", resource, raising=False)
    if refuses and system == "linux":
        with pytest.raises(ValueError, match="exceeds"):
            limit_process(50, 7)
        return
    limit_process(50, 7)
    assert limited == {"CPU": (5, 5), "CORE": (0, 0)} | ({} if refuses else {"AS": (50, 50)})


@pytest.mark.parametrize(("value", "hard", "limit"), [(5, 0, 0), (0, 5, 0), (5, 5, 5), (5, -(1 << 60), 5), (0, -1, 0)])
def test_a_hard_limit_of_nothing_is_one(value, hard, limit):
    assert smaller(value, hard) == limit
