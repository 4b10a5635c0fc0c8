"""Object files that LLVM writes: kernels, tables, memory and entry in one file.

Constants and state are copied into the finished file, because LLVM takes minutes to parse millions of numbers as text,
and because it would optimise placeholder zeros.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import Any

import llvmlite.binding as llvm

from cgraph.kernels.llvm.compile import emit_kernel, make_internal, optimise
from cgraph.kernels.signature import WordTable
from cgraph.kernels.target import Target
from cgraph.record import Record
from cgraph.standalone.entry import llvm_bytes
from cgraph.standalone.memory import ALIGNMENT
from cgraph.standalone.program import ExportProgram
from cgraph.standalone.undefined import undefined_names

DEFINITION = re.compile(r"^(define .*) \{$", re.MULTILINE)
SMALL = 4096  # bytes; less is written as text


class ExportObject(Record, eq=False):
    """A finished object file.

    Fields
        raw: its bytes
        externals: names of the external functions that it needs, those that LLVM adds included
        assembly: text of the same code
        calls: the functions that each function calls
    """

    raw: bytes
    externals: tuple[str, ...]
    assembly: str
    calls: Mapping[str, frozenset[str]]


class Blob(Record, eq=False):
    """Bytes of a global variable. In LLVM's text, a marker stands for large ones.

    The code generator must not read the marker: it would fold a short copy of it into numbers.

    Fields
        symbol: its name
        raw: its bytes, at least one
        kind: ``constant`` or ``global``
    """

    symbol: str
    raw: bytes
    kind: str = "constant"

    @property
    def marker(self) -> bytes:
        return sha256(b"cgraph " + self.symbol.encode()).digest()

    @property
    def definition(self) -> str:
        n, mark = len(self.raw), len(self.marker)
        if n < SMALL:
            return f"@{self.symbol} = {self.kind} [{n} x i8] {llvm_bytes(self.raw)}, align {ALIGNMENT}"
        types = f"<{{ [{mark} x i8], [{n - mark - 1} x i8], i8 }}>"
        values = f"[{mark} x i8] {llvm_bytes(self.marker)}, [{n - mark - 1} x i8] zeroinitializer, i8 1"
        return f"@{self.symbol} = externally_initialized {self.kind} {types} <{{ {values} }}>, align {ALIGNMENT}"

    def fill(self, file: bytes) -> bytes:
        """Return the object file with the marker replaced by these bytes."""
        if len(self.raw) < SMALL:
            return file
        at = file.index(self.marker)
        if file.count(self.marker) != 1 or file[at + len(self.raw) - 1] != 1:
            raise RuntimeError(f"{self.symbol} is not in one piece in the object file")
        return file[:at] + self.raw + file[at + len(self.raw) :]


def blobs_of(program: ExportProgram, has_state: bool) -> list[Blob]:
    """Return the constants and, if `has_state`, the state."""
    prefix = program.interface.prefix
    blobs = [Blob(f"{prefix}_constants", program.constants or b"\0")]
    if has_state:
        blobs += [Blob(f"{prefix}_{name}", raw or b"\0", "global") for name, raw in program.state.items()]
    return blobs


def object_file(
    program: ExportProgram,
    entry: str,
    machine: Any,
    target: Target,
    form: str,
    has_state: bool,
    tables: Sequence[WordTable | None],
) -> ExportObject:
    """Return the object file of kernels, constants and an entry.

    Parameters
        entry: LLVM text; empty where C code makes the calls
        machine: LLVM's code generator for object files of the target
        form: ``shared`` keeps kernels and tables apart; ``whole`` optimises everything together; ``small`` does so for
            size
        has_state: the state is static memory in the file
        tables: how the entry stores the arguments of each kernel; empty for words of 64 bits
    """
    main = module_of(entry, machine)
    own = set()
    for symbol, module in kernel_modules(program, machine, target, tables):
        main.link_in(module)
        own.add(symbol)
    if entry:
        for function in main.functions:
            if function.name in own:
                function.linkage = "internal"
                if form == "small":
                    function.add_function_attribute("minsize")
                    function.add_function_attribute("optsize")
    main.verify()
    if entry and form != "shared":
        optimise(main, machine, vectors=False)
    blobs = blobs_of(program, has_state)
    main.link_in(module_of("\n".join(blob.definition for blob in blobs), machine))
    raw = machine.emit_object(main)
    for blob in blobs:
        raw = blob.fill(raw)
    return ExportObject(raw, undefined_names(raw), assembly_of(main, machine), calls_of(main))


def assembly_of(module: Any, machine: Any) -> str:
    """Return the module's assembly with unwind directives, which the object file does not contain."""
    text = DEFINITION.sub(r"\1 uwtable {", str(module))
    return machine.emit_assembly(module_of(text, machine))


def module_of(text: str, machine: Any) -> Any:
    """Return LLVM's module of a text, for a machine."""
    module = llvm.parse_assembly(text)
    module.data_layout, module.triple = str(machine.target_data), machine.triple
    return module


def kernel_modules(
    program: ExportProgram, machine: Any, target: Target, tables: Sequence[WordTable | None]
) -> Iterator[tuple[str, Any]]:
    """Yield each kernel's symbol and its optimised module."""
    for i, (kernel, table) in enumerate(zip_longest(program.kernels, tables)):
        symbol = f"{program.interface.prefix}_k{i}"
        code = emit_kernel(kernel, symbol, target, table)
        module = module_of(code.text, machine)
        for text in code.linked.values():
            module.link_in(module_of(text, machine))
        if code.linked:
            make_internal(module, symbol)
        module.verify()
        if not code.is_final:
            optimise(module, machine, vectors=False)
        yield symbol, module


CALLEE = re.compile(r"call [^@]*@\"?([\w.$]+)")


def calls_of(module: Any) -> dict[str, frozenset[str]]:
    """Return the functions that each function of a module calls."""
    calls = {}
    for function in module.functions:
        text = (str(i) for block in function.blocks for i in block.instructions if i.opcode == "call")
        calls[function.name] = frozenset(m[1] for m in map(CALLEE.search, text) if m)
    return calls
