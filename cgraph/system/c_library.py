"""The C library of this process, and executable memory."""

import ctypes
import errno
import mmap
import sys
from functools import cache


@cache
def c_library() -> ctypes.CDLL:
    """Return the C library; where the system allows it, with everything else this process is linked with.

    Raises
        OSError: it cannot be loaded
    """
    if sys.platform == "win32":
        return ctypes.CDLL("ucrtbase")
    library = ctypes.CDLL(None)
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library


def make_executable(base: int, nbytes: int) -> None:
    """Make whole pages of memory executable and read-only.

    Raises
        OSError: the system refuses, or has rules of its own for such pages, as macOS and Windows
    """
    if sys.platform == "win32" or sys.platform == "darwin":
        raise OSError(errno.ENOTSUP, f"{sys.platform} has rules of its own for executable memory")
    if c_library().mprotect(base, nbytes, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(errno.EACCES, f"the system refuses to make {nbytes} bytes executable")
