"""The machine that this process runs on: its name, processors, memory, clocks and threads."""

import ctypes
import os
import platform
import sys
import time
from collections.abc import Callable

from cgraph.errors import WeightsError
from cgraph.system.c_library import c_library

MONOTONIC_CLOCK = getattr(time, "CLOCK_MONOTONIC", 0)  # that of time.perf_counter_ns; Windows has no numbers
MAC_FEATURES = {x: f"hw.optional.arm.FEAT_{y}" for x, y in (("asimddp", "DotProd"), ("i8mm", "I8MM"), ("bf16", "BF16"))}
COARSE_CLOCK = 6  # Linux's CLOCK_MONOTONIC_COARSE: a few nanoseconds to read


def system_name() -> str:
    """Return the system and the machine that code is bound to, since it contains their system calls and clocks."""
    return f"{sys.platform} {platform.machine()}"


def is_linux() -> bool:
    """Return True on Linux, whose ``/proc/cpuinfo`` reports all features of the processor."""
    return sys.platform == "linux"


def quick_clock() -> int:
    """Return the number of the clock that is quickest to read."""
    return COARSE_CLOCK if sys.platform == "linux" else MONOTONIC_CLOCK


def has_futex() -> bool:
    """Return True if threads can sleep until a word changes by the system call ``futex``."""
    return sys.platform == "linux"


def check_pread() -> None:
    """Raise WeightsError unless native code can read a file at an offset with one call, ``pread``."""
    if not hasattr(os, "pread"):
        raise WeightsError(
            f"{sys.platform} has no pread, by which runs read weights from a file. Compile without weights=, or use "
            "Linux or macOS"
        )


def allowed_processors() -> int:
    """Return the number of processors that this process may run on."""
    if sys.platform == "win32":
        return bits_of_affinity() or os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS has no affinity


def machine_nbytes() -> int:
    """Return the bytes of memory of the machine."""
    if sys.platform == "win32":
        return windows_memory_nbytes()
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def at_fork(before: Callable[[], None], in_parent: Callable[[], None], in_child: Callable[[], None]) -> None:
    """Call functions around each fork of this process, on systems that fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)


# -- macOS ------------------------------


def mac_features() -> frozenset[str]:
    """Return this ARM processor's features by Linux's names, on macOS; nothing on other systems."""
    return frozenset(x for x, name in MAC_FEATURES.items() if sys.platform == "darwin" and mac_number(name))


def mac_number(name: str) -> int:
    """Return a number of macOS's sysctl, 0 if there is none of this name."""
    value, nbytes = ctypes.c_int64(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int64))
    failed = c_library().sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(nbytes), None, ctypes.c_size_t())
    return 0 if failed else value.value


# -- Windows ------------------------------


class MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX. Source: Windows API, sysinfoapi.h."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 6),
    )


def windows_memory_nbytes() -> int:
    """Return the machine's memory by GlobalMemoryStatusEx."""
    status = MemoryStatus(ctypes.sizeof(MemoryStatus))
    if not kernel32().GlobalMemoryStatusEx(ctypes.byref(status)):
        raise OSError("Windows does not tell the size of the memory")
    return int(status.total)


def bits_of_affinity() -> int:
    """Return the processors of this process by GetProcessAffinityMask, 0 if Windows does not tell them."""
    own, system = ctypes.c_size_t(), ctypes.c_size_t()
    process = ctypes.c_void_p(-1)  # this process
    done = kernel32().GetProcessAffinityMask(process, ctypes.byref(own), ctypes.byref(system))
    return own.value.bit_count() if done else 0


def kernel32() -> ctypes.CDLL:
    """Return Windows's library of processes and memory."""
    return ctypes.CDLL("kernel32")
