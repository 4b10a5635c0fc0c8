"""Limits that a process sets for itself before it reads untrusted files.

POSIX limits its address space and processor time; macOS does not enforce the first. Windows limits a job, which the
process creates and joins. Sources: POSIX, setrlimit; Windows API, SetInformationJobObject.
"""

import ctypes
import sys
from contextlib import nullcontext, suppress

if sys.platform != "win32":
    import resource

PROCESS_TIME, PROCESS_MEMORY, NO_ERROR_WINDOW = 0x2, 0x100, 0x400  # JOB_OBJECT_LIMIT_…
EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
TICKS = 10_000_000  # of a second, in Windows's units


def limit_process(nbytes: int, seconds: int) -> None:
    """Limit the memory and the processor time of this process; existing lower limits stay. A crash writes no core.

    Raises
        OSError: the system refuses
    """
    if sys.platform == "win32":
        limit_by_job(nbytes, seconds)
    else:
        with suppress(ValueError) if sys.platform == "darwin" else nullcontext():
            most = smaller(nbytes, resource.getrlimit(resource.RLIMIT_AS)[1])
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (smaller(seconds, hard), hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def smaller(value: int, hard: int) -> int:
    """Return `value`, or a hard limit that is lower. Linux writes no limit as -1, macOS as the largest integer."""
    return value if hard < 0 else min(value, hard)


class JobLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION of 64-bit Windows. Source: Windows API, winnt.h."""

    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("working_sets", ctypes.c_size_t * 2),
        ("processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
        ("transfers", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peaks", ctypes.c_size_t * 2),
    )


def limit_by_job(nbytes: int, seconds: int) -> None:
    """Put this process into a job with these limits. OSError if Windows refuses."""
    kernel32 = ctypes.CDLL("kernel32")
    kernel32.CreateJobObjectW.restype = ctypes.c_void_p
    job = ctypes.c_void_p(kernel32.CreateJobObjectW(None, None))
    limits = JobLimits(flags=PROCESS_TIME | PROCESS_MEMORY | NO_ERROR_WINDOW)
    limits.process_time, limits.process_memory = seconds * TICKS, nbytes
    process = ctypes.c_void_p(-1)  # this process
    done = job.value and kernel32.SetInformationJobObject(
        job, EXTENDED_LIMITS, ctypes.byref(limits), ctypes.c_uint32(ctypes.sizeof(limits))
    )
    if not done or not kernel32.AssignProcessToJobObject(job, process):
        raise OSError("Windows does not limit this process")
