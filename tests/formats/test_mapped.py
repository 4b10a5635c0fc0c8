"""Files that models name: read as they are, below their folder only, without links of either kind."""

import os

import pytest

from cgraph.errors import FormatError
from cgraph.formats.mapped import map_external, map_file
from cgraph.system.folders import has_descriptors


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "inner" / "deep").mkdir(parents=True)
    (tmp_path / "w.bin").write_bytes(b"outer")
    (tmp_path / "inner" / "w.bin").write_bytes(b"inner")
    (tmp_path / "inner" / "deep" / "w.bin").write_bytes(b"deep")
    (tmp_path / "none.bin").write_bytes(b"")
    return tmp_path


def test_a_path_is_below_the_folder_at_any_depth(folder):
    for location, want in (("w.bin", b"outer"), ("./inner/./w.bin", b"inner"), ("inner/deep/w.bin", b"deep")):
        got = map_external(folder, location)
        assert bytes(got) == want and got.readonly
    assert bytes(map_external(folder / "inner", "w.bin")) == b"inner"
    assert bytes(map_external(folder, "none.bin")) == bytes(map_file(folder / "none.bin")) == b""


@pytest.mark.parametrize(
    ("location", "match"),
    [
        ("", "is not a relative path"),
        ("/w.bin", "is not a relative path"),
        ("inner\\w.bin", "is not a relative path"),
        ("w\0.bin", "is not a relative path"),
        (".", "may leave its folder"),
        ("..", "may leave its folder"),
        ("inner/../w.bin", "may leave its folder"),
        ("inner//w.bin", "may leave its folder"),
        ("inner/", "may leave its folder"),
        ("absent.bin", "'absent.bin'"),
        ("absent/w.bin", "'absent/w.bin'"),
        ("w.bin/w.bin", "'w.bin/w.bin'"),
        ("inner", "inner"),
    ],
)
def test_other_paths_are_refused_by_name(folder, location, match):
    with pytest.raises(FormatError, match=match):
        map_external(folder, location)


@pytest.mark.skipif(not has_descriptors(), reason="links are of POSIX")
def test_a_symbolic_link_is_refused_in_a_model_and_followed_for_a_user(folder):
    (folder / "link.bin").symlink_to("w.bin")
    (folder / "other").symlink_to("inner")
    assert bytes(map_file(folder / "link.bin")) == b"outer"
    for location in ("link.bin", "other/w.bin", "other/deep/w.bin"):
        with pytest.raises(FormatError, match="external data at"):
            map_external(folder, location)


@pytest.mark.skipif(not has_descriptors(), reason="links are of POSIX")
def test_a_file_of_two_names_is_refused_and_no_descriptor_stays_open(folder):
    os.link(folder / "w.bin", folder / "inner" / "again.bin")
    assert bytes(map_file(folder / "w.bin")) == b"outer"
    before = os.dup(0)
    os.close(before)  # the lowest free descriptor
    for location in ("w.bin", "inner/again.bin"):
        with pytest.raises(FormatError, match=r"has several hard links\. Copy the file"):
            map_external(folder, location)
    with pytest.raises(FormatError, match="external data at 'inner/deep' is not a regular file"):
        map_external(folder, "inner/deep")
    with pytest.raises(FormatError, match="inner/deep/absent"):
        map_external(folder, "inner/deep/absent")
    after = os.dup(0)
    os.close(after)
    assert after == before


def test_what_a_user_names_is_refused_by_name(folder):
    with pytest.raises(FormatError, match=r"absent\.bin: No such file"):
        map_file(folder / "absent.bin")
    with pytest.raises(FormatError, match=r"'a\\x00b': .*null"):
        map_file("a\0b")
    if has_descriptors():
        with pytest.raises(FormatError, match="inner is not a regular file"):
            map_file(folder / "inner")


@pytest.mark.parametrize("has", [False, True])
def test_a_colon_is_a_letter_of_a_name_except_where_it_names_a_drive(folder, monkeypatch, has):
    (folder / "a:b").write_bytes(b"colon")
    monkeypatch.setattr("cgraph.formats.mapped.has_descriptors", lambda: has)
    if has:
        assert bytes(map_external(folder, "a:b")) == b"colon"
    else:
        with pytest.raises(FormatError, match="external data at 'a:b' is not a relative path"):
            map_external(folder, "a:b")
    assert bytes(map_external(folder, "w.bin")) == b"outer"
    for location in ("a\\b", "a\0b"):
        with pytest.raises(FormatError, match="is not a relative path"):
            map_external(folder, location)
