"""The folder of an export is new, and complete or not there."""

import os

import pytest

from cgraph.errors import FormatError
from cgraph.standalone import folder
from cgraph.standalone.folder import check_folder, json_bytes, write_folder


def test_a_file_a_folder_and_a_link_to_nothing_are_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nothing")
    for name in ("file", "folder", "link"):
        with pytest.raises(FormatError, match=rf"{name} exists already. Export writes a new folder: choose another"):
            check_folder(tmp_path / name)


def test_a_path_lies_in_a_folder_that_is_there(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    assert check_folder(f"{tmp_path}/new") == tmp_path / "new"
    for parent in ("nothing", "file"):
        with pytest.raises(FormatError, match=rf"{parent} is not a folder, so new cannot be created in it. Create it"):
            check_folder(tmp_path / parent / "new")
    monkeypatch.chdir(tmp_path)
    assert not check_folder("new").is_absolute()


def test_every_file_has_its_bytes_in_its_folder(tmp_path):
    files = {"m.h": b"header", "check/in.bin": b"\0\1", "check/out.bin": b"", "m.o": bytes(5000)}
    write_folder(tmp_path / "m", files)
    written = {str(x.relative_to(tmp_path / "m")): x for x in (tmp_path / "m").rglob("*") if x.is_file()}
    assert {name: x.read_bytes() for name, x in written.items()} == files


@pytest.mark.parametrize("name", ["a/b/c", "check"])
def test_a_file_that_cannot_be_written_leaves_nothing(name, tmp_path):
    with pytest.raises(OSError):
        write_folder(tmp_path / "m", {"first": b"1", "check/in.bin": b"2", name: b"3"})
    assert list(tmp_path.iterdir()) == []


def test_entries_are_written_in_their_order_with_a_line_break_at_the_end():
    assert json_bytes({"b": [1], "a": None}) == b'{\n "b": [\n  1\n ],\n "a": null\n}\n'


def test_each_file_goes_to_the_disk_when_it_is_whole(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(folder.os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    write_folder(tmp_path / "m", {"a": bytes(3), "check/b": bytes(5000), "c": b""})
    assert synced[:3] == [3, 5000, 0]
