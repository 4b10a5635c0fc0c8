"""Names that an object file needs from elsewhere, read from the file: LLVM adds calls that its text does not have.

Sources: the ELF specification (symbol tables), the PE format (COFF symbol table), Apple's mach-o/nlist.h, and the
WebAssembly core specification (import section).
"""

import re
import struct
from collections.abc import Iterable, Iterator

BUILTIN = re.compile(r"__(aeabi_(?!mem)\w+|gnu_\w+|\w*[shdtx][fi]\d?)\Z")
OWN = ("_GLOBAL_OFFSET_TABLE_",)  # the linker itself defines it
SYMBOL_TABLE = 2  # ELF's section type
LC_SYMTAB, EXTERNAL, STAB = 2, 1, 0xE0  # Mach-O
IMPORTS, FUNCTION = 2, 0  # WebAssembly


def undefined_names(raw: bytes) -> tuple[str, ...]:
    """Return the sorted names that an ELF, COFF, Mach-O or WebAssembly object uses and does not define."""
    if raw[:4] == b"\x7fELF":
        names = elf_names(raw)
    elif raw[:4] == b"\0asm":
        names = wasm_names(raw)
    elif raw[:4] == b"\xcf\xfa\xed\xfe":
        names = macho_names(raw)
    else:
        names = coff_names(raw)
    return tuple(sorted(set(names).difference(OWN)))


def builtins_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of arithmetic that a processor lacks: libgcc and compiler-rt have these functions."""
    return tuple(x for x in names if BUILTIN.match(x))


def text_at(raw: bytes, at: int) -> str:
    return raw[at : raw.index(0, at)].decode()


def elf_names(raw: bytes) -> Iterator[str]:
    """Yield the undefined names of a little-endian ELF file of 32 or 64 bits."""
    is_wide = raw[4] == 2
    table = struct.unpack_from("<Q", raw, 40)[0] if is_wide else struct.unpack_from("<I", raw, 32)[0]
    size, count = struct.unpack_from("<HH", raw, 58 if is_wide else 46)
    layout, entry = ("<IIQQQQI", "<IBBH") if is_wide else ("<IIIIIII", "<I8xBBH")
    sections = [struct.unpack_from(layout, raw, table + i * size) for i in range(count)]
    for _, kind, _, _, start, nbytes, link in sections:
        if kind != SYMBOL_TABLE:
            continue
        texts, step = sections[link][4], 24 if is_wide else 16
        for at in range(start + step, start + nbytes, step):  # the first entry is empty
            name, _, _, section = struct.unpack_from(entry, raw, at)
            if section == 0:
                yield text_at(raw, texts + name)


def coff_names(raw: bytes) -> Iterator[str]:
    """Yield the undefined external names of a COFF file."""
    table, count = struct.unpack_from("<II", raw, 8)
    i = 0
    while i < count:
        at = table + 18 * i
        zero, offset, value, section, _, storage, others = struct.unpack_from("<IIIhHBB", raw, at)
        if section == 0 and value == 0 and storage == 2:
            short = raw[at : at + 8].rstrip(b"\0").decode()
            yield short if zero else text_at(raw, table + 18 * count + offset)
        i += 1 + others


def macho_names(raw: bytes) -> Iterator[str]:
    """Yield the undefined names of a Mach-O file of 64 bits, without the underscore that C's names have there."""
    at = 32
    for _ in range(struct.unpack_from("<I", raw, 16)[0]):
        command, nbytes, table, count, texts = struct.unpack_from("<IIIII", raw, at)
        at += nbytes
        for i in range(count if command == LC_SYMTAB else 0):
            name, kind = struct.unpack_from("<IB", raw, table + 16 * i)
            if kind & ~STAB == EXTERNAL and not kind & STAB:
                yield text_at(raw, texts + name).removeprefix("_")


def wasm_names(raw: bytes) -> Iterator[str]:
    """Yield the functions that a WebAssembly object imports."""
    at = 8
    while at < len(raw):
        section = raw[at]
        nbytes, at = number_at(raw, at + 1)
        if section == IMPORTS:
            yield from imported_functions(raw, at)
            return
        at += nbytes


def imported_functions(raw: bytes, at: int) -> Iterator[str]:
    """Yield the functions of an import section."""
    count, at = number_at(raw, at)
    for _ in range(count):
        _, at = name_at(raw, at)
        name, at = name_at(raw, at)
        kind = raw[at]
        at += 1
        if kind == FUNCTION:
            yield name
            _, at = number_at(raw, at)
        elif kind == 3:  # a global: its type and whether it changes
            at += 2
        else:  # a table has a type before its limits, a memory has not
            limits, at = number_at(raw, at + (kind == 1))
            for _ in range(1 + (limits & 1)):
                _, at = number_at(raw, at)


def name_at(raw: bytes, at: int) -> tuple[str, int]:
    nbytes, at = number_at(raw, at)
    return raw[at : at + nbytes].decode(), at + nbytes


def number_at(raw: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned LEB128 number and the place after it."""
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
