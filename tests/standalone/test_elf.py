"""ARM's attribute of the float interface: replaced where it is compatible, in its own section, and nowhere else."""

import struct

import pytest

from cgraph.standalone.elf import ATTRIBUTES, with_any_float_abi

NAME, MODEL, FLOATS = 5, 23, 28  # CPU name (a text), number model, VFP arguments


def attributes(*tags: bytes) -> bytes:
    """A section of ARM's build attributes: format, length, vendor, the file's subsection with these tags."""
    body = b"".join(tags)
    return (
        b"A" + struct.pack("<I", 4 + 6 + 5 + len(body)) + b"aeabi\0" + b"\x01" + struct.pack("<I", 5 + len(body)) + body
    )


def elf(*sections: tuple[int, bytes]) -> bytes:
    """A file with a header, these sections, and their table at its end."""
    contents, start, rows = b"", 52, b""
    for kind, raw in sections:
        rows += struct.pack("<10I", 0, kind, 0, 0, start + len(contents), len(raw), 0, 0, 1, 0)
        contents += raw
    header = bytearray(52)
    struct.pack_into("<I", header, 32, 52 + len(contents))
    struct.pack_into("<HH", header, 46, 40, len(sections))
    return bytes(header) + contents + rows


CPU = bytes([NAME]) + b"\x17\x03m7\0"  # a text with the bytes of the tag in it


def test_the_number_model_becomes_the_interface_of_floats():
    before = attributes(CPU, bytes([6, 10]), bytes([MODEL, 3]), bytes([24, 1]))
    after = attributes(CPU, bytes([6, 10]), bytes([FLOATS, 3]), bytes([24, 1]))
    code = bytes([MODEL, 3] * 4)
    raw = elf((1, code), (ATTRIBUTES, before), (1, code))
    assert with_any_float_abi(raw) == elf((1, code), (ATTRIBUTES, after), (1, code))


@pytest.mark.parametrize("tags", [
    (CPU,), (bytes([MODEL, 1]),), (bytes([6, MODEL]), bytes([24, 3])), (bytes([32]) + b"\x01\x17\x03\0",), (),
])  # fmt: skip
def test_other_tags_values_and_texts_stay(tags):
    raw = elf((ATTRIBUTES, attributes(*tags)))
    assert with_any_float_abi(raw) == raw


def test_only_the_first_one_is_replaced_and_a_file_without_attributes_stays():
    twice = elf((ATTRIBUTES, attributes(bytes([MODEL, 3]), bytes([MODEL, 3]))))
    assert with_any_float_abi(twice) == elf((ATTRIBUTES, attributes(bytes([FLOATS, 3]), bytes([MODEL, 3]))))
    assert with_any_float_abi(elf((1, b"code"))) == elf((1, b"code")) and with_any_float_abi(elf()) == elf()
