"""Mapped files and memory without a file, as POSIX and as Windows have them."""

import mmap
import os
import sys
from types import SimpleNamespace

import pytest

from cgraph.system import mapping
from cgraph.system.mapping import (
    bypass_cache,
    forget_cached,
    map_descriptor,
    new_pages,
    read_at,
    read_into,
    release_range,
    use_huge_pages,
)


@pytest.fixture(params=[sys.platform, "win32"])
def system(request, monkeypatch):
    monkeypatch.setattr(sys, "platform", request.param)
    if request.param == "win32":
        monkeypatch.delattr(os, "pread", raising=False)


def test_new_pages_are_zero_and_can_be_written(system):
    memory = new_pages(mmap.PAGESIZE)
    use_huge_pages(memory)
    assert memory[:] == bytes(mmap.PAGESIZE)
    memory[5:7] = b"ab"
    assert memory[4:8] == b"\0ab\0"


def test_a_mapped_file_is_read_again_after_its_pages_were_released(system, tmp_path):
    (tmp_path / "file").write_bytes(b"xy" * mmap.PAGESIZE)
    with open(tmp_path / "file", "rb") as file:
        mapping = map_descriptor(file.fileno(), 2 * mmap.PAGESIZE)
        forget_cached(file.fileno())
        bypass_cache(file)
    release_range(mapping, 0, mmap.PAGESIZE)
    assert mapping[:] == b"xy" * mmap.PAGESIZE
    assert memoryview(mapping).readonly


def test_reading_at_an_offset_leaves_the_position_unchanged(system, tmp_path):
    (tmp_path / "file").write_bytes(bytes(range(100)))
    with open(tmp_path / "file", "rb", buffering=0) as file:
        file.seek(7)
        assert read_at(file.fileno(), 3, 40) == bytes([40, 41, 42])
        assert read_at(file.fileno(), 50, 95) == bytes(range(95, 100))
        memory = bytearray(4)
        assert read_into(file.fileno(), memoryview(memory)[1:], 98) == 2
        assert memory == bytes([0, 98, 99, 0])
        assert file.tell() == 7


def test_only_the_pages_of_a_range_are_released_and_on_windows_none(monkeypatch):
    asked = []
    pages = SimpleNamespace(madvise=lambda *advice: asked.append(advice))
    for platform, expected in (("linux", [(mmap.MADV_DONTNEED, 4096, 8192)]), ("win32", [])):
        asked.clear()
        monkeypatch.setattr(sys, "platform", platform)
        release_range(pages, 4096, 8192)
        assert asked == expected


@pytest.mark.parametrize("advise", [use_huge_pages, bypass_cache])
def test_an_advice_that_the_system_does_not_take_changes_nothing(advise, monkeypatch):
    def refuse(*_):
        raise OSError("unknown advice")

    monkeypatch.setattr(mapping, "fcntl", SimpleNamespace(fcntl=refuse, F_SETFL=4), raising=False)
    advise(SimpleNamespace(madvise=refuse))


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_each_system_is_asked_in_its_own_way_to_bypass_and_forget_its_cache(platform, monkeypatch):
    asked = []
    calls = SimpleNamespace(fcntl=lambda *given: asked.append(given), F_SETFL=4, F_NOCACHE=48)
    monkeypatch.setattr(mapping, "fcntl", calls, raising=False)
    monkeypatch.setattr(os, "posix_fadvise", lambda *given: asked.append(given), raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_DONTNEED", 44, raising=False)
    monkeypatch.setattr(os, "O_DIRECT", 0o40000, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    bypass_cache("file")
    forget_cached(7)
    assert asked == {
        "linux": [("file", 4, os.O_RDONLY | 0o40000), (7, 0, 0, 44)], "darwin": [("file", 48, 1)], "win32": [],
    }[platform]  # fmt: skip
    assert mapping.has_huge_pages() == (platform == "linux")
