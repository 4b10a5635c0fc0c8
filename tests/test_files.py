"""Files that are replaced: what is no file, or leads to one elsewhere, stays what it is."""

import os
import threading

import pytest

from cgraph.system.files import replace_file
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
    assert [x.name for x in tmp_path.rglob("*")] == ["folder"]
