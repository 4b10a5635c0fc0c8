"""Files in an open folder: by descriptor, and by path as on Windows."""

import errno
import os
from pathlib import Path

import pytest

from cgraph.kernels.cache import CacheFolder
from cgraph.system import folders
from cgraph.system.folders import (
    CREATE,
    READ,
    READ_LINKED,
    close_folder,
    enter,
    make_in,
    names_in,
    open_in,
    open_path,
    remove_in,
    replace_in,
    set_mode,
    status_in,
    status_of,
    touch_in,
)

by_descriptor = pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="this system has no such descriptors")


@pytest.fixture(params=[pytest.param(True, marks=by_descriptor), False], ids=["descriptor", "path"])
def folder(request, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "has_descriptors", lambda: request.param)
    opened = open_path(tmp_path)
    assert isinstance(opened, int) == request.param
    yield opened
    close_folder(opened)


def written(folder, name: str, content: bytes) -> None:
    with os.fdopen(open_in(folder, name, CREATE), "wb") as file:
        file.write(content)


def test_files_are_created_renamed_listed_and_removed(folder, tmp_path):
    written(folder, "a", b"one")
    written(folder, "b", b"three")
    with pytest.raises(FileExistsError):
        open_in(folder, "a", CREATE)
    assert sorted(names_in(folder)) == ["a", "b"] and status_in(folder, "b").st_size == 5
    replace_in(folder, "b", "a")
    assert (tmp_path / "a").read_bytes() == b"three" and names_in(folder) == ["a"]
    remove_in(folder, "a")
    assert names_in(folder) == []
    assert status_of(folder).st_ino == tmp_path.stat().st_ino


def test_what_is_created_is_for_the_user_alone_unless_a_mode_says_otherwise(folder, tmp_path):
    before = os.umask(0)
    try:
        os.close(open_in(folder, "own", CREATE))
        os.close(open_in(folder, "open", CREATE, 0o644))
        make_in(folder, "inner")
    finally:
        os.umask(before)
    modes = {x.name: x.stat().st_mode & 0o777 for x in tmp_path.iterdir()}
    assert modes == {"own": 0o600, "open": 0o644, "inner": 0o700}


def test_a_link_is_not_opened_and_its_own_status_is_returned(folder, tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(OSError):
        open_in(folder, "link", READ)
    assert status_in(folder, "link").st_size == len("file")
    with os.fdopen(open_in(folder, "file", READ), "rb") as file:
        assert file.read() == b"content"


def test_folders_are_made_and_entered_but_not_by_a_link(folder, tmp_path):
    make_in(folder, "inner")
    make_in(folder, "inner")
    inner = enter(folder, "inner")
    written(inner, "x", b"")
    close_folder(inner)
    assert [x.name for x in (tmp_path / "inner").iterdir()] == ["x"]
    (tmp_path / "link").symlink_to("inner")
    (tmp_path / "file").write_bytes(b"")
    for name, error in (("link", OSError), ("missing", FileNotFoundError), ("file", NotADirectoryError)):
        with pytest.raises(error):
            enter(folder, name)


def test_the_time_and_the_permissions_of_an_open_file_are_set(folder, tmp_path):
    written(folder, "a", b"")
    os.utime(tmp_path / "a", (0, 0))
    handle = open_in(folder, "a", READ)
    touch_in(folder, "a", handle)
    set_mode(handle, 0o640)
    os.close(handle)
    status = (tmp_path / "a").stat()
    assert status.st_mtime > 0
    assert not hasattr(os, "fchmod") or status.st_mode & 0o777 == 0o640


def test_a_kernel_cache_works_by_path_and_by_descriptor(folder, tmp_path):
    tmp_path.chmod(0o700)
    cache = CacheFolder(Path("name"), open_path(tmp_path))
    cache.write("kernel.o", b"code")
    assert cache.read("kernel.o") == b"code" and cache.read("other") is None
    assert [name for _, _, name in cache.entries()] == ["kernel.o"]
    (tmp_path / "kernel.o").write_bytes((tmp_path / "kernel.o").read_bytes()[:-1] + b"E")
    assert cache.read("kernel.o") is None
    cache.prune(largest=0)
    assert not list(tmp_path.iterdir())


def test_a_link_that_was_opened_by_its_path_is_closed_and_refused(tmp_path):
    """As where the system has no flag for it."""
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError) as refusal:
        open_in(str(tmp_path), "link", READ_LINKED)
    assert refusal.value.errno == errno.ELOOP and refusal.value.filename == str(tmp_path / "link")
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(open_in(str(tmp_path), "file", READ_LINKED))


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="this system has no such descriptors")
def test_flags_decide_whether_a_link_is_followed(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("inner/file")
    folder = open_path(tmp_path)
    try:
        with os.fdopen(open_in(folder, "link", READ_LINKED), "rb") as file:
            assert file.read() == b"content"
        with pytest.raises(OSError):
            open_in(folder, "link", CREATE)
        close_folder(enter(folder, "inner", folders.PASSED))
    finally:
        close_folder(folder)
    assert (tmp_path / "inner" / "file").read_bytes() == b"content"


def test_times_are_set_by_name_where_a_descriptor_has_none(monkeypatch, tmp_path):
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "b").write_bytes(b"")
    for name in "ab":
        os.utime(tmp_path / name, (0, 0))
    with open(tmp_path / "a", "rb") as file:
        monkeypatch.setattr(os, "supports_fd", os.supports_fd - {os.utime})
        touch_in(str(tmp_path), "b", file.fileno())
        assert (tmp_path / "a").stat().st_mtime == 0 < (tmp_path / "b").stat().st_mtime
        monkeypatch.undo()
        os.utime(tmp_path / "b", (0, 0))
        touch_in(str(tmp_path), "b", file.fileno())
        assert (tmp_path / "b").stat().st_mtime == 0 < (tmp_path / "a").stat().st_mtime


def test_permissions_of_a_path_or_of_a_system_without_them_stay(monkeypatch, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"")
    path.chmod(0o600)
    set_mode(str(path), 0o644)
    assert path.stat().st_mode & 0o777 == 0o600
    with open(path, "rb") as file:
        monkeypatch.delattr(os, "fchmod")
        set_mode(file.fileno(), 0o644)
        assert path.stat().st_mode & 0o777 == 0o600
        monkeypatch.undo()
        set_mode(file.fileno(), 0o644)
    assert path.stat().st_mode & 0o777 == 0o644
