"""The C header of an exported function, and the example that calls it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from cgraph.record import Record, replace
from cgraph.standalone.interface import CValue, Interface
from cgraph.standalone.memory import MemoryLayout
from cgraph.standalone.names import c_names
from cgraph.standalone.program import ExportProgram, largest_arena
from cgraph.standalone.undefined import builtins_of
from cgraph.version import __version__

ABI = 1
LOCAL = ("i", "error", "room", "printf")  # names that the example uses itself
BUILTINS = "libgcc, or the builtins of LLVM's compiler-rt, has the arithmetic that this processor lacks:"
PARALLEL = (
    "typedef void (*cg_parallel)(void (*task)(const void *args, int64_t first, int64_t last), const void *args, "
    "int64_t tasks, int64_t chunk);"
)


class Facts(Record, eq=False):
    """The facts that a header states.

    Fields
        target, triple: the processor's name and LLVM's name of it
        digest: of the graph's code
        stack_nbytes: bound of the stack, without functions from outside; None if it is unknown
        externals: names of the external functions
        has_reset: the object file has a function that restores the state
        has_threads: the run has a parameter for a function that distributes tasks over threads
        stacks: bounds of the stack by the run's name, where there are several
    """

    target: str
    triple: str
    digest: str
    stack_nbytes: int | None
    externals: tuple[str, ...]
    has_reset: bool = False
    has_threads: bool = False
    stacks: Mapping[str, int | None] = field(default_factory=dict)


def parameters(interface: Interface, layout: MemoryLayout, has_threads: bool = False) -> str:
    """Return the C parameters of the run."""
    names = ["void *memory"] if layout.is_caller else []
    names += [declared(x, "const ") for x in interface.inputs]
    names += [declared(x) for x in interface.outputs]
    return ", ".join([*names, *(["cg_parallel parallel"] if has_threads else [])]) or "void"


def declared(x: CValue, const: str = "") -> str:
    return f"{const}{x.type} {x.name}[{x.count}]"


def header(program: ExportProgram, layout: MemoryLayout, facts: Facts) -> str:
    """Return the text of ``NAME.h``, for C99 and C++17."""
    return header_of_all([program], layout, facts)


def header_of_all(programs: Sequence[ExportProgram], layout: MemoryLayout, facts: Facts) -> str:
    """Return the text of ``NAME.h`` for several runs."""
    return "\n".join((*lines(programs, layout, facts), ""))


def lines(programs: Sequence[ExportProgram], layout: MemoryLayout, facts: Facts) -> Iterator[str]:
    program, interface = programs[0], programs[0].interface
    name, macro = interface.prefix, interface.prefix.upper()
    yield f"/* {name}: made by cgraph {__version__} for {facts.target} ({facts.triple}), graph {facts.digest}. */"
    yield f"#ifndef {macro}_H\n#define {macro}_H"
    yield "#include <stddef.h>\n#include <stdint.h>"
    yield '#ifdef __cplusplus\nextern "C" {\n#endif'
    yield f"#define {macro}_ABI {ABI}"
    plan = "the largest memory plan's" if len(programs) > 1 else "the memory plan's"
    yield f"#define {macro}_ARENA_BYTES {largest_arena(programs)} /* {plan} */"
    yield f"#define {macro}_CONSTANT_BYTES {len(program.constants)}"
    yield f"#define {macro}_STATE_BYTES {sum(x.nbytes for x in interface.state)}"
    if facts.stack_nbytes is not None:
        yield f"#define {macro}_STACK_BYTES {facts.stack_nbytes} /* without functions from outside */"
    if layout.is_caller:
        yield f"#define {macro}_MEMORY_BYTES {layout.nbytes}"
    for x in programs:
        yield from sizes_of_run(x, facts)
    yield f"/* From outside: {', '.join(facts.externals) or 'nothing'}. */"
    builtins = builtins_of(facts.externals)
    if builtins:
        yield f"/* {BUILTINS} {', '.join(builtins)}. */"
    if facts.has_threads:
        yield f"#ifndef CG_PARALLEL\n#define CG_PARALLEL\n{PARALLEL}\n#endif"
    yield from functions(programs, layout, facts)
    yield "#ifdef __cplusplus\n}\n#endif\n#endif"


def sizes_of_run(program: ExportProgram, facts: Facts) -> Iterator[str]:
    """Yield the bytes of inputs and outputs; for one of several runs also of its plan and its stack."""
    if program.suffix:
        yield f"#define {program.macro}_ARENA_BYTES {program.arena_nbytes}"
        stack = facts.stacks.get(program.run_name)
        if stack is not None:
            yield f"#define {program.macro}_STACK_BYTES {stack}"
    for kind, values in (("INPUT", program.interface.inputs), ("OUTPUT", program.interface.outputs)):
        for x in values:
            yield f"#define {program.macro}_{kind}_{x.name.upper()}_BYTES {x.nbytes} /* {x.spec} */"


def functions(programs: Sequence[ExportProgram], layout: MemoryLayout, facts: Facts) -> Iterator[str]:
    """Yield declarations of the functions and the state."""
    interface = programs[0].interface
    name = interface.prefix
    stops = errors_of(programs)
    yield "/* Returns 0" + (f", or an error that {name}_error describes." if stops else ".")
    if len(programs) > 1:
        yield "   All runs use one arena and one state: one run at a time."
    if facts.has_threads:
        yield "   parallel calls task for ranges that cover 0 to tasks, in any order and on any threads; NULL is none."
    yield "*/"
    for program in programs:
        yield f"int {program.run_name}({parameters(program.interface, layout, facts.has_threads)});"
    yield from error_text(name, stops)
    if layout.is_caller:
        yield "/* Prepares MEMORY_BYTES at a multiple of 64, with the state as exported. Returns 1 if they are not. */"
        yield f"int {name}_begin(void *memory);"
        for x in interface.state:
            start = layout.start_of(f"state:{x.name}")
            yield f"#define {name.upper()}_STATE_{x.name.upper()}_AT {start} /* {x.spec} */"
        return
    yield from (
        f"extern {declared(CValue(f'{name}_{x.name}', x.spec, x.source))}; /* {x.spec} */" for x in interface.state
    )
    if facts.has_reset:
        yield f"void {name}_reset(void); /* the state as exported */"


def errors_of(programs: Sequence[ExportProgram]) -> dict[int, str]:
    """Return what runs may return: descriptions by number."""
    return dict(sorted(item for program in programs for item in program.errors.items()))


def comment(text: str) -> str:
    """Return a text that cannot end a C comment."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\n", " ")


def error_text(name: str, errors: dict[int, str]) -> Iterator[str]:
    """Yield a C function that describes each error. It takes no bytes where nothing calls it."""
    if not errors:
        return
    yield "/* Describes an error: the step whose index is outside its axis, with its line. */"
    yield f"static inline const char *{name}_error(int error) {{\n  switch (error) {{"
    yield from (f"    case {number}: return {c_string(text)};" for number, text in errors.items())
    yield '    default: return error ? "an unknown error" : "no error";\n  }\n}'


def c_string(text: str) -> str:
    """Return a text as a C literal in ASCII, without trigraphs."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"?\\' else f"\\{b:03o}" for b in text.encode()) + '"'


def example_values(interface: Interface) -> tuple[tuple[CValue, ...], tuple[CValue, ...]]:
    """Return inputs and outputs with names that the example does not use itself."""
    values = (*interface.inputs, *interface.outputs)
    names = c_names((f"{x.name}_" if x.name in LOCAL else x.name for x in values), LOCAL)
    renamed = tuple(replace(x, name=name) for x, name in zip(values, names))
    return renamed[: len(interface.inputs)], renamed[len(interface.inputs) :]


def example(program: ExportProgram, layout: MemoryLayout, has_threads: bool = False) -> str:
    """Return a program that fills the inputs, runs once and prints the first numbers of each output."""
    return example_of_all([program], layout, has_threads)


def example_of_all(programs: Sequence[ExportProgram], layout: MemoryLayout, has_threads: bool) -> str:
    """Return a program that fills the inputs of each run, runs it once and prints the first numbers of each output."""
    name = programs[0].interface.prefix
    text = [f'#include "{name}.h"', "#include <stdio.h>", ""]
    if layout.is_caller:
        room = f"static union {{ long long aligned; uint8_t bytes[{name.upper()}_MEMORY_BYTES + 63]; }} room;"
        memory = [
            "  void *memory = room.bytes + (64 - (uintptr_t)room.bytes % 64) % 64;",
            f"  if ({name}_begin(memory)) return 1;",
        ]
    if len(programs) > 1:
        bodies = [f"run{x.suffix}" for x in programs]
        text += [room] if layout.is_caller else []
        for body, program in zip(bodies, programs):
            takes = "void *memory" if layout.is_caller else "void"
            text += [f"static int {body}({takes}) {{", *(f"  static {x}" for x in buffers(program))]
            text += [*example_run(program, layout, has_threads), "  return 0;", "}", ""]
        text += ["int main(void) {", *(memory if layout.is_caller else []), "  int error = 0;"]
        passes = "memory" if layout.is_caller else ""
        text += [f"  if (!error) error = {body}({passes});" for body in bodies]
        return "\n".join([*text, "  return error;", "}", ""])
    text += [f"static {x}" for x in buffers(programs[0])]
    text += [room] if layout.is_caller else []
    text += ["", "int main(void) {", *(memory if layout.is_caller else [])]
    return "\n".join([*text, *example_run(programs[0], layout, has_threads), "  return 0;", "}", ""])


def buffers(program: ExportProgram) -> Iterator[str]:
    """Yield the arrays of inputs and outputs."""
    inputs, outputs = example_values(program.interface)
    yield from (f"{declared(x)};" for x in (*inputs, *outputs))


def example_run(program: ExportProgram, layout: MemoryLayout, has_threads: bool) -> Iterator[str]:
    """Yield the lines that fill the inputs, call the run and print."""
    inputs, outputs = example_values(program.interface)
    arguments = [*(["memory"] if layout.is_caller else []), *(x.name for x in (*inputs, *outputs))]
    arguments += ["NULL"] if has_threads else []
    for x in inputs:
        yield f"  for (size_t i = 0; i < {x.count}; i++) {x.name}[i] = ({x.type})(i % 7);"
    yield f"  int error = {program.run_name}({', '.join(arguments)});"
    if program.errors:
        says = f"{program.interface.prefix}_error(error)"
        yield f'  if (error) {{ printf("%s: an index is outside its axis\\n", {says}); return error; }}'
    else:
        yield "  if (error) return error;"
    for x in outputs:
        shown = min(x.count, 8)
        yield f'  for (size_t i = 0; i < {shown}; i++) printf("{x.name}[%d] = %g\\n", (int)i, (double){x.name}[i]);'
