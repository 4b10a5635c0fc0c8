"""Zip archives: what zipfile writes is read where it lies; tables that lie are refused."""

import io
import zipfile
import zlib

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats import zip_archive
from cgraph.formats.allowance import Allowance
from cgraph.formats.zip_archive import members_of, unpack

BODIES = {"a": b"first", "b/c": bytes(3000), "é": b"", "d": np.random.default_rng(0).bytes(5000)}


def archive(bodies, method=zipfile.ZIP_STORED, comment=b""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        file.comment = comment
        for name, body in bodies.items():
            file.writestr(name or zipfile.ZipInfo(""), body)
    return out.getvalue()


def members(raw):
    return members_of(memoryview(raw), Allowance(len(raw)))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("comment", [b"", b"PK\x05\x06 a comment"])
def test_what_zipfile_writes_is_read(method, comment):
    raw = archive(BODIES, method, comment if method == zipfile.ZIP_STORED else b"")
    if comment and method == zipfile.ZIP_STORED:
        with pytest.raises(FormatError):  # its end is not where it seems to be
            members(raw)
        return
    found = members(raw)
    assert [(name, bytes(unpack(memoryview(raw), member))) for name, member in found.items()] == [*BODIES.items()]


@pytest.mark.parametrize(("flag", "name"), [(0, "├⌐"), (1 << 11, "é")])
def test_a_name_is_in_utf_8_where_its_flag_says_so_and_else_in_the_code_page_of_dos(flag, name):
    raw = bytearray(archive({"é": b"body"}))
    at = table_of(raw)[0]
    raw[at + 8 : at + 10] = flag.to_bytes(2, "little")
    assert list(members(bytes(raw))) == [name]


@pytest.mark.parametrize("last", [False, True])
def test_an_archive_in_an_archive_is_a_member_of_it(last):
    """It has an end record of its own, before that of the archive."""
    inner = archive(BODIES)
    raw = archive({"a": b"1", "b": inner} if last else {"b": inner, "a": b"1"})
    found = members(raw)
    assert sorted(found) == ["a", "b"] and bytes(unpack(memoryview(raw), found["b"])) == inner


def test_sizes_of_64_bits_are_read():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file, file.open("a", "w", force_zip64=True) as member:
        member.write(b"body")
    raw = bytearray(out.getvalue())
    at = raw.find(b"PK\x01\x02")
    extra = b"\x01\x00\x18\x00" + b"".join(n.to_bytes(8, "little") for n in (4, 4, 0))
    raw[at + 20 : at + 28] = raw[at + 42 : at + 46] * 0 + b"\xff" * 8
    raw[at + 42 : at + 46] = b"\xff" * 4
    raw[at + 30 : at + 32] = len(extra).to_bytes(2, "little")
    raw[at + 47 : at + 47] = extra
    end = raw.find(b"PK\x05\x06")
    raw[end + 12 : end + 16] = (end - at).to_bytes(4, "little")
    assert bytes(unpack(memoryview(raw), members(bytes(raw))["a"])) == b"body"
    del raw[at + 47 + 20 : at + 47 + len(extra)]
    with pytest.raises(FormatError):
        members(bytes(raw))


def table_of(raw):
    """Where the entries of the table begin."""
    found = [raw.find(b"PK\x01\x02")]
    while (at := raw.find(b"PK\x01\x02", found[-1] + 1)) > 0:
        found.append(at)
    return found


OVERLAPS = {  # of the second member: bytes from where to where in its entry, and their value
    "its header is the first one's": (42, 46, 0, "has another name in its header"),
    "its header is behind the table": (42, 46, 10**6, "has no header"),
    "its size reaches into the table": (20, 28, None, "outside"),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_members_outside_their_place_are_refused(name):
    start, stop, value, match = OVERLAPS[name]
    raw = bytearray(archive({"a": bytes(40), "b": bytes(40)}))
    at = table_of(raw)[1]
    raw[at + start : at + stop] = (10**5 * (1 + 2**32) if value is None else value).to_bytes(stop - start, "little")
    with pytest.raises(FormatError, match=match):
        members(bytes(raw))


def test_members_that_share_bytes_are_refused():
    """The second begins within the first, under a header of its own name."""
    inner = archive({"b": b"x"})
    inner = inner[: inner.find(b"PK\x01\x02")]
    raw = bytearray(archive({"a": inner, "b": b"x"}))
    at = table_of(raw)[1]
    raw[at + 42 : at + 46] = bytes(raw).find(inner).to_bytes(4, "little")
    with pytest.raises(FormatError, match="shares bytes"):
        members(bytes(raw))


def test_two_members_of_one_name_are_refused():
    with pytest.warns(UserWarning, match="Duplicate"):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as file:
            file.writestr("a", b"1")
            file.writestr("a", b"2")
    with pytest.raises(FormatError, match="two members"):
        members(out.getvalue())


@pytest.mark.parametrize("flag", [1])
def test_an_encrypted_member_is_refused(flag):
    raw = bytearray(archive({"a": b"body"}))
    raw[table_of(raw)[0] + 8] |= flag
    with pytest.raises(FormatError, match="encrypted"):
        members(bytes(raw))


def test_a_member_that_is_compressed_in_another_way_is_refused():
    with pytest.raises(FormatError, match="member 'a' is encrypted or compressed by an unknown method. Use deflate"):
        members(archive({"a": bytes(99)}, zipfile.ZIP_BZIP2))


def test_a_table_of_many_members_is_refused_before_it_is_made():
    raw = archive({f"{i:05d}": b"" for i in range(100)})
    with pytest.raises(FormatError, match="its table of members would take"):
        members_of(memoryview(raw), poor())


def poor():
    allowance = Allowance(0)
    allowance.spend("nearly everything", nbytes=allowance.nbytes - 1000)
    return allowance


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_bytes_are_noticed(method):
    raw = bytearray(archive({"a": b"0123456789" * 10}, method))
    member = members(bytes(raw))["a"]
    raw[member.place.start + len(member.place) // 2] ^= 1
    with pytest.raises(FormatError, match="damaged|ends after|more than"):
        unpack(memoryview(raw), member)


@pytest.mark.parametrize("declared", [99, 101])
def test_a_compressed_member_of_another_size_than_it_declares_is_refused(declared):
    raw = bytearray(archive({"a": bytes(100)}, zipfile.ZIP_DEFLATED))
    at = table_of(raw)[0]
    raw[at + 24 : at + 28] = declared.to_bytes(4, "little")
    with pytest.raises(FormatError, match="ends after 100 of 101|more than the 99"):
        unpack(memoryview(raw), members(bytes(raw))["a"])


@pytest.mark.parametrize("piece", [1, 2, 7, 64, 1 << 20])
def test_pieces_of_any_size_unpack_to_the_same(piece, monkeypatch):
    monkeypatch.setattr(zip_archive, "PIECE", piece)
    raw = archive({"a": bytes(2000) + b"end" * 100}, zipfile.ZIP_DEFLATED)
    body = bytes(unpack(memoryview(raw), members(raw)["a"]))
    assert body == bytes(2000) + b"end" * 100 and zlib.crc32(body) == members(raw)["a"].crc


def test_every_truncation_is_refused():
    raw = archive(BODIES)
    for length in range(0, len(raw), 37):
        with pytest.raises(FormatError):
            members(raw[:length])


@pytest.mark.parametrize("wide", range(8))
def test_every_choice_of_numbers_may_stand_as_64_bits(wide):
    """Size, stored size and place, in this order, each where its 32 bits say so; of a compressed member."""
    raw = bytearray(archive({"a": b"first", "b": bytes(1000)}, zipfile.ZIP_DEFLATED))
    at = table_of(raw)[1]
    numbers = [int.from_bytes(raw[at + i : at + i + 4], "little") for i in (24, 20, 42)]
    chosen = [n for i, n in enumerate(numbers) if wide >> i & 1]
    for i, place in enumerate((24, 20, 42)):
        if wide >> i & 1:
            raw[at + place : at + place + 4] = b"\xff" * 4
    extra = b"\x01\x00" + (8 * len(chosen)).to_bytes(2, "little") + b"".join(n.to_bytes(8, "little") for n in chosen)
    extra = b"\x02\x00\x01\x00x" + extra  # behind another field
    raw[at + 30 : at + 32] = len(extra).to_bytes(2, "little")
    raw[at + 47 : at + 47] = extra
    end = raw.find(b"PK\x05\x06")
    raw[end + 12 : end + 16] = (int.from_bytes(raw[end + 12 : end + 16], "little") + len(extra)).to_bytes(4, "little")
    assert bytes(unpack(memoryview(raw), members(bytes(raw))["b"])) == bytes(1000)


def test_sizes_of_64_bits_behind_too_many_fields_are_refused(monkeypatch):
    for count, is_read in ((zip_archive.MOST_FIELDS - 1, True), (zip_archive.MOST_FIELDS, False)):
        fields = memoryview(b"\x02\x00\x00\x00" * count + b"\x01\x00\x08\x00" + bytes(8))
        if is_read:
            assert bytes(zip_archive.field_of_64_bits(fields, "a")) == bytes(8)
            continue
        with pytest.raises(FormatError, match="after 64 extra fields"):
            zip_archive.field_of_64_bits(fields, "a")


@pytest.mark.parametrize("at", [4, 6])
def test_an_archive_of_several_disks_is_refused(at):
    """Numbers of the disk, and of that on which the table begins."""
    raw = bytearray(archive(BODIES))
    raw[raw.rfind(b"PK\x05\x06") + at] = 1
    with pytest.raises(FormatError, match="its end record at byte .* is damaged"):
        members(bytes(raw))


def wide_end(raw, moved=0, **changes):
    """The archive with its end record in 64 bits too, whose fields may be changed; `moved`: where it is said to be."""
    at = raw.rfind(b"PK\x05\x06")
    _, _, _, _, count, nbytes, start, _ = zip_archive.END.unpack_from(raw, at)
    fields = {"count": count, "nbytes": nbytes, "start": start, "magic": b"PK\x06\x06"} | changes
    wide = zip_archive.END_64.pack(
        fields["magic"], 44, 45, 45, 0, 0, count, fields["count"], fields["nbytes"], fields["start"]
    )
    locator = zip_archive.LOCATOR_64.pack(b"PK\x06\x07", 0, at + moved, 1)
    narrow = zip_archive.END.pack(b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 2**32 - 1, 2**32 - 1, 0)
    return raw[:at] + wide + locator + narrow


def test_an_end_record_of_64_bits_says_where_the_table_is():
    raw = archive(BODIES)
    found = members(wide_end(raw))
    assert found == members(raw) and list(found) == list(BODIES)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"moved": 1}, "its 64-bit end record is not at byte"), ({"moved": -1}, "its 64-bit end record is not at byte"),
        ({"magic": b"PK\x05\x05"}, "its 64-bit end record is not at byte"),
        ({"moved": 10**6}, "its 64-bit end record is not at byte"),
        ({"count": 5}, "its table of members is truncated|does not end at byte"),
        ({"count": 3}, "its table of members ends at byte"), ({"count": 2**40}, "does not end at byte"),
        ({"nbytes": 1}, "does not end at byte"), ({"start": 1}, "does not end at byte"),
    ],
    ids=str,
)  # fmt: skip
def test_an_end_record_of_64_bits_that_lies_is_refused(changes, match):
    with pytest.raises(FormatError, match=match):
        members(wide_end(archive(BODIES), **changes))


@pytest.mark.parametrize("before", [b"x", b"#!/bin/sh\n"])
def test_bytes_before_an_archive_are_refused(before):
    with pytest.raises(FormatError, match="does not end at byte"):
        members(before + archive(BODIES))


def test_comments_and_further_fields_of_members_are_skipped():
    """Headers of members may have other fields than the table."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for i, (name, body) in enumerate(BODIES.items()):
            info = zipfile.ZipInfo(name)
            info.comment, info.extra = b"c" * i, b"\x02\x00" + bytes([3 * i, 0]) + b"e" * 3 * i
            file.writestr(info, body)
    raw = bytearray(out.getvalue())
    table = table_of(raw)
    found = members(bytes(raw))
    assert [(name, bytes(unpack(memoryview(raw), x))) for name, x in found.items()] == [*BODIES.items()]
    raw[table[-1] + 32] += 1  # its comment would reach beyond the table
    with pytest.raises(FormatError, match="its table of members is truncated"):
        members(bytes(raw))


@pytest.mark.parametrize("stored", [3, 5])
def test_a_member_that_is_not_compressed_has_one_size(stored):
    raw = bytearray(archive({"a": b"1234", "b": b""}))
    raw[table_of(raw)[0] + 24] = stored
    with pytest.raises(FormatError, match=f"member 'a' declares {stored} bytes, 4 are stored"):
        members(bytes(raw))


def test_names_are_charged_by_their_letters():
    short, long = (archive({x * n: b"" for x in "ab"}) for n in (1, 1001))
    spent = []
    for raw in (short, long):
        allowance = Allowance(0)
        before = allowance.nbytes
        members_of(memoryview(raw), allowance)
        spent.append(before - allowance.nbytes)
    assert spent == [2 * (zip_archive.ENTRY + 8), 2 * (zip_archive.ENTRY + 8 * 1001)]


def test_pages_of_a_member_are_released_as_they_are_summed(monkeypatch):
    """So that a file larger than memory can be checked; a compressed one is read into memory."""
    released = []
    monkeypatch.setattr(zip_archive, "release", lambda x: released.append(x.size))
    monkeypatch.setattr(zip_archive, "PIECE", 1000)
    for method, sizes in ((zipfile.ZIP_STORED, [1000, 1000, 500]), (zipfile.ZIP_DEFLATED, [])):
        raw = archive({"a": bytes(2500)}, method)
        released.clear()
        assert len(unpack(memoryview(raw), members(raw)["a"])) == 2500
        assert released == sizes


def test_an_archive_of_nothing_has_no_members():
    """Its end record is all that it has; a comment in the place of a locator of 64 bits is none."""
    raw = archive({})
    assert len(raw) == zip_archive.END.size and members(raw) == {}
    comment = b"PK\x06\x07" + bytes(16)
    assert members(archive({}, comment=comment)) == {}
    assert members(archive({}, comment=comment + bytes(3))) == {}


def test_a_member_may_have_no_name_and_no_bytes():
    """Its header ends where the table begins, and its entry where the table ends."""
    raw = archive({"": b""})
    found = members(raw)
    assert list(found) == [""] and bytes(unpack(memoryview(raw), found[""])) == b""
    cut = bytearray(raw)
    cut[table_of(raw)[0] + 42] = 1
    with pytest.raises(FormatError, match="member '' has no header at byte 1"):
        members(bytes(cut))


@pytest.mark.parametrize("length", [1, 65535])
def test_a_comment_has_at_most_65535_bytes(length):
    raw = archive(BODIES, comment=b"x" * length)
    assert list(members(raw)) == list(BODIES)
    with pytest.raises(FormatError, match="its end record at byte"):
        members(raw[:-1])


@pytest.mark.parametrize("is_wide", [False, True])
def test_the_end_of_a_large_archive_is_found_behind_its_members(is_wide):
    """Of more bytes than an end record and its comment can have."""
    bodies = {"large": bytes(range(256)) * 300, "small": b"behind"}
    raw = archive(bodies)
    end = len(raw) - zip_archive.END.size
    found = members(wide_end(raw) if is_wide else raw)
    assert {name: bytes(unpack(memoryview(raw), x)) for name, x in found.items()} == bodies
    broken = bytearray(raw)
    broken[end + 4] = 1
    with pytest.raises(FormatError, match=f"its end record at byte {end:,} is damaged"):
        members(bytes(broken))


@pytest.mark.parametrize("row", range(4))
def test_each_entry_of_a_table_begins_with_its_mark(row):
    raw = bytearray(archive(BODIES))
    at = table_of(raw)[row]
    raw[at + 2] = 3
    with pytest.raises(FormatError, match=f"its table of members is truncated at byte {at}"):
        members(bytes(raw))


@pytest.mark.parametrize("more", [1, 2])
def test_a_table_of_fewer_entries_than_it_says_is_truncated_where_it_ends(more):
    """Names make it long enough for more entries."""
    bodies = {"x" * 150: b"1", "y" * 150: b"2"}
    raw = bytearray(archive(bodies))
    end = raw.rfind(b"PK\x05\x06")
    raw[end + 10] += more
    with pytest.raises(FormatError, match=f"its table of members is truncated at byte {end}"):
        members(bytes(raw))


def test_a_table_may_end_a_byte_too_early_for_its_last_entry():
    raw = bytearray(archive({"x" * 60: b"1", "": b""}))
    end, last = raw.rfind(b"PK\x05\x06"), table_of(raw)[1]
    assert end - last == zip_archive.CENTRAL.size
    assert len(members(bytes(raw))) == 2
    del raw[end - 1]
    raw[end - 1 + 12 : end - 1 + 16] = (end - 1 - table_of(raw)[0]).to_bytes(4, "little")
    with pytest.raises(FormatError, match=f"its table of members is truncated at byte {last}"):
        members(bytes(raw))


@pytest.mark.parametrize("rest", range(4))
def test_a_member_without_a_field_of_64_bits_lacks_its_size(rest):
    """Behind another field there are none to three bytes, which are too few for one more."""
    fields = b"\x02\x00\x02\x00xy" + b"\x01\x00\x08"[:rest]
    assert bytes(zip_archive.field_of_64_bits(memoryview(fields), "a")) == b""
    with pytest.raises(FormatError, match="member 'a' lacks its size in 64 bits"):
        zip_archive.with_64_bit_fields(memoryview(b""), [1, 0xFFFFFFFF, 2], "a")


def test_a_field_of_64_bits_may_be_empty_and_ends_where_it_says():
    """A field with its own end; one of nothing; further numbers, as of the disk, are not read."""
    find = zip_archive.field_of_64_bits
    assert bytes(find(memoryview(b"\x01\x00\x00\x00"), "a")) == b""
    assert bytes(find(memoryview(b"\x01\x00\x03\x00abcdef"), "a")) == b"abc"
    numbers = b"".join(n.to_bytes(8, "little") for n in (5, 6, 7, 8))
    large = 0xFFFFFFFF
    replaced = zip_archive.with_64_bit_fields
    assert replaced(memoryview(numbers), [large, 1, large], "a") == [5, 1, 6]
    assert replaced(memoryview(numbers[:24] + bytes(4)), [large] * 3, "a") == [5, 6, 7]
    assert replaced(memoryview(numbers), [1, 2, large - 1], "a") == [1, 2, large - 1]
    for length in (0, 7, 8, 15):
        with pytest.raises(FormatError, match="member 'b' lacks its size in 64 bits"):
            replaced(memoryview(numbers[:length]), [large, 0, large], "b")
    assert replaced(memoryview(numbers[:16]), [large, 0, large], "b") == [5, 0, 6]


@pytest.mark.parametrize("piece", [16, 64, 1 << 20])
@pytest.mark.parametrize("behind", [0, 1, 100])
def test_bytes_behind_the_end_of_a_compressed_member_are_not_read(piece, behind, monkeypatch):
    """Also where they fill whole pieces of their own."""
    monkeypatch.setattr(zip_archive, "PIECE", piece)
    body = b"some words, some words again " * 9
    machine = zlib.compressobj(wbits=-15)
    stored = machine.compress(body) + machine.flush()
    data = memoryview(b"ahead" + stored + b"\x07" * behind)
    member = zip_archive.Member("a", zip_archive.DEFLATED, zlib.crc32(body), range(5, len(data)), len(body))
    assert bytes(unpack(data, member)) == body


@pytest.mark.parametrize("size", [63, 64, 65, 128])
def test_a_member_of_whole_pieces_is_unpacked_to_its_end(size, monkeypatch):
    monkeypatch.setattr(zip_archive, "PIECE", 64)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        body = np.random.default_rng(size).bytes(size)
        raw = archive({"a": body}, method)
        assert bytes(unpack(memoryview(raw), members(raw)["a"])) == body
