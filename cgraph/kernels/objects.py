"""A linker of object files into one image, without LLVM, whose library takes 47 MB and a tenth of a second to load.

It supports only what the emitters' code for this machine's Linux contains: read-only and executable ELF sections, with
addresses of and distances to one another, addresses of C functions, and calls of these. The `Architecture` names the
machine and its relocations. Sources: System V ABI, 4.1, with the supplement of each architecture; ELF for the Arm
64-bit Architecture.
"""

from collections.abc import Iterator, Mapping
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

import numpy as np

from cgraph.kernels.code_image import ADDRESS_BYTES, Image, UnknownCode
from cgraph.kernels.isa.architectures import architecture_of_machine, host_architecture
from cgraph.kernels.isa.records import Architecture, Patch
from cgraph.system.alignment import ALIGNMENT, aligned, round_up

START = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
HEADER, SECTION, SYMBOL, RELOCATION = map(Struct, ("<16s2HI3QI6H", "<2I4Q2I2Q", "<I2BH2Q", "<Q2Iq"))
RELOCATABLE = 1  # kind of a file
CONTENT, SYMBOLS, RELOCATIONS = 1, 2, 4  # kinds of sections
OTHER_RELOCATIONS = (9, 19, 0x40000014)  # REL, RELR, CREL: kinds of sections that LLVM writes on no 64-bit system
WRITTEN, IN_MEMORY, OF_THREADS = 1, 2, 0x400  # flags of a section
MACH_O = b"\xcf\xfa\xed\xfe"
OUTER, NOWHERE = -1, -2  # instead of a symbol's offset
UNWINDING = ".eh_frame"  # for debuggers and C++
PAGE, WORD = 4096, 4  # bytes of a page in relocations, and of an instruction


class MalformedCode(UnknownCode):
    """Bytes that are not an object file, or a truncated one."""


class ObjectSection(NamedTuple):
    """One entry of an object file's section table."""

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


class ObjectFile:
    """An object file of an architecture placed in an image, from offset `start` to `stop`."""

    def __init__(self, code: bytes, start: int, own: Architecture) -> None:
        if len(code) < HEADER.size:
            raise MalformedCode(f"an object file has at least {HEADER.size} bytes, this one {len(code)}")
        if not own.relocations or elf_machine(code) != own.elf:
            raise UnknownCode(f"not an ELF object file for {own.name}")
        self.code, self.stop, self.own = code, start, own
        header = HEADER.unpack_from(code)
        at, count, names = header[6], header[12], header[13]
        self.sections = [ObjectSection(*SECTION.unpack_from(code, at + i * SECTION.size)) for i in range(count)]
        self.places: dict[int, int] = {}
        for i, s in enumerate(self.sections):
            if s.flags & IN_MEMORY and s.nbytes and self.text(self.sections[names].start + s.name) != UNWINDING:
                if s.flags & (WRITTEN | OF_THREADS):
                    raise UnknownCode(f"section {i} is writable or thread-local, which kernels do not have")
                if s.kind != CONTENT or s.alignment > ALIGNMENT:
                    raise UnknownCode(f"section {i} has kind {s.kind} and alignment {s.alignment}")
                self.places[i] = aligned(self.stop)
                self.stop = self.places[i] + s.nbytes
        self.symbols, self.stubs = self.read_symbols(), {}
        for i, (_, to) in enumerate(self.symbols):
            if to == OUTER and own.stub:
                self.stubs[i] = round_up(self.stop, ADDRESS_BYTES)
                self.stop = self.stubs[i] + len(own.stub) + ADDRESS_BYTES

    def write(self, memory: np.ndarray) -> tuple[dict[str, int], list[tuple[int, int]], list[tuple[str, int, int]]]:
        """Copy the sections into `memory`; return the symbols and the inner and outer addresses, as in `Image`."""
        for i, at in self.places.items():
            s = self.sections[i]
            memory[at : at + s.nbytes] = np.frombuffer(self.code, np.uint8, s.nbytes, s.start)
        inner, outer = [], []
        for i, at in self.stubs.items():
            memory[at : at + len(self.own.stub)] = np.frombuffer(self.own.stub, np.uint8)
            outer.append((self.symbols[i][0], at + len(self.own.stub), 0))
        for s in self.sections:
            if s.kind in OTHER_RELOCATIONS and (s.info in self.places or not s.info):
                raise UnknownCode(f"relocations in a section of kind {s.kind}")
            if s.kind == RELOCATIONS and s.info in self.places:
                for at, kind, symbol, plus in self.rows(s, RELOCATION):
                    patch = self.own.relocations.get(kind)
                    if patch is None:
                        raise UnknownCode(f"a relocation of kind {kind}")
                    at, (name, to) = self.places[s.info] + at, self.symbols[symbol]
                    if at + (ADDRESS_BYTES if patch.value == "address" else WORD) > len(memory):
                        raise MalformedCode(
                            f"a relocation at byte {at} lies outside of the {len(memory)} bytes of the image"
                        )
                    if to == OUTER and patch.is_call and not plus:
                        to = self.stubs[symbol]
                    if patch.value == "address" and to == OUTER:
                        outer.append((name, at, plus))
                    elif to < 0:
                        raise UnknownCode(f"an address of {name}, which is not in memory")
                    elif patch.value == "address":
                        inner.append((at, to + plus))
                    else:
                        write_field(memory[at : at + WORD], patch, at, to + plus)
        return {name: to for name, to in self.symbols if to >= 0}, inner, outer

    def read_symbols(self) -> list[tuple[str, int]]:
        """Return each symbol's name and offset; OUTER for a C function, NOWHERE for a symbol that is not in memory."""
        table = next(s for s in self.sections if s.kind == SYMBOLS)
        names, symbols = self.sections[table.link].start, []
        for name_at, _, _, section, at, _ in self.rows(table, SYMBOL):
            name = self.text(names + name_at)
            elsewhere = OUTER if name and section == 0 else NOWHERE
            symbols.append((name, self.places[section] + at if section in self.places else elsewhere))
        return symbols

    def text(self, at: int) -> str:
        """Return the name at a place of a table of names."""
        return self.code[at : self.code.index(0, at)].decode()

    def rows(self, section: ObjectSection, kind: Struct) -> Iterator[tuple]:
        """Iterate over the rows of a section that is a table."""
        return kind.iter_unpack(self.code[section.start : section.start + section.nbytes])


def write_field(word: np.ndarray, patch: Patch, at: int, to: int) -> None:
    """Write into the word at offset `at` what a patch stores for offset `to`.

    Raises
        UnknownCode: the value does not fit
    """
    values = {"distance": to - at, "pages": to // PAGE - at // PAGE, "offset": to % PAGE}
    number, rest = divmod(values[patch.value], 1 << patch.shift)
    bits = sum(count for count, _ in patch.fields)
    least = 0 if patch.value == "offset" else -(1 << bits - 1)
    if rest or not least <= number < least + (1 << bits):
        raise UnknownCode(f"{patch.value} of {values[patch.value]} bytes or pages at byte {at}")
    whole = int.from_bytes(word.tobytes(), "little")
    for count, first in patch.fields:
        mask = (1 << count) - 1
        whole = whole & ~(mask << first) | (number & mask) << first
        number >>= count
    word[:] = np.frombuffer(whole.to_bytes(WORD, "little"), np.uint8)


def is_for(code: bytes, triple: str) -> bool:
    """Return True for a 64-bit ELF or Mach-O object file of the machine named first in an LLVM triple."""
    own = architecture_of_machine(triple)
    if code.startswith(MACH_O):
        return int.from_bytes(code[4:8], "little") == own.mach_o
    return own.elf is not None and elf_machine(code) == own.elf


def elf_machine(code: bytes) -> int | None:
    """Return the machine number of a 64-bit ELF object file, None for any other file."""
    if not code.startswith(START) or len(code) < HEADER.size:
        return None
    kind, machine = HEADER.unpack_from(code)[1:3]
    return machine if kind == RELOCATABLE else None


def link_objects(objects: Mapping[str, bytes], own: Architecture | None = None) -> Image:
    """Link object files into one image.

    Parameters
        objects: object files by the name of the function that each defines
        own: their architecture, None for this machine's
    Raises
        UnknownCode: the files need LLVM's linker
        MalformedCode: the files are damaged
    """
    files, nbytes = [], 0
    symbols: dict[str, int] = {}
    inner: list[tuple[int, int]] = []
    outer: list[tuple[str, int, int]] = []
    try:
        for code in objects.values():
            files.append(ObjectFile(code, nbytes, own or host_architecture()))
            nbytes = files[-1].stop
        memory = np.zeros(nbytes, np.uint8)
        for file in files:
            there, near, far = file.write(memory)
            symbols |= there
            inner += near
            outer += far
    except (StructError, LookupError, ValueError, OverflowError, StopIteration) as error:
        raise MalformedCode(f"the object file is damaged or truncated: {error}") from error
    if not symbols.keys() >= objects.keys():
        missing = sorted(objects.keys() - symbols.keys())
        raise MalformedCode(f"object files lack their functions: {', '.join(missing)}")
    places = np.array(inner, np.int64).reshape(-1, 2)
    return Image(memory, {name: symbols[name] for name in objects}, places, tuple(outer))
