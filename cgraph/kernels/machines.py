"""The processors that code is exported for: rows of one table."""

from cgraph.kernels.isa.architectures import MACHINES, architecture, architecture_of, host_architecture
from cgraph.kernels.isa.records import CodeGeneration, Target
from cgraph.kernels.kernel import LINE
from cgraph.record import Record, replace

WORD = 8  # bytes
BYTES = "-bytes"  # the end of the name of a target for graphs with 8-bit kernels, which need vectors of four numbers
SYSTEMS = {
    "x86": {"windows": ("x86_64-pc-windows-msvc", "coff"), "macos": ("x86_64-apple-darwin", "mach-o")},
    "arm": {"macos": ("arm64-apple-darwin", "mach-o"), "android": ("aarch64-unknown-linux-android", "elf")},
}
"""Further systems by architecture: triple, and form of object files. Linux, or none, has the architecture's own."""


class Machine(Record):
    """A processor and a system.

    Fields
        name: as users select it
        target: for floats
        bytes_target: for graphs with 8-bit kernels; the same processor, perhaps with other vectors
        generation: settings of the code generator: system, addresses, object format
    """

    name: str
    target: Target
    bytes_target: Target
    generation: CodeGeneration

    @property
    def bits(self) -> int:
        """Bits of an address."""
        return self.generation.address_bits

    @property
    def is_linked(self) -> bool:
        """True if the result is a linked module."""
        return self.generation.form == "wasm"

    @property
    def suffix(self) -> str:
        """The end of an object file's name."""
        return "obj" if self.generation.form == "coff" else "o"

    @property
    def constant_alignment(self) -> int:
        """Bytes: the cache line of large processors; a number, where flash is scarce and loads need no more."""
        return WORD if self.generation.form == "arm-elf" else LINE

    def arena_section(self, prefix: str) -> str:
        """Return the section of the arena, which a linker script may place; empty for the system's own."""
        return f".bss.{prefix}_arena" if self.generation.form in ("elf", "arm-elf") else ""


def machines() -> dict[str, Machine]:
    """Return all rows by name: each architecture's targets, and those of further systems as ``avx2-windows``."""
    rows: dict[str, Machine] = {}
    for own in map(architecture, MACHINES):
        if own.objects is None:
            continue
        by_name = {x.name: freestanding(x) for x in own.targets}
        for name, target in by_name.items():
            if name.endswith(BYTES):
                continue
            row = Machine(name, target, by_name.get(f"{name}{BYTES}", target), own.objects)
            rows[name] = row
            for system, (triple, form) in SYSTEMS.get(own.name, {}).items():
                how = replace(own.objects, triple=triple, form=form)
                rows[f"{name}-{system}"] = replace(row, name=f"{name}-{system}", generation=how)
    return rows


def freestanding(target: Target) -> Target:
    """Return the target without a C library, whose mathematics has other bits elsewhere; this machine keeps its own."""
    return target if architecture_of(target) is host_architecture() else replace(target, has_libc=False)


def machine_named(name: str) -> Machine:
    """Return the row of a name.

    Raises
        ValueError: there is none
    """
    rows = machines()
    if name not in rows:
        raise ValueError(f"there is no machine {name!r:.60}. Use one of {', '.join(rows)}")
    return rows[name]
