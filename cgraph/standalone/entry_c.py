"""The entry as C: one line with a label for each kernel call, to read, place, time or parallelise the calls."""

from collections.abc import Iterator, Sequence

from cgraph.kernels.control import BEGIN, BETWEEN, SKIP
from cgraph.record import replace
from cgraph.standalone.header import Facts, comment, parameters
from cgraph.standalone.interface import Interface
from cgraph.standalone.memory import MemoryLayout
from cgraph.standalone.program import (
    Address,
    ExportProgram,
    ExportRow,
    Moving,
    OutputCopy,
    RowJump,
    Word,
    largest_arena,
)

WORDS = """#if UINTPTR_MAX > 0xffffffffu
typedef intptr_t word;
#define N(low, high) (word)(((uint64_t)(uint32_t)(high) << 32) | (uint32_t)(low))
#define A(x) (word)(x)
static inline word address(const void *x) { return (word)x; }
#else
typedef struct { intptr_t low; int32_t high; } word; /* kernels read 64 bits, little-endian */
#define N(low, high) {(int32_t)(low), (int32_t)(high)}
#define A(x) {(intptr_t)(x), 0}
static inline word address(const void *x) { word w; w.low = (intptr_t)x; w.high = 0; return w; }
#endif"""


def c_entry(program: ExportProgram, layout: MemoryLayout, facts: Facts) -> str:
    """Return the text of ``NAME.c``, which is compiled and linked with the object file of the kernels."""
    return c_entries([program], layout, facts)


def c_entries(programs: Sequence[ExportProgram], layout: MemoryLayout, facts: Facts) -> str:
    """Return the text of ``NAME.c`` for several runs, which share the memory."""
    runs = (line for x in programs for line in (*tables(x), *run(x, layout, facts)))
    return "\n".join((*definitions(programs, facts), *runs, *reset(programs[0], facts), ""))


def definitions(programs: Sequence[ExportProgram], facts: Facts) -> Iterator[str]:
    """Yield memory and kernels."""
    program = programs[0]
    name = program.interface.prefix
    yield f'#include "{name}.h"\n#include <string.h>\n\n{WORDS}\n'
    yield f"extern const uint8_t {name}_constants[];"
    yield f"static uint8_t arena[{max(largest_arena(programs), 1)}] __attribute__((aligned(64)));"
    yield "static int64_t stop_word, done_word;"
    for i, kernel in enumerate(program.kernels):
        yield f"void {name}_k{i}(const void *, int64_t, int64_t); /* {comment(kernel.family)} */"
    if facts.has_threads:
        yield (
            "static void each(cg_parallel parallel, void (*task)(const void *, int64_t, int64_t), const void *args, "
            "int64_t tasks, int64_t chunk) {\n"
            "  if (parallel && tasks > chunk) parallel(task, args, tasks, chunk);\n  else task(args, 0, tasks);\n}"
        )


def tables(program: ExportProgram) -> Iterator[str]:
    """Yield the arguments of each row."""
    for n, row in enumerate(program.rows):
        words = ", ".join(c_word(x, program.interface) for x in row.words) or "N(0, 0)"
        yield f"static const word a{n}{program.suffix}[] = {{{words}}};"


def c_word(word: Word, interface: Interface) -> str:
    """Return a table's word; zero for one that a run writes."""
    if isinstance(word, Moving):
        return "N(0, 0)"
    if isinstance(word, int):
        return f"N(0x{word & 0xFFFFFFFF:x}, 0x{word >> 32 & 0xFFFFFFFF:x})"
    return "N(0, 0)" if word.is_parameter else f"A({c_pointer(word, interface)})"


def is_late(word: Word) -> bool:
    """Return True for an address that is only known during a run."""
    return isinstance(word, Moving) or (isinstance(word, Address) and word.is_parameter)


def c_pointer(at: Address | Moving, interface: Interface) -> str:
    """Return a C expression for an address."""
    if isinstance(at, Moving):
        return f"{c_pointer(at.start, interface)} + round{at.loop} * {at.stride}"
    kind, _, label = at.symbol.partition(":")
    if kind in ("in", "out"):
        base = f"({'const ' if kind == 'in' else ''}uint8_t *){argument(interface, kind, label)}"
    elif kind == "state":
        base = f"(uint8_t *){interface.symbol(label)}"
    else:
        base = {"arena": "arena", "constants": interface.symbol("constants")}.get(kind, f"(uint8_t *)&{kind}_word")
    return f"{base} + {at.offset}"


def argument(interface: Interface, kind: str, name: str) -> str:
    """Return the name of a parameter in this file: by number, since a user's name may be that of a table or a local."""
    values = interface.inputs if kind == "in" else interface.outputs
    return f"{kind}{[x.name for x in values].index(name)}"


def arguments(interface: Interface) -> Interface:
    """Return the same interface with the parameters' names of this file."""
    inputs = tuple(replace(x, name=argument(interface, "in", x.name)) for x in interface.inputs)
    outputs = tuple(replace(x, name=argument(interface, "out", x.name)) for x in interface.outputs)
    return replace(interface, inputs=inputs, outputs=outputs)


def run(program: ExportProgram, layout: MemoryLayout, facts: Facts) -> Iterator[str]:
    interface = program.interface
    names = ", ".join(f"{argument(interface, 'in', x.name)} is {x.name}" for x in interface.inputs)
    names += "".join(f", {argument(interface, 'out', x.name)} is {x.name}" for x in interface.outputs)
    yield f"\n/* {names.removeprefix(', ')} */" if names else ""
    yield f"int {program.run_name}({parameters(arguments(interface), layout, facts.has_threads)}) {{"
    yield from (f"  int64_t round{n};" for n, row in enumerate(program.rows) if row.jump and row.jump.kind == BEGIN)
    yield from (copy_line(x, interface) for x in program.first_copies)
    ends = {row.jump.to for row in program.rows if row.jump}
    for n, row in enumerate(program.rows):
        if n in ends:
            yield f"row{n}:;"
        yield from (jump_lines(row.jump, interface) if row.jump else call_lines(n, row, program))
    if len(program.rows) in ends:
        yield f"row{len(program.rows)}:;"
    yield from (copy_line(x, interface) for x in program.last_copies)
    yield "  return 0;\n}"


def jump_lines(jump: RowJump, interface: Interface) -> Iterator[str]:
    """Yield a jump, or the beginning or the end of a loop's round."""
    if jump.kind == SKIP:
        assert not isinstance(jump.at, int)
        yield f"  if (*({c_pointer(jump.at, interface)}) != {jump.value}) goto row{jump.to};"
    elif jump.kind == BETWEEN:
        assert not isinstance(jump.at, int)
        count = f"*(const int64_t *)({c_pointer(jump.at, interface)})"
        yield f"  if ({count} <= INT64_C({jump.value}) || {count} > INT64_C({jump.high})) goto row{jump.to};"
    elif jump.kind == BEGIN:
        yield f"  round{jump.loop} = 0;\n  if (round{jump.loop} >= {jump.rounds}) goto row{jump.to};"
    else:
        yield f"  if (++round{jump.loop} < {jump.rounds}) goto row{jump.to};"


def copy_line(copy: OutputCopy, interface: Interface) -> str:
    place = argument(interface, "out", copy.output)
    return f"  memcpy({place}, {c_pointer(copy.source, interface)}, {copy.nbytes});"


def call_lines(n: int, row: ExportRow, program: ExportProgram) -> Iterator[str]:
    """Yield one kernel call; addresses that the caller passes are written into a copy of its arguments."""
    name, label = program.interface.prefix, comment(program.labels[row.label])
    late = [(i, x) for i, x in enumerate(row.words) if not isinstance(x, int) and is_late(x)]
    table = f"a{n}{program.suffix}"
    args = "w" if late else table
    if late:
        yield f"  {{ word w[{len(row.words)}];\n    memcpy(w, {table}, sizeof w);"
        yield from (f"    w[{i}] = address({c_pointer(x, program.interface)});" for i, x in late)
    call = f"each(parallel, {name}_k{row.kernel}, {args}, {row.tasks}, {row.chunk}); /* {label} */"
    yield f"    {call} }}" if late else f"  {call}"
    if row.can_stop:
        yield f"  if (stop_word) {{ stop_word = 0; return {1 + row.label}; }}"


def reset(program: ExportProgram, facts: Facts) -> Iterator[str]:
    if not facts.has_reset:
        return
    name = program.interface.prefix
    yield f"\nvoid {name}_reset(void) {{"
    for x in program.interface.state:
        yield f"  memcpy({name}_{x.name}, {name}_constants + {program.start_state[x.name]}, {x.nbytes});"
    yield "}"
