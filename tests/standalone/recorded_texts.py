"""Headers, examples, entries, manifests and loaders of programs that are written by hand, with every kind of row.

``python -m tests.standalone.recorded_texts`` writes `recorded_texts.txt` anew. Read its difference: each line that
changed is a line of C, LLVM or JSON in an exported folder.
"""

import json
from collections.abc import Callable
from pathlib import Path

from cgraph.ir.spec import Spec, dtype_of
from cgraph.kernels.control import BEGIN, BETWEEN, REPEAT, SKIP
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.signature import WordTable
from cgraph.record import replace
from cgraph.standalone.entry import EntryWriter, entry_text
from cgraph.standalone.entry_c import c_entries
from cgraph.standalone.export import Exported
from cgraph.standalone.files import manifest
from cgraph.standalone.header import Facts, example_of_all, header_of_all
from cgraph.standalone.interface import CValue, Interface
from cgraph.standalone.memory import MemoryLayout, caller_layout, static_layout
from cgraph.standalone.program import Address, ExportProgram, ExportRow, Moving, OutputCopy, RowJump, largest_arena
from cgraph.standalone.wasm import LOADER, loader
from cgraph.version import __version__
from tests.support.recorded_texts import write_sections

RECORD = Path(__file__).with_name("recorded_texts.txt")


def value(name: str, dtype: str, *shape: int) -> CValue:
    return CValue(name, Spec(shape, dtype_of(dtype)), None)


INTERFACE = Interface(
    "net",
    (value("image", "float32", 2, 3), value("n", "int64"), value("z", "complex64", 5), value("error", "uint8", 0)),
    (value("scores", "float16", 9), value("i", "float64"), value("kept", "bool", 4)),
    (value("mean", "float32", 7), value("count", "int32")),
)
SMALLER = replace(INTERFACE, inputs=INTERFACE.inputs[:1], outputs=(value("scores", "float16", 3),))
LOOP = Moving(Moving(Address("arena", 8), 1, 16), 3, -4)
ROWS = (
    ExportRow(0, (7, -1 << 40, Address("in:image", 4), Address("arena", 64), Address("state:mean", 8)), 3, 2, 0, False),
    ExportRow(-1, (), 0, 0, 1, False, RowJump(BEGIN, 8, 1, 5)),
    ExportRow(1, (Address("constants", 128), Address("out:i", 0), Address("stop", 0), 2), 11, 4, 2, True),
    ExportRow(-1, (), 0, 0, 1, False, RowJump(BEGIN, 7, 3, 2)),
    ExportRow(0, (7, 1 << 33, LOOP, Moving(Address("in:z", 0), 3, 40), 6), 1, 1, 0, False),
    ExportRow(-1, (), 0, 0, 1, False, RowJump(SKIP, 6, at=Address("state:count", 3), value=1)),
    ExportRow(-1, (), 0, 0, 1, False, RowJump(REPEAT, 4, 3, 2)),
    ExportRow(-1, (), 0, 0, 1, False, RowJump(REPEAT, 2, 1, 5)),
    ExportRow(-1, (), 0, 0, 3, False, RowJump(BETWEEN, 10, at=Address("in:n", 0), value=2, high=30)),
    ExportRow(1, (Address("constants", 8), Address("arena", 16), Address("stop", 0), -2), 13, 13, 4, True),
)
SHORT = (
    ExportRow(1, (Address("constants", 16), Address("arena", 24), 3, 5), 2, 1, 2, False),
    ExportRow(-1, (), 0, 0, 1, False, RowJump(SKIP, 3, at=Address("arena", 1))),
    ExportRow(0, (7, 8, Address("in:image", 0), Address("arena", 0), Address("state:count", 0)), 1, 1, 5, False),
)
LABELS = ("conv at a.py:1", "loop", "take /* at */ a.py:2", "cond", 'take "x" at a.py:3', "update edges")
ONE = ExportProgram(
    INTERFACE, (Kernel("conv.direct"), Kernel("take.rows")), ROWS, (OutputCopy("kept", Address("state:mean", 20), 4),),
    (OutputCopy("i", Address("arena", 40), 8), OutputCopy("scores", Address("in:z", 2), 18)), LABELS, 1000, bytes(300),
    {"mean": bytes(28), "count": bytes(4)}, {"mean": 192, "count": 256},
)  # fmt: skip
SEVERAL = (
    replace(ONE, interface=SMALLER, rows=SHORT, first_copies=(), last_copies=(), arena_nbytes=400, suffix="_2_3"),
    replace(ONE, suffix="_16_3"),
)
FACTS = Facts("neon", "aarch64-linux", "d1g35t", 96, ("__aeabi_fadd", "expf", "memcpy"))
STACKS = {"net_run_2_3": 48, "net_run_16_3": None}
THREADED = replace(FACTS, has_reset=True, has_threads=True, stacks=STACKS, stack_nbytes=None, externals=())
CALLER = caller_layout(INTERFACE, largest_arena(SEVERAL))
TABLES = (WordTable({0: 7}, {1: 0, 2: 8, 3: 16, 4: 24}, 8), WordTable({}, {0: 0, 1: 4}, 4))


def manifest_text(programs: tuple[ExportProgram, ...], layout: MemoryLayout, facts: Facts) -> str:
    return json.dumps(manifest(programs, layout, facts, b"object"), indent=1)


def entry(*programs: ExportProgram, layout: MemoryLayout, bits: int, **options: object) -> str:
    return entry_text([EntryWriter(x, layout, bits, **options) for x in programs])  # type: ignore[arg-type]


def loader_text(*programs: ExportProgram) -> str:
    """Return the lines that differ between loaders."""
    fixed = set(LOADER.splitlines())
    return "\n".join(line for line in loader(programs).splitlines() if line not in fixed)


EXPORTED = Exported("out/net", "neon", 2048, 28, 300, 77, 96, ("expf", "memcpy"))
TEXTS: dict[str, Callable[[], str]] = {
    "header": lambda: header_of_all([ONE], static_layout(), replace(FACTS, has_reset=True)),
    "header for memory of the caller": lambda: header_of_all([ONE], CALLER, FACTS),
    "header of several runs": lambda: header_of_all(SEVERAL, static_layout(), THREADED),
    "example": lambda: example_of_all([ONE], static_layout(), True),
    "example for memory of the caller": lambda: example_of_all([ONE], CALLER, False),
    "example of several runs": lambda: example_of_all(SEVERAL, CALLER, False),
    "example of several runs with threads": lambda: example_of_all(SEVERAL, static_layout(), True),
    "entry as C": lambda: c_entries([ONE], static_layout(), replace(FACTS, has_threads=True)),
    "entry of several runs as C": lambda: c_entries(SEVERAL, static_layout(), THREADED),
    "entry": lambda: entry(ONE, layout=static_layout(), bits=64, section=".fast", has_reset=True),
    "entry for memory of the caller": lambda: entry(ONE, layout=CALLER, bits=64),
    "entry of several runs": lambda: entry(*SEVERAL, layout=static_layout(), bits=32, word_tables=TABLES),
    "manifest": lambda: manifest_text((ONE,), CALLER, FACTS),
    "manifest of several runs": lambda: manifest_text(SEVERAL, static_layout(), THREADED),
    "loader": lambda: loader_text(ONE),
    "loader of several runs": lambda: loader_text(*SEVERAL),
    "sizes": lambda: f"{EXPORTED}\n{replace(EXPORTED, stack_nbytes=None, externals=())}",
}


def text_of(name: str) -> str:
    """Return a text without the version of cgraph."""
    return TEXTS[name]().replace(__version__, "VERSION").rstrip("\n")


if __name__ == "__main__":
    write_sections(RECORD, {name: text_of(name) for name in TEXTS})
