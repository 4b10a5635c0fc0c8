"""Parser of PTX text as LLVM writes it: basic blocks of instructions, registers, the sizes of a kernel's arrays.

Source: NVIDIA, Parallel Thread Execution ISA 8.0.
"""

import re
import struct
from typing import Any

import numpy as np

from cgraph.record import Record
from cgraph.system.alignment import round_up

SHARED, LOCAL, PARAM = 1 << 32, 2 << 32, 3 << 32
"""Addresses of a kernel's own arrays; device memory is higher."""

BRANCHES = ("bra", "ret", "bar", "barrier", "trap", "exit")
LETTERS = {"b": "u", "u": "u", "s": "i", "f": "f"}
ARRAY = re.compile(r"\.(shared|local) \.align (\d+) \.b8\s+([\w$]+)\[(\d+)\];")
CONSTANTS = re.compile(r"\.global \.align \d+ \.b8 ([\w$]+)\[(\d+)\] = \{([^}]*)\};")
REGISTERS = re.compile(r"\.reg \.(pred|[bfu]\d+)\s+(%\w+?)(?:<\d+>)?;")
PARAMETER = re.compile(r"\.param(?: \.align \d+)? \.[a-z]\d+ (\w+)(?:\[(\d+)\])?")
LINE = re.compile(r"(?:(@!?%\w+)\s+)?([\w.:]+)\s*(.*?);$")
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*")


class Fault(Exception):
    """An error that a GPU would make, or an instruction that this simulator does not support."""


class Instruction(Record, eq=False):
    """One line of PTX.

    Fields
        guard: the predicate register before it, with ``@`` and perhaps ``!``; empty without one
        name, modifiers: ``add.rn.f32`` is ``add`` with ``rn`` and ``f32``
        operands: as in the text
        line: the text, for messages
    """

    guard: str
    name: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    line: str

    @property
    def kind(self) -> str:
        """The last modifier, usually the type."""
        return self.modifiers[-1] if self.modifiers else ""


class PtxKernel(Record, eq=False):
    """A parsed kernel.

    Fields
        threads: of a block
        blocks: basic blocks in order; the last instruction may be a branch, a barrier or a return
        labels: the number of the block after each label
        widths: bytes of a register, by its name without digits; 0 for predicates
        symbols: addresses of the kernel's parameters and arrays
        constants: bytes of the module's constant arrays, by name
        param_nbytes, shared_nbytes, local_nbytes: of the parameters, of a block, of a thread
    """

    symbol: str
    threads: int
    blocks: tuple[tuple[Instruction, ...], ...]
    labels: dict[str, int]
    widths: dict[str, int]
    symbols: dict[str, int]
    constants: dict[str, bytes]
    param_nbytes: int
    shared_nbytes: int
    local_nbytes: int

    def parameter_offset(self, name: str) -> int:
        """Return the bytes from the first parameter to the parameter `name`."""
        return self.symbols[name] - PARAM

    def width(self, register: str) -> int:
        return self.widths[register.rstrip("0123456789")]


def kernel_of(text: str, symbol: str) -> PtxKernel:
    """Return the kernel `symbol` of a module."""
    at = text.index(f".entry {symbol}(")
    start = text.index("{", at)
    head, body = text[at:start], text[start + 1 : text.index("\n}", start)]
    symbols, param_nbytes = parameters(head)
    arrays, sizes = own_arrays(text[:at] + body)
    blocks, labels = basic_blocks(body)
    widths = {name: 0 if kind == "pred" else int(kind[1:]) // 8 for kind, name in REGISTERS.findall(body)}
    constants = {name: initial(values, int(count)) for name, count, values in CONSTANTS.findall(text)}
    threads = int(re.search(r"\.reqntid (\d+)", head)[1])  # type: ignore[index]
    return PtxKernel(
        symbol,
        threads,
        blocks,
        labels,
        widths,
        symbols | arrays,
        constants,
        param_nbytes,
        sizes["shared"],
        sizes["local"],
    )


def parameters(head: str) -> tuple[dict[str, int], int]:
    """Return the address of each parameter, and the bytes of all."""
    symbols, nbytes = {}, 0
    for name, count in PARAMETER.findall(head):
        symbols[name] = PARAM + nbytes
        nbytes += round_up(int(count or 8), 8)
    return symbols, nbytes


def own_arrays(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the address of each array in shared and local memory, and the bytes of both."""
    symbols, sizes = {}, {"shared": 0, "local": 0}
    for space, align, name, count in ARRAY.findall(text):
        start = round_up(sizes[space], int(align))
        symbols[name] = (SHARED if space == "shared" else LOCAL) + start
        sizes[space] = start + int(count)
    return symbols, {space: round_up(nbytes, 16) for space, nbytes in sizes.items()}


def initial(values: str, nbytes: int) -> bytes:
    """Return the bytes of a constant array; bytes that the text omits are 0."""
    return bytes(map(int, values.split(","))).ljust(nbytes, b"\0")


def basic_blocks(body: str) -> tuple[tuple[tuple[Instruction, ...], ...], dict[str, int]]:
    """Return the basic blocks of a kernel, and the labels before them."""
    blocks: list[list[Instruction]] = [[]]
    labels: dict[str, int] = {}
    for raw in body.split("\n"):
        line = raw.split("//")[0].strip()
        if line.endswith(":"):
            if blocks[-1]:
                blocks.append([])
            labels[line[:-1]] = len(blocks) - 1
        elif line and line[0] not in "{}.":
            entry = instruction(line)
            blocks[-1].append(entry)
            if entry.name in BRANCHES:
                blocks.append([])
    return tuple(map(tuple, blocks)), labels


def instruction(line: str) -> Instruction:
    match = LINE.match(line)
    if match is None:
        raise Fault(f"a line that the simulator does not know: {line}")
    guard, op, rest = match.groups()
    name, *modifiers = op.split(".")
    operands = tuple(x.strip() for x in OPERAND.findall(rest))
    return Instruction(guard or "", name, tuple(modifiers), operands, line.replace("\t", " "))


def dtype_of(kind: str) -> np.dtype:
    """Return NumPy's dtype of a PTX type."""
    return np.dtype(bool) if kind == "pred" else np.dtype(f"{LETTERS[kind[0]]}{int(kind[1:]) // 8}")


def constant_of(text: str, dtype: np.dtype) -> Any:
    """Return a number in the text (floats are written by their bits) as a value of `dtype`."""
    if text[:2] in ("0f", "0d"):
        number = np.array(struct.unpack(">f" if text[1] == "f" else ">d", bytes.fromhex(text[2:]))[0])
        number = number.astype(np.float32 if text[1] == "f" else np.float64)
        return number[()] if dtype.kind == "f" else number.view(dtype)[()]
    value = int(text.rstrip("U"), 0)
    if dtype.kind == "b":
        return np.bool_(value)
    raw = np.array(value & (1 << 8 * dtype.itemsize) - 1, f"u{dtype.itemsize}")
    return raw.view(dtype)[()]


def parts_of(operand: str) -> list[str]:
    """Return the registers of an operand, which may be a vector in braces."""
    return [x.strip() for x in operand.strip("{}").split(",")]
