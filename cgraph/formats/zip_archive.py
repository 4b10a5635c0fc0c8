"""Members of zip archives in a mapped file; uncompressed ones are not copied.

The reader uses the central directory at the end and checks it against the file: each member lies before it, after a
header with the same name, and shares no byte with another member. Source: PKWARE's APPNOTE 6.3, sections 4.3 and
4.5.3.
"""

import zlib
from collections.abc import Iterator
from struct import Struct

import numpy as np

from cgraph.errors import FormatError, damaged_file
from cgraph.formats.allowance import Allowance
from cgraph.kernels.mapped import release
from cgraph.record import Record

LOCAL, CENTRAL, END = Struct("<4s5H3I2H"), Struct("<4s6H3I5H2I"), Struct("<4s4H2IH")
LOCATOR_64, END_64 = Struct("<4sIQI"), Struct("<4sQ2H2I4Q")
LARGE = 0xFFFFFFFF  # the number is in the extra field, as 64 bits
EXTRA_64 = 1
FIELD = Struct("<2H")  # the start of an extra field: its kind and its length
MOST_FIELDS = 64
LONGEST_COMMENT = 1 << 16
ENTRY = 800  # bytes of memory of a member's record
LETTER = 8  # bytes in memory for each byte of a member's name
ENCRYPTED, UTF8 = 1, 1 << 11  # flags
STORED, DEFLATED = 0, 8
PIECE = 1 << 20  # bytes


class Member(Record):
    """One file in the archive.

    Fields
        name: with its folders
        method: STORED or DEFLATED
        crc: checksum of its bytes
        place: range of its stored bytes in the archive
        nbytes: bytes after decompression
    """

    name: str
    method: int
    crc: int
    place: range
    nbytes: int


def members_of(data: memoryview, allowance: Allowance) -> dict[str, Member]:
    """Return the members by name, in the order of the archive.

    Raises
        FormatError: it is not a zip archive; members share bytes, lie outside, have one name, are encrypted or
            compressed by an unknown method
    """
    where, count = directory_of(data)
    allowance.spend("its table of members", nbytes=ENTRY * count)
    members: dict[str, Member] = {}
    spans = []
    at = where.start
    for _ in range(count):
        if at + CENTRAL.size > where.stop or data[at : at + 4] != b"PK\x01\x02":
            raise damaged_file(f"its table of members is truncated at byte {at}")
        allowance.spend("names of its members", nbytes=LETTER * name_length(data, at))
        member, begin, at = member_at(data, at, where)
        if member.name in members:
            raise damaged_file(f"two members have the name {member.name!r:.80}")
        members[member.name] = member
        spans.append((begin, member.place.stop, member.name))
    if at != where.stop:
        raise damaged_file(f"its table of members ends at byte {at}, not {where.stop}")
    for (_, stop, _), (start, _, name) in zip(sorted(spans), sorted(spans)[1:]):
        if start < stop:
            raise damaged_file(f"member {name!r:.80} shares bytes with another")
    return members


def directory_of(data: memoryview) -> tuple[range, int]:
    """Return the range of the table of members, and their number."""
    tail = bytes(data[-(END.size + LONGEST_COMMENT) :])
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + END.size > len(tail):
        raise FormatError(
            f"its last {len(tail):,} bytes hold no end record of a zip archive: the file is truncated or of another "
            "kind. Download or save it again"
        )
    _, disk, first, _, count, nbytes, start, comment = END.unpack_from(tail, at)
    if disk or first or at + END.size + comment != len(tail):
        raise damaged_file(f"its end record at byte {len(data) - len(tail) + at:,} is damaged: it is not a zip archive")
    stop = len(data) - len(tail) + at
    locator = stop - LOCATOR_64.size
    if locator >= 0 and data[locator : locator + 4] == b"PK\x06\x07":
        stop = LOCATOR_64.unpack_from(data, locator)[2]
        if stop + END_64.size > locator or data[stop : stop + 4] != b"PK\x06\x06":
            raise damaged_file(f"its 64-bit end record is not at byte {stop:,}, its declared position")
        count, nbytes, start = END_64.unpack_from(data, stop)[7:10]
    if start + nbytes != stop or count * CENTRAL.size > nbytes:
        raise damaged_file(f"its table of {count} members from byte {start} on does not end at byte {stop}")
    return range(start, stop), count


def name_length(data: memoryview, at: int) -> int:
    """Return the length of the name in the table entry at a byte."""
    return CENTRAL.unpack_from(data, at)[10]


def member_at(data: memoryview, at: int, where: range) -> tuple[Member, int, int]:
    """Return the member of the table entry at a byte, the offset of its header, and that of the next entry."""
    entry = CENTRAL.unpack_from(data, at)
    _, _, _, flags, method, _, _, crc, stored, nbytes, name_nbytes, extra_length, comment_length, *_, begin = entry
    name_at = at + CENTRAL.size
    extra_at = name_at + name_nbytes
    end = extra_at + extra_length + comment_length
    if end > where.stop:
        raise damaged_file(f"its table of members is truncated at byte {at}")
    raw = bytes(data[name_at:extra_at])
    name = raw.decode("utf-8" if flags & UTF8 else "cp437", "replace")
    if LARGE in (nbytes, stored, begin):
        field = field_of_64_bits(data[extra_at : extra_at + extra_length], name)
        nbytes, stored, begin = with_64_bit_fields(field, [nbytes, stored, begin], name)
    if flags & ENCRYPTED or method not in (STORED, DEFLATED):
        raise FormatError(
            f"member {name!r:.80} is encrypted or compressed by an unknown method. Use deflate or no compression"
        )
    if begin + LOCAL.size > where.start or data[begin : begin + 4] != b"PK\x03\x04":
        raise damaged_file(f"member {name!r:.80} has no header at byte {begin}")
    lengths = LOCAL.unpack_from(data, begin)[-2:]
    start = begin + LOCAL.size + sum(lengths)
    if start + stored > where.start or bytes(data[begin + LOCAL.size :][: lengths[0]]) != raw:
        raise damaged_file(f"member {name!r:.80} lies outside the file or has another name in its header")
    if method == STORED and stored != nbytes:
        raise damaged_file(f"member {name!r:.80} declares {nbytes} bytes, {stored} are stored")
    return Member(name, method, crc, range(start, start + stored), nbytes), begin, end


def field_of_64_bits(extra: memoryview, name: str) -> memoryview:
    """Return the contents of the extra field of 64-bit numbers; empty if absent.

    Programs write one to four extra fields; more than `MOST_FIELDS` are refused, since they would only cost time.
    """
    at = 0
    for _ in range(MOST_FIELDS):
        if len(extra) - at < FIELD.size:
            return extra[:0]
        kind, length = FIELD.unpack_from(extra, at)
        at += FIELD.size + length
        if kind == EXTRA_64:
            return extra[at - length : at]
    raise damaged_file(f"member {name!r:.80} has its size in 64 bits after {MOST_FIELDS} extra fields or is absent")


def with_64_bit_fields(field: memoryview, numbers: list[int], name: str) -> list[int]:
    """Replace numbers that exceed 32 bits by those of the extra field."""
    wide = (int.from_bytes(field[i : i + 8], "little") for i in range(0, min(len(field), 8 * len(numbers)) - 7, 8))
    try:
        return [next(wide) if n == LARGE else n for n in numbers]
    except StopIteration:
        raise damaged_file(f"member {name!r:.80} lacks its size in 64 bits") from None


def unpack(data: memoryview, member: Member) -> memoryview:
    """Return the bytes of a member, as a view if uncompressed. FormatError if they are damaged."""
    if member.method == STORED:
        body = data[member.place.start : member.place.stop]
        crc = 0
        for start in range(0, len(body), PIECE):
            piece = body[start : start + PIECE]
            crc = zlib.crc32(piece, crc)
            release(np.frombuffer(piece, np.uint8))
    else:
        body = inflate(data, member)
        crc = zlib.crc32(body)
    if crc != member.crc:
        raise damaged_file(f"member {member.name!r:.80} is damaged: its checksum differs")
    return body


def inflate(data: memoryview, member: Member) -> memoryview:
    """Decompress a member of a declared size, which the caller has allowed."""
    out = np.empty(member.nbytes, np.uint8)
    at = 0
    try:
        for piece in pieces_of(data[member.place.start : member.place.stop]):
            if at + len(piece) > member.nbytes:
                raise damaged_file(f"member {member.name!r:.80} has more than the {member.nbytes} bytes it declares")
            out[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
            at += len(piece)
    except zlib.error as error:
        raise damaged_file(f"member {member.name!r:.80} is damaged: {error}") from None
    if at != member.nbytes:
        raise damaged_file(f"member {member.name!r:.80} ends after {at} of {member.nbytes} bytes")
    return memoryview(out).toreadonly()  # type: ignore[arg-type]


def pieces_of(source: memoryview) -> Iterator[bytes]:
    """Yield decompressed bytes, at most PIECE at a time."""
    machine = zlib.decompressobj(-zlib.MAX_WBITS)
    for start in range(0, len(source), PIECE):
        waiting = bytes(source[start : start + PIECE])
        while not machine.eof:
            piece = machine.decompress(waiting, PIECE)
            waiting = machine.unconsumed_tail
            yield piece
            if not waiting and len(piece) < PIECE:
                break
