"""Permission for tiles: what Linux answers, refusals without an error, systems without the question."""

import errno
import subprocess
import sys
from types import SimpleNamespace

import pytest

from cgraph.system import tiles
from cgraph.system.tiles import request_tiles

AFTER_A_SMALL_STACK = """
import ctypes
from cgraph.system.tiles import request_tiles


class Stack(ctypes.Structure):
    _fields_ = [("sp", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]


memory = ctypes.create_string_buffer(2048)
stack = Stack(ctypes.cast(memory, ctypes.c_void_p), 0, 2048)
assert ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None) == 0
print(request_tiles())
"""


class Library:
    """A C library whose system call returns a number; it notes the arguments."""

    def __init__(self, answer):
        self.answer, self.words = answer, []

    def syscall(self, *words):
        self.words += [word.value for word in words]
        return self.answer


@pytest.fixture
def linux(monkeypatch):
    monkeypatch.setattr(tiles.sys, "platform", "linux")
    monkeypatch.setattr(tiles.platform, "machine", lambda: "x86_64")


@pytest.mark.parametrize(("answer", "is_permitted"), [(0, True), (-1, False), (-errno.ENOSPC, False)])
def test_zero_permits_and_any_other_answer_refuses(linux, monkeypatch, answer, is_permitted):
    library = Library(answer)
    monkeypatch.setattr(tiles, "c_library", lambda: library)
    assert request_tiles() is is_permitted
    assert library.words == [158, 0x1023, 18]  # arch_prctl, ARCH_REQ_XCOMP_PERM, the component of tile data


def test_a_library_without_the_call_refuses(linux, monkeypatch):
    monkeypatch.setattr(tiles, "c_library", SimpleNamespace)
    assert request_tiles() is False


@pytest.mark.parametrize(("system", "machine"), [("darwin", "x86_64"), ("win32", "AMD64"), ("linux", "aarch64")])
def test_other_systems_and_machines_are_not_asked(monkeypatch, system, machine):
    monkeypatch.setattr(tiles.sys, "platform", system)
    monkeypatch.setattr(tiles.platform, "machine", lambda: machine)
    monkeypatch.setattr(tiles, "c_library", lambda: pytest.fail("another number of the call"))
    assert request_tiles() is False


@pytest.mark.skipif(sys.platform != "linux", reason="signal stacks of Linux")
def test_a_process_with_a_small_signal_stack_is_refused():
    """Whether the processor has tiles or not."""
    run = subprocess.run([sys.executable, "-c", AFTER_A_SMALL_STACK], capture_output=True, text=True, timeout=60)
    assert run.stdout.split() == ["False"], run.stderr
