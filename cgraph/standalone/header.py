"""The C header of an exported function, and the example that calls it."""

from collections.abc import Iterator

from cgraph.record import Record, replace
from cgraph.standalone.interface import CValue, Interface
from cgraph.standalone.memory import MemoryLayout
from cgraph.standalone.names import c_names
from cgraph.standalone.program import ExportProgram
from cgraph.version import __version__

ABI = 1
LOCAL = ("i", "error", "room", "printf")  # names that the example uses itself
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
    """

    target: str
    triple: str
    digest: str
    stack_nbytes: int | None
    externals: tuple[str, ...]
    has_reset: bool = False
    has_threads: bool = False


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
    return "\n".join((*lines(program, layout, facts), ""))


def lines(program: ExportProgram, layout: MemoryLayout, facts: Facts) -> Iterator[str]:
    interface = program.interface
    name, macro = interface.prefix, interface.prefix.upper()
    yield f"/* {name}: made by cgraph {__version__} for {facts.target} ({facts.triple}), graph {facts.digest}. */"
    yield f"#ifndef {macro}_H\n#define {macro}_H"
    yield "#include <stddef.h>\n#include <stdint.h>"
    yield '#ifdef __cplusplus\nextern "C" {\n#endif'
    yield f"#define {macro}_ABI {ABI}"
    yield f"#define {macro}_ARENA_BYTES {program.arena_nbytes} /* the memory plan's */"
    yield f"#define {macro}_CONSTANT_BYTES {len(program.constants)}"
    yield f"#define {macro}_STATE_BYTES {sum(x.nbytes for x in interface.state)}"
    if facts.stack_nbytes is not None:
        yield f"#define {macro}_STACK_BYTES {facts.stack_nbytes} /* without functions from outside */"
    if layout.is_caller:
        yield f"#define {macro}_MEMORY_BYTES {layout.nbytes}"
    for kind, values in (("INPUT", interface.inputs), ("OUTPUT", interface.outputs)):
        for x in values:
            yield f"#define {macro}_{kind}_{x.name.upper()}_BYTES {x.nbytes} /* {x.spec} */"
    outside = ", ".join(facts.externals) or "nothing"
    yield f"/* From outside: {outside}. */"
    if facts.has_threads:
        yield f"#ifndef CG_PARALLEL\n#define CG_PARALLEL\n{PARALLEL}\n#endif"
    yield from functions(program, layout, facts)
    yield "#ifdef __cplusplus\n}\n#endif\n#endif"


def functions(program: ExportProgram, layout: MemoryLayout, facts: Facts) -> Iterator[str]:
    """Yield declarations of the functions and the state."""
    interface = program.interface
    name = interface.prefix
    stops = program.errors
    yield "/* Returns 0" + (f", or an error that {name}_error describes." if stops else ".")
    if facts.has_threads:
        yield "   parallel calls task for ranges that cover 0 to tasks, in any order and on any threads; NULL is none."
    yield "*/"
    yield f"int {name}_run({parameters(interface, layout, facts.has_threads)});"
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
    interface = program.interface
    name, macro = interface.prefix, interface.prefix.upper()
    inputs, outputs = example_values(interface)
    arguments = [*(["memory"] if layout.is_caller else []), *(x.name for x in (*inputs, *outputs))]
    arguments += ["NULL"] if has_threads else []
    text = [f'#include "{name}.h"', "#include <stdio.h>", ""]
    text += [f"static {declared(x)};" for x in (*inputs, *outputs)]
    if layout.is_caller:
        text.append(f"static union {{ long long aligned; uint8_t bytes[{macro}_MEMORY_BYTES + 63]; }} room;")
    text += ["", "int main(void) {"]
    if layout.is_caller:
        text.append("  void *memory = room.bytes + (64 - (uintptr_t)room.bytes % 64) % 64;")
        text.append(f"  if ({name}_begin(memory)) return 1;")
    for x in inputs:
        text.append(f"  for (size_t i = 0; i < {x.count}; i++) {x.name}[i] = ({x.type})(i % 7);")
    text.append(f"  int error = {name}_run({', '.join(arguments)});")
    if program.errors:
        text.append(
            f'  if (error) {{ printf("%s: an index is outside its axis\\n", {name}_error(error)); return error; }}'
        )
    else:
        text.append("  if (error) return error;")
    for x in outputs:
        shown = min(x.count, 8)
        text.append(
            f'  for (size_t i = 0; i < {shown}; i++) printf("{x.name}[%d] = %g\\n", (int)i, (double){x.name}[i]);'
        )
    return "\n".join([*text, "  return 0;", "}", ""])
