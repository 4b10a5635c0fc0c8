"""Fields of protocol buffers: what is cut off, reaches too far or is of no kind, at its very edge."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx.wire import (
    CHUNK,
    LONGEST,
    chunks_of_numbers,
    count_of_numbers,
    encode_varint,
    fields,
    varint,
)


def parts(raw: bytes) -> list[tuple[int, bytes]]:
    """The number and the bytes of each field."""
    return [(f.number, raw[f.start : f.stop]) for f in fields(memoryview(raw), 0, len(raw))]


def test_fields_of_every_kind_follow_one_another():
    raw = b"\x08\x96\x01" + b"\x11" + b"8" * 8 + b"\x1a\x02ab" + b"\x25" + b"4" * 4 + b"\x2a\x00"
    assert parts(raw) == [(1, b"\x96\x01"), (2, b"8" * 8), (3, b"ab"), (4, b"4" * 4), (5, b"")]


@pytest.mark.parametrize(
    ("raw", "match"),
    [
        (b"\x11" + b"8" * 7, "byte 0 ends at 9, but its message ends at 8"),
        (b"\x25" + b"4" * 3, "byte 0 ends at 5, but its message ends at 4"),
        (b"\x08\x01\x1a\x02a", "byte 2 ends at 6, but its message ends at 5"),
        (b"\x08", "a number is truncated at byte 1"),
        (b"\x08\x80", "a number is truncated at byte 2"),
        (b"\x1a", "a number is truncated at byte 1"),
        (b"\x0b", "byte 0 begins a field of the unknown wire type 3"),
        (b"\x0e", "byte 0 begins a field of the unknown wire type 6"),
    ],
)
def test_a_field_that_is_not_all_there_is_refused(raw, match):
    with pytest.raises(FormatError, match=match):
        parts(raw)


@pytest.mark.parametrize("n", [0, 1, 127, 128, 2**32, 2**63, 2**64 - 1])
def test_numbers_of_64_bits_come_back(n):
    raw = encode_varint(n) + b"behind"
    assert varint(memoryview(raw), 0, len(raw)) == (n, len(encode_varint(n)))


def test_a_number_of_more_bits_is_refused():
    with pytest.raises(FormatError, match="before byte 10 has more than 64 bits"):
        varint(memoryview(b"\x80" * 10 + b"\x01"), 0, 11)


@pytest.mark.parametrize("field", [b"\x1a\x02ab", b"\x11" + b"8" * 8, b"\x25" + b"4" * 4], ids=["bytes", "64", "32"])
def test_a_field_that_reaches_beyond_its_message_is_refused_though_the_file_goes_on(field):
    """The message ends inside of the field; the bytes that follow belong to another message."""
    data = memoryview(field + b"\x08\x01")
    assert [f.number for f in fields(data, 0, len(field))] == [field[0] >> 3]
    for stop in range(len(field) - 1, 1, -1):
        with pytest.raises(FormatError, match=f"ends at {len(field)}, but its message ends at {stop}"):
            list(fields(data, 0, stop))


NUMBERS = [0, 1, 127, 128, 300, 2**32, 2**63, 2**64 - 1, 5]


def decoded(raw: bytes) -> list[int]:
    return [int(n) for chunk in chunks_of_numbers(memoryview(raw)) for n in chunk]


@pytest.mark.parametrize("size", [10, 11, 13, 32, CHUNK])
def test_packed_numbers_are_decoded_in_chunks_of_any_size(size, monkeypatch):
    """A number that a chunk cuts is read with the next one; a chunk holds at least one whole number."""
    monkeypatch.setattr("cgraph.formats.onnx.wire.CHUNK", size)
    values = NUMBERS * 9
    raw = b"".join(map(encode_varint, values))
    assert decoded(raw) == values and count_of_numbers(memoryview(raw)) == len(values)
    assert decoded(b"") == [] and count_of_numbers(memoryview(b"")) == 0
    for cut in range(1, 10):  # the last number has a byte, the one before it ten
        short = raw[: -1 - cut]
        assert count_of_numbers(memoryview(short)) == len(values) - 2
        with pytest.raises(FormatError, match=rf"a number in {10 - cut} bytes is truncated"):
            decoded(short)


@pytest.mark.parametrize("length", [62, 63, 64, 65, CHUNK - 1, CHUNK, CHUNK + 1])
def test_numbers_are_counted_by_their_last_bytes(length):
    raw = np.full(length, 0x81, np.uint8)
    raw[2::3] = 1
    raw[-1] = 1
    ends = int((raw < 128).sum())
    assert count_of_numbers(memoryview(raw.tobytes())) == ends == len(decoded(raw.tobytes()))


def test_packed_numbers_of_more_bytes_than_64_bits_need_are_refused():
    longest = b"\xff" * (LONGEST - 1) + b"\x01"
    assert decoded(b"\x05" + longest + b"\x06") == [5, 2**64 - 1, 6]
    with pytest.raises(FormatError, match=f"a number has {LONGEST + 1} bytes, at most {LONGEST} hold 64 bits"):
        decoded(b"\x05" + b"\x80" * LONGEST + b"\x01" + b"\x06")
    with pytest.raises(FormatError, match="a number in 20 bytes is truncated or has more than 64 bits"):
        decoded(b"\x80" * 20)


def test_a_tag_and_a_length_may_have_several_bytes():
    """Fields from 16 on, and contents from 128 bytes on, at the edge of one byte."""
    for number in (15, 16, 127, 128, 2000):
        for length in (0, 127, 128, 300):
            raw = encode_varint(number << 3 | 2) + encode_varint(length) + b"z" * length
            assert parts(raw) == [(number, b"z" * length)]
            assert [f.begin for f in fields(memoryview(raw + b"\x08\x01"), 0, len(raw) + 2)] == [0, len(raw)]
