"""Files that only the user can write: owners, modes, names and links, and folders opened part by part."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from cgraph.system import file_ownership
from cgraph.system.file_ownership import (
    is_alone,
    is_below,
    is_closed,
    is_own,
    is_regular,
    is_safe,
    is_users,
    open_folder,
    stamp_of,
)


def status(mode: int, uid: int | None = None, links: int = 1) -> os.stat_result:
    """What the system tells of a file of this user, or of another one."""
    return os.stat_result((mode, 1, 1, links, os.geteuid() if uid is None else uid, 0, 5, 0, 0, 0))


OTHER = os.geteuid() + 7


@pytest.mark.parametrize(("mode", "uid", "links", "own"), [
    (0o600, None, 1, True), (0o644, None, 1, True), (0o755, None, 1, True),
    (0o620, None, 1, False), (0o602, None, 1, False), (0o644, OTHER, 1, False), (0o644, None, 2, False),
])  # fmt: skip
def test_an_own_file_has_one_name_and_no_other_writer(mode, uid, links, own):
    assert is_own(status(stat.S_IFREG | mode, uid, links)) is own
    assert is_closed(status(stat.S_IFREG | mode, uid, links)) is (own or links == 2)
    assert not is_own(status(stat.S_IFDIR | mode, uid, links)) and not is_regular(status(stat.S_IFIFO | mode))


@pytest.mark.parametrize("bit", [1 << i for i in range(9)])
def test_others_of_a_group_and_of_the_world_are_told_from_the_user_by_each_bit(bit):
    own, foreign = status(stat.S_IFREG | bit), status(stat.S_IFREG | bit, OTHER)
    assert is_alone(own) is (bit >= 0o100) and is_closed(own) is (bit not in (0o020, 0o002))
    assert is_users(own) and not (is_users(foreign) or is_alone(foreign) or is_closed(foreign))


def test_where_files_have_no_owners_their_place_decides(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "geteuid")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "inner").mkdir(parents=True)
    (tmp_path / "homeless").mkdir()
    anyone = os.stat_result((stat.S_IFREG | 0o777, 1, 1, 1, 1234, 0, 5, 0, 0, 0))
    assert is_alone(anyone) and is_closed(anyone) and is_own(anyone)
    for name, opens in (("home/inner", True), ("home", True), ("homeless", False), ("", False)):
        folder = open_folder(os.path.realpath(tmp_path / name))
        assert (folder is not None) is opens, name
        if folder is not None:
            file_ownership.close_folder(folder)


@pytest.mark.parametrize(("path", "root", "below"), [
    ("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False), ("/", "/a", False), ("/a/b", "/a/", True),
    ("/a/b", "/", True), ("/b/a", "/a", False),
])  # fmt: skip
def test_a_path_is_below_a_folder_by_whole_names(path, root, below):
    assert is_below(path, root) is below
    assert not is_below("a", "/a"), "one is relative"


@pytest.mark.parametrize("field", ["st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns"])
def test_each_fact_of_a_stamp_tells_files_apart(field):
    facts = dict.fromkeys(("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns"), 1)
    stamps = [stamp_of(SimpleNamespace(**facts | change)) for change in ({}, {field: 2}, {"st_atime_ns": 2})]
    assert stamps[0] != stamps[1] and stamps[0] == stamps[2]


@pytest.mark.parametrize(("mode", "uid", "safe"), [
    (0o755, None, True), (0o755, 0, True), (0o1777, None, True), (0o1777, 0, True), (0o775, None, False),
    (0o757, 0, False), (0o777, None, False), (0o755, OTHER, False), (0o1777, OTHER, False),
])  # fmt: skip
def test_entries_of_a_safe_folder_are_renamed_by_its_user_and_root_alone(mode, uid, safe):
    assert bool(is_safe(status(stat.S_IFDIR | mode, uid))) is safe


def test_a_stamp_changes_with_content_name_and_mode(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"ab")
    stamps = [stamp_of(path.stat())]
    path.write_bytes(b"abc")
    stamps.append(stamp_of(path.stat()))
    os.utime(path, ns=(0, 0))
    stamps.append(stamp_of(path.stat()))
    (tmp_path / "other").write_bytes(b"abc")
    stamps.append(stamp_of((tmp_path / "other").stat()))
    assert len(set(stamps)) == 4 and stamp_of(path.stat()) == stamps[2]
    assert stamps[2][-1] != 0, "the last time is that of the inode, which cannot be set back"


def opened(path: Path, make: bool = False) -> bool:
    before = len(os.listdir("/proc/self/fd"))
    try:
        handle = open_folder(os.fspath(path), make)
        if handle is not None:
            assert os.path.samestat(os.fstat(handle), path.stat())
            os.close(handle)
        return handle is not None
    finally:
        assert len(os.listdir("/proc/self/fd")) == before, "a descriptor is left open"


def test_a_folder_is_opened_or_made_for_the_user_alone(tmp_path):
    real = Path(os.path.realpath(tmp_path))
    assert opened(real) and opened(Path("/"))
    with pytest.raises(FileNotFoundError):
        opened(real / "a" / "b")
    assert opened(real / "a" / "b", make=True) and opened(real / "a" / "b", make=True)
    assert stat.S_IMODE((real / "a").stat().st_mode) == stat.S_IMODE((real / "a" / "b").stat().st_mode) == 0o700


def test_what_lies_in_a_folder_that_others_write_is_not_opened(tmp_path):
    real = Path(os.path.realpath(tmp_path))
    (real / "open" / "inner").mkdir(parents=True)
    (real / "open").chmod(0o777)
    assert not opened(real / "open" / "inner") and not opened(real / "open" / "new", make=True)
    assert not (real / "open" / "new").exists()
    assert opened(real / "open"), "who calls checks the last folder itself"
    (real / "open").chmod(0o1777)
    assert opened(real / "open" / "inner")


def test_links_and_files_are_no_folders(tmp_path):
    real = Path(os.path.realpath(tmp_path))
    (real / "folder" / "inner").mkdir(parents=True)
    (real / "link").symlink_to(real / "folder")
    (real / "file").write_bytes(b"")
    for path in (real / "link", real / "link" / "inner", real / "file", real / "file" / "inner"):
        with pytest.raises(OSError, match="Not a directory|Too many levels"):
            opened(path)
