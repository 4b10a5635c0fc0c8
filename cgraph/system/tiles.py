"""Permission to use tile registers (Intel AMX), which Linux grants to a process that asks for it.

The state of tiles has 8 KiB, which the kernel saves for each thread, so a process asks before its first use; without
permission the first tile instruction ends the process. All threads and forked children have the permission; a program
started by exec asks again. Linux refuses it while a thread has a signal stack that is too small for the state.
Source: Linux's Documentation/arch/x86/xstate.rst.
"""

import ctypes
import platform
import sys

from cgraph.system.c_library import c_library

ARCH_PRCTL = 158  # number of the system call on x86-64
REQUEST_PERMISSION = 0x1023  # ARCH_REQ_XCOMP_PERM
TILE_DATA = 18  # number of the state component


def request_tiles() -> bool:
    """Ask Linux for permission to use tiles; return True if this process has it. A refusal is not an error."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        answer = c_library().syscall(*map(ctypes.c_long, (ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA)))
    except (AttributeError, OSError):  # no C library, or one without syscall
        return False
    return answer == 0
