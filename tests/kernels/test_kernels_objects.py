"""The linker of object files: what it places and where, what it leaves to LLVM, what is malformed, fields of words."""

import ctypes
import platform
import struct
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest

from cgraph.kernels.code_image import ADDRESS_BYTES, UnknownCode, place_image
from cgraph.kernels.isa.architectures import architecture, host_architecture
from cgraph.kernels.isa.records import Patch
from cgraph.kernels.objects import (
    HEADER,
    RELOCATION,
    RELOCATIONS,
    SECTION,
    SYMBOL,
    SYMBOLS,
    MalformedCode,
    ObjectFile,
    elf_machine,
    is_for,
    link_objects,
    write_field,
)
from cgraph.kernels.target import code_generation, host_target, new_target_machine
from cgraph.record import replace
from cgraph.system.alignment import ALIGNMENT

ABSOLUTE = 0xFFF1  # a symbol's section, where its value is no place

on_linux = pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="relocations of x86-64")
where_we_link = pytest.mark.skipif(
    sys.platform != "linux" or not host_architecture().relocations, reason="LLVM places the code"
)


def compiled(text):
    return new_target_machine(host_target(), code_generation(host_target())).emit_object(llvm.parse_assembly(text))


def calling(name):
    """Object code of a function `f` that returns what a C function returns."""
    text = f"declare i32 @{name}()\ndefine i32 @f() {{ %x = call i32 @{name}() ret i32 %x }}"
    return new_target_machine(host_target(), code_generation(host_target())).emit_object(llvm.parse_assembly(text))


@pytest.mark.parametrize(
    ("code", "whole"),
    [
        (b"", False),
        (b"\x7fELF", False),
        (bytes(63), False),
        (bytes(64), True),
        (b"\x7fELF\x02\x01\x01" + bytes(57), True),
    ],
)
def test_only_object_code_of_this_machine_is_placed(code, whole):
    """What is no whole object file is malformed, other object files are unknown."""
    with pytest.raises(UnknownCode) as error:
        place_image(link_objects({"f": code}))
    assert isinstance(error.value, MalformedCode) is not whole


@on_linux
def test_objects_for_another_processor_are_left_to_llvm():
    code = calling("getpid")
    for at, value in ((18, 183), (4, 1), (5, 2)):  # AArch64; 32 bits; the highest byte first
        with pytest.raises(UnknownCode, match="not an ELF object file for x86"):
            link_objects({"f": code[:at] + bytes([value]) + code[at + 1 :]})


@where_we_link
def test_a_function_that_an_object_only_calls_is_not_its_own():
    with pytest.raises(UnknownCode, match="lack their functions"):
        link_objects({"getpid": calling("getpid")})


@where_we_link
def test_an_object_that_is_cut_off_anywhere_is_malformed():
    """Not unknown: LLVM would be given that."""
    code = calling("getpid")
    for length in range(len(code)):
        with pytest.raises(MalformedCode):
            link_objects({"f": code[:length]})


def edited(code, kind, row, edit):
    """Object code with other rows in its table of a kind: as `edit` has it of the table's section and a row."""
    changed = bytearray(code)
    table = next(s for s in ObjectFile(code, 0, host_architecture()).sections if s.kind == kind)
    for at in range(table.start, table.start + table.nbytes, row.size):
        row.pack_into(changed, at, *edit(*row.unpack_from(code, at)))
    return bytes(changed)


@on_linux
def test_an_address_of_what_is_in_no_section_is_left_to_llvm():
    def edit(name, kind, other, section, *rest):
        return name, kind, other, ABSOLUTE if name and not section else section, *rest

    with pytest.raises(UnknownCode, match="an address of getpid, which is not in memory"):
        link_objects({"f": edited(calling("getpid"), SYMBOLS, SYMBOL, edit)})


@on_linux
@pytest.mark.parametrize("kind", [0, 2, 4, 10])  # none; relative to its own place; through a table; of 32 bits
def test_an_address_of_another_kind_is_left_to_llvm(kind):
    code = edited(calling("getpid"), RELOCATIONS, RELOCATION, lambda at, _, *rest: (at, kind, *rest))
    with pytest.raises(UnknownCode, match=f"a relocation of kind {kind}"):
        link_objects({"f": code})


@on_linux
def test_an_address_stands_inside_of_the_image():
    code = calling("getpid")

    def moved(to):
        return link_objects({"f": edited(code, RELOCATIONS, RELOCATION, lambda at, *rest: (to, *rest))})

    last = len(link_objects({"f": code}).code) - ADDRESS_BYTES
    assert moved(last).outer[0][1] == last
    with pytest.raises(MalformedCode, match="lies outside of the"):
        moved(last + 1)


@where_we_link
def test_only_what_runs_or_is_read_is_in_the_image():
    image = link_objects({"f": calling("getpid")})
    assert b"getpid" not in image.code.tobytes()  # the table of names


@where_we_link
def test_what_is_written_into_the_file_alone_is_in_no_image():
    """A flag of a section that is not in memory says nothing."""
    code = calling("getpid")
    changed, sections = bytearray(code), ObjectFile(code, 0, host_architecture()).sections
    at = HEADER.unpack_from(code)[6]
    for i, s in enumerate(sections):
        if not s.flags:
            SECTION.pack_into(changed, at + i * SECTION.size, *s[:2], 1, *s[3:])
    assert link_objects({"f": bytes(changed)}).code.tobytes() == link_objects({"f": code}).code.tobytes()


@where_we_link
def test_a_section_that_is_written_is_left_to_llvm():
    module = "@x = global i32 3\ndefine i32 @f() { %x = load i32, i32* @x ret i32 %x }"
    code = new_target_machine(host_target(), code_generation(host_target())).emit_object(llvm.parse_assembly(module))
    with pytest.raises(UnknownCode, match="is writable or thread-local"):
        link_objects({"f": code})


@on_linux
def test_functions_of_one_object_begin_where_its_symbols_say():
    text = "define i32 @f() { ret i32 11 }\ndefine i32 @g() { ret i32 22 }"
    code = new_target_machine(host_target(), code_generation(host_target())).emit_object(llvm.parse_assembly(text))
    memory, addresses = place_image(link_objects({"g": code}))
    assert len(memory) and ctypes.CFUNCTYPE(ctypes.c_int)(addresses["g"])() == 22


CONSTANTS = """
@x = private constant [2 x i32] [i32 5, i32 {number}]
@table = internal constant [2 x ptr] [ptr @x, ptr getelementptr (i8, ptr @x, i64 4)]
define i32 @{name}(i64 %i) {{
  %at = getelementptr [2 x ptr], ptr @table, i64 0, i64 %i
  %p = load ptr, ptr %at
  %v = load i32, ptr %p
  ret i32 %v
}}"""


@on_linux
def test_files_lie_one_after_the_other_and_each_reads_its_own_constants():
    codes = {name: compiled(CONSTANTS.format(name=name, number=n)) for name, n in (("f", 7), ("g", 9), ("h", 11))}
    image = link_objects(codes)
    assert list(image.symbols) == ["f", "g", "h"] and not image.outer and len(image.inner) >= 6
    assert all(at % ALIGNMENT == 0 for at in image.symbols.values())
    targets = dict(image.inner.tolist())
    tables = [at for at in targets if at + ADDRESS_BYTES in targets]
    assert len(tables) == 3 and all(targets[at + ADDRESS_BYTES] == targets[at] + 4 for at in tables)
    memory, addresses = place_image(image)
    functions = [ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64)(addresses[name]) for name in codes]
    assert [[f(i) for i in range(2)] for f in functions] == [[5, 7], [5, 9], [5, 11]] and len(memory)


@on_linux
def test_a_function_calls_one_of_its_own_file_and_c_functions_by_name():
    text = "declare i32 @getpid()\ndeclare i32 @getppid()\ndefine i32 @f() { %x = call i32 @getpid() %y = call i32 "
    image = link_objects({"f": compiled(text + "@getppid() %z = sub i32 %x, %y ret i32 %z }")})
    assert {name for name, _, _ in image.outer} == {"getpid", "getppid"}
    assert all(plus == 0 and at + ADDRESS_BYTES <= len(image.code) for _, at, plus in image.outer)


@on_linux
def test_each_c_function_has_a_stub_with_its_address_behind_it_where_an_architecture_has_stubs():
    text = "declare i32 @getpid()\ndeclare i32 @getppid()\ndefine i32 @f() { %x = call i32 @getpid() %y = call i32 "
    code = compiled(text + "@getppid() %z = sub i32 %x, %y ret i32 %z }")
    stub = b"stub12"
    plain, image = link_objects({"f": code}), link_objects({"f": code}, replace(host_architecture(), stub=stub))
    stubs = sorted((at, name) for name, at, _ in image.outer if bytes(image.code[at - len(stub) : at]) == stub)
    assert sorted(name for _, name in stubs) == ["getpid", "getppid"]
    starts = [at - len(stub) for at, _ in stubs]
    assert all(at % ADDRESS_BYTES == 0 and at >= len(plain.code) for at in starts)
    assert starts[1] >= starts[0] + len(stub) + ADDRESS_BYTES and len(image.code) == stubs[1][0] + ADDRESS_BYTES
    np.testing.assert_array_equal(image.code[: len(plain.code)], plain.code)


def test_nothing_is_an_empty_image():
    image = link_objects({})
    assert (len(image.code), image.symbols, image.inner.shape, image.outer) == (0, {}, (0, 2), ())


def header(machine, kind=1):
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<2H", kind, machine) + bytes(HEADER.size - 20)


def test_the_machine_of_an_elf_object_file_is_read_and_no_program_or_short_file_has_one():
    assert elf_machine(header(62)) == 62 and elf_machine(header(183)) == 183
    for code in (header(62, kind=2), header(62)[:-1], b"", bytes(100), b"\x7fELF\x01" + header(62)[5:]):
        assert elf_machine(code) is None


def test_object_files_are_for_the_machine_that_a_triple_begins_with():
    mach_o = b"\xcf\xfa\xed\xfe" + architecture("x86").mach_o.to_bytes(4, "little")
    for code, triple, expected in (
        (header(62), "x86_64-unknown-linux-gnu", True),
        (header(62), "aarch64-unknown-linux-gnu", False),
        (header(183), "aarch64-unknown-linux-gnu", True),
        (mach_o, "x86_64-apple-darwin", True),
        (mach_o, "arm64-apple-darwin", False),
        (header(62), "powerpc64le-unknown-linux-gnu", False),
        (b"", "powerpc64le-unknown-linux-gnu", False),
    ):
        assert is_for(code, triple) is expected


def word(value=0):
    return np.frombuffer(bytearray(value.to_bytes(4, "little")), np.uint8)


def number(array):
    return int.from_bytes(array.tobytes(), "little")


def test_a_distance_is_stored_in_its_field_and_other_bits_stay():
    """26 bits of words, as AArch64's branches have."""
    patch = Patch("distance", ((26, 0),), 2)
    for at, to, field in ((100, 108, 2), (108, 100, 2**26 - 2), (0, 4 * (2**25 - 1), 2**25 - 1), (2**27, 0, 2**25)):
        x = word(0xFC000000)
        write_field(x, patch, at, to)
        assert number(x) == 0xFC000000 | field
    for at, to in ((0, 2), (0, 2**27), (2**27 + 4, 0)):
        with pytest.raises(UnknownCode, match=f"distance of {to - at} bytes or pages at byte {at}"):
            write_field(word(), patch, at, to)


def test_the_distance_of_pages_is_stored_in_two_fields_lowest_bits_first():
    x = word(0x90000000)
    write_field(x, Patch("pages", ((2, 29), (19, 5))), 4096 * 3 + 100, 4096 * 9 + 50)  # 6 pages: 0b110
    assert number(x) == 0x90000000 | 0b10 << 29 | 1 << 5


def test_the_offset_in_a_page_has_no_sign_and_is_a_multiple_of_what_is_not_stored():
    patch = Patch("offset", ((12, 10),), 3)
    x = word()
    write_field(x, patch, 0, 4096 + 4088)
    assert number(x) == 511 << 10
    x = word()
    write_field(x, Patch("offset", ((12, 10),)), 0, 4095)
    assert number(x) == 4095 << 10
    with pytest.raises(UnknownCode, match="offset of 12 bytes"):
        write_field(word(), patch, 0, 12)
