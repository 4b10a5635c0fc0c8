"""Files and folders that are written whole: what is no file stays what it is; a failure leaves what was there."""

import os
import threading

import pytest

from cgraph.system import files
from cgraph.system.files import new_folder, replace_file, unnamed_file
from tests.support.patience import PATIENCE


def test_a_link_stays_one_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "weights", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    replace_file(link, [b"ne", b"w"])
    assert link.is_symlink() and target.read_bytes() == b"new"
    target.unlink()
    replace_file(link, [b"newer"])
    assert link.is_symlink() and target.read_bytes() == b"newer"
    assert [x.name for x in tmp_path.rglob("*") if x.name.endswith(".part")] == []


def test_what_is_no_file_is_written_and_stays_what_it_is(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    replace_file(pipe, [b"a", memoryview(b"b")])
    reader.join(PATIENCE)
    assert read == [b"ab"] and pipe.is_fifo()


@pytest.mark.parametrize("name", ["", ".", "..", "/", "folder", "folder/", "none/file", "folder/none/file"])
def test_where_nothing_can_be_written_is_named(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError) as found:
        replace_file(name, [b"new"])
    assert os.path.isdir(found.value.filename) != ("none" in name) and ".part" not in str(found.value)
    assert type(found.value) is (FileNotFoundError if "none" in name else IsADirectoryError)
    path = os.path.realpath(name)
    assert found.value.filename == (os.path.dirname(path) if "none" in name else path)
    assert [x.name for x in tmp_path.rglob("*")] == ["folder"]


def failing():
    yield b"half"
    raise KeyboardInterrupt


@pytest.mark.parametrize("before", [None, b"old"])
def test_a_file_that_cannot_be_finished_stays_what_it_was(before, tmp_path):
    if before is not None:
        (tmp_path / "weights").write_bytes(before)
    with pytest.raises(KeyboardInterrupt):
        replace_file(tmp_path / "weights", failing())
    assert [(x.name, x.read_bytes()) for x in tmp_path.iterdir()] == ([("weights", before)] if before else [])


def test_a_new_folder_has_its_name_once_its_files_are_written(tmp_path):
    with new_folder(tmp_path / "m") as part:
        (part / "a").write_bytes(b"1")
        assert part.parent == tmp_path and part.name.startswith(".m.") and part.name.endswith(".part")
        assert not (tmp_path / "m").exists()
    assert [x.name for x in tmp_path.iterdir()] == ["m"] and (tmp_path / "m/a").read_bytes() == b"1"


def test_a_new_folder_is_removed_where_its_files_fail_or_its_name_is_in_use(tmp_path):
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "m") as part:
        (part / "a").write_bytes(b"1")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "m").mkdir()
    (tmp_path / "m/old").write_bytes(b"0")
    with pytest.raises(OSError), new_folder(tmp_path / "m") as part:
        (part / "a").write_bytes(b"1")
    assert [x.relative_to(tmp_path).as_posix() for x in tmp_path.rglob("*")] == ["m", "m/old"]


def test_a_file_without_a_name_is_read_and_written_by_its_holder_alone(tmp_path):
    with unnamed_file(tmp_path) as file:
        assert list(tmp_path.iterdir()) == [] and os.fstat(file.fileno()).st_mode & 0o777 == 0o600
        file.write(b"abc")
        file.seek(1)
        assert file.read() == b"bc"
    with pytest.raises(FileNotFoundError):
        unnamed_file(tmp_path / "none")


def test_contents_reach_the_disk_before_a_name_and_a_name_after_them(tmp_path, monkeypatch):
    """A loss of power at any moment leaves the old file, or a whole new one."""
    log, fsync = [], os.fsync

    def flushed(handle):
        log.append(os.readlink(f"/proc/self/fd/{handle}").removeprefix(str(tmp_path)).partition(".part")[2] or "parent")
        fsync(handle)

    for name in ("replace", "rename"):
        rename = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *where, rename=rename: log.append("rename") or rename(*where))
    monkeypatch.setattr(os, "fsync", flushed)
    size = []
    monkeypatch.setattr(os, "fsync", lambda handle: size.append(os.fstat(handle).st_size) or flushed(handle))
    replace_file(tmp_path / "file", [b"ab", b"c"])
    assert len(log) == 3 and log[1:] == ["rename", "parent"] and size[0] == 3
    log.clear()
    with new_folder(tmp_path / "m") as part:
        (part / "a").write_bytes(b"1")
        assert log == []
    assert len(log) == 3 and log[1:] == ["rename", "parent"]


def test_a_new_folder_can_be_listed_by_others_as_the_users_mask_allows(tmp_path):
    for mask in (0o022, 0o077):
        before = os.umask(mask)
        try:
            with new_folder(tmp_path / f"{mask}"):
                pass
        finally:
            os.umask(before)
        assert (tmp_path / f"{mask}").stat().st_mode & 0o777 == 0o755 & ~mask


def test_where_folders_have_no_descriptors_only_files_are_flushed(tmp_path, monkeypatch):
    handles, fsync = [], os.fsync
    monkeypatch.setattr(files, "has_descriptors", lambda: False)
    monkeypatch.setattr(os, "fsync", lambda handle: handles.append(handle) or fsync(handle))
    for content in (b"one", b"two"):
        replace_file(str(tmp_path / "file"), [content])
        assert (tmp_path / "file").read_bytes() == content
    with new_folder(tmp_path / "m") as part:
        (part / "a").write_bytes(b"1")
    assert len(handles) == 2 and (tmp_path / "m" / "a").read_bytes() == b"1"
    assert sorted(x.name for x in tmp_path.iterdir()) == ["file", "m"]


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_system_that_removes_a_file_when_it_is_closed_is_asked_to_do_so(tmp_path, monkeypatch, is_kept):
    """Its name stays until then; elsewhere it is gone at once."""
    flags, opened = [], os.open
    monkeypatch.setattr(files, "REMOVED_WHEN_CLOSED", os.O_SYNC if is_kept else 0)
    monkeypatch.setattr(os, "open", lambda path, how, mode: flags.append((how, mode)) or opened(path, how, mode))
    with unnamed_file(tmp_path) as file:
        file.write(b"content")
        file.seek(0)
        assert file.read() == b"content"
        assert len(list(tmp_path.iterdir())) == is_kept
    ((how, mode),) = flags
    assert how & os.O_EXCL and how & os.O_CREAT and how & os.O_RDWR and mode == 0o600
    assert (how & os.O_SYNC == os.O_SYNC) is is_kept


def test_no_descriptor_stays_open(tmp_path):
    """Neither of files nor of folders, also where writing fails."""
    before = len(os.listdir("/proc/self/fd"))
    replace_file(tmp_path / "file", [b"one"])
    with new_folder(tmp_path / "m") as part:
        (part / "a").write_bytes(b"1")
    for fail in (lambda: replace_file(tmp_path / "file", failing()), lambda: replace_file(tmp_path / "m", [b""])):
        with pytest.raises((KeyboardInterrupt, OSError)):
            fail()
    with unnamed_file(tmp_path):
        assert len(os.listdir("/proc/self/fd")) == before + 1
    assert len(os.listdir("/proc/self/fd")) == before
