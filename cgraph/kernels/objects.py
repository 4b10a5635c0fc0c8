"""Object code placed in executable memory, without LLVM: its library alone takes 47 MB and a tenth of a second.

Only what emitters' code for x86-64 Linux consists of: ELF sections that are read or run, and in them 64-bit addresses
of one another and of C functions. Source: System V ABI, AMD64 supplement, 1.0.
"""

import ctypes
import mmap
from collections.abc import Iterator, Mapping
from functools import cache
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

import numpy as np

from cgraph.alignment import aligned

START = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
HEADER, SECTION, SYMBOL, RELOCATION = map(Struct, ("<16s2HI3QI6H", "<2I4Q2I2Q", "<I2BH2Q", "<Q2Iq"))
X86_64, SYMBOLS, RELOCATIONS, UNWINDING, ADDRESS = 62, 2, 4, 0x70000001, 1
WRITTEN, IN_MEMORY = 1, 2  # flags of a section


class UnknownCode(Exception):
    """Object code of another machine, or with something in it that this loader does not know."""


class MalformedCode(UnknownCode):
    """What is no object file at all, or is cut off."""


class Section(NamedTuple):
    """A section of an object file, as the file describes it."""

    name: int
    kind: int
    flags: int
    address: int
    start: int
    nbytes: int
    link: int
    info: int
    alignment: int
    each: int


class Image:
    """An object file with a place in memory, from offset `start` to `stop`."""

    def __init__(self, code: bytes, start: int) -> None:
        if len(code) < HEADER.size:
            raise MalformedCode(f"{len(code)} bytes are no object file")
        if not code.startswith(START) or HEADER.unpack_from(code)[2] != X86_64:
            raise UnknownCode("no ELF object for x86-64")
        self.code, self.stop = code, start
        at, count = HEADER.unpack_from(code)[6], HEADER.unpack_from(code)[12]
        self.sections = [Section(*SECTION.unpack_from(code, at + i * SECTION.size)) for i in range(count)]
        self.places: dict[int, int] = {}
        for i, s in enumerate(self.sections):
            if s.flags & IN_MEMORY and s.nbytes and s.kind != UNWINDING:
                if s.flags & WRITTEN:
                    raise UnknownCode("a section that is written")
                self.places[i] = aligned(self.stop)
                self.stop = self.places[i] + s.nbytes

    def write(self, memory: np.ndarray) -> dict[str, int]:
        """Copy the sections and fill in addresses; where each symbol is."""
        for i, at in self.places.items():
            s = self.sections[i]
            memory[at : at + s.nbytes] = np.frombuffer(self.code, np.uint8, s.nbytes, s.start)
        symbols = self.symbols(memory.ctypes.data)
        addresses = [address for _, address in symbols]
        for s in self.sections:
            if s.kind == RELOCATIONS and s.info in self.places:
                for at, kind, symbol, plus in self.rows(s, RELOCATION):
                    if kind != ADDRESS:
                        raise UnknownCode(f"a relocation of kind {kind}")
                    memory[self.places[s.info] + at :][:8].view("<u8")[0] = addresses[symbol] + plus
        return dict(symbols)

    def symbols(self, base: int) -> list[tuple[str, int]]:
        """Every symbol's name and address; 0 where it names no place in memory."""
        table = next(s for s in self.sections if s.kind == SYMBOLS)
        names, found = self.sections[table.link].start, []
        for name_at, _, _, section, at, _ in self.rows(table, SYMBOL):
            name = self.code[names + name_at : self.code.index(0, names + name_at)].decode()
            if section in self.places:
                found.append((name, base + self.places[section] + at))
            else:
                found.append((name, c_function(name) if name and section == 0 else 0))
        return found

    def rows(self, section: Section, kind: Struct) -> Iterator[tuple]:
        """A section that is a table."""
        return kind.iter_unpack(self.code[section.start : section.start + section.nbytes])


def placed(objects: Mapping[str, bytes]) -> tuple[np.ndarray, dict[str, int]]:
    """Place object files.

    Parameters
        objects: object files by the function that each defines
    Returns
        the memory, which must live as long as the functions, and the functions' addresses
    Raises
        UnknownCode: only LLVM can place these
        MalformedCode: nobody can
    """
    images, nbytes = [], 0
    found: dict[str, int] = {}
    try:
        for code in objects.values():
            images.append(Image(code, nbytes))
            nbytes = images[-1].stop
        memory = np.frombuffer(mmap.mmap(-1, max(nbytes, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
        for image in images:
            found |= image.write(memory)
    except (StructError, LookupError, ValueError, OverflowError, StopIteration) as error:
        raise MalformedCode(f"no whole object file: {error}") from error
    if c_library().mprotect(memory.ctypes.data, len(memory), mmap.PROT_READ | mmap.PROT_EXEC):
        raise UnknownCode("the system makes no memory executable")
    if not found.keys() >= objects.keys():
        raise MalformedCode("an object file lacks its function")
    return memory, {name: found[name] for name in objects}


@cache
def c_library() -> ctypes.CDLL:
    """The C library, and what else this process was linked with."""
    found = ctypes.CDLL(None)
    found.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return found


def c_function(name: str) -> int:
    """The address of a C function."""
    try:
        return ctypes.cast(getattr(c_library(), name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise UnknownCode(f"there is no C function {name}") from None
