"""The C library, and executable memory."""

import ctypes
import mmap
import sys

import numpy as np
import pytest

from cgraph.system.c_library import c_library, make_executable
from cgraph.system.mapping import new_pages


def test_functions_of_the_c_library_are_called():
    assert c_library().abs(-3) == 3


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="refused there")
def test_executable_pages_cannot_be_written_any_more():
    memory = np.frombuffer(new_pages(mmap.PAGESIZE), np.uint8)
    memory[:] = 7
    make_executable(memory.ctypes.data, len(memory))
    with open("/proc/self/maps", encoding="utf-8") as maps:
        rights = next(line.split()[1] for line in maps if line.startswith(f"{memory.ctypes.data:x}-"))
    assert rights.startswith("r-x") and (memory == 7).all()


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_other_systems_refuse_and_an_address_that_is_no_page_is_refused(monkeypatch, system):
    if sys.platform == "linux":
        with pytest.raises(OSError, match="refuses to make 64 bytes executable"):
            make_executable(ctypes.addressof(ctypes.c_char(b"x")) | 1, 64)
    monkeypatch.setattr(sys, "platform", system)
    with pytest.raises(OSError, match=f"{system} has rules of its own"):
        make_executable(0, 64)


@pytest.mark.parametrize(("system", "name"), [("win32", "ucrtbase"), ("linux", None), ("darwin", None)])
def test_each_system_has_its_own_library(monkeypatch, system, name):
    """Windows's is loaded by name, another one is that of this process, whose pages it protects."""
    asked, library = [], type("Library", (), {"mprotect": type("Function", (), {})()})
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: asked.append(name) or library)
    assert c_library.__wrapped__() is library and asked == [name]
    types = getattr(library.mprotect, "argtypes", None)
    assert types == (None if name else [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int])
