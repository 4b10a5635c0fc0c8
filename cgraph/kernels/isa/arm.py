"""AArch64: NEON, whose vectors have 128 bits.

Sources: Arm Architecture Reference Manual for A-profile; LLVM's ``IntrinsicsAArch64.td``; ELF for the Arm 64-bit
Architecture.
"""

from cgraph.kernels.isa.records import Architecture, CodeGeneration, Host, Intrinsic, Target

NEON = Target("neon", "generic", "+neon", 4, 32, True, "arm", converts_half=True)
DOT = Target("neon-dot", "generic", "+neon,+dotprod", 4, 32, True, "arm", dot="signed", converts_half=True)
I8MM = Target("neon-i8mm", "generic", "+neon,+dotprod,+i8mm", 4, 32, True, "arm", dot="mixed", converts_half=True)


def detect(host: Host) -> Target:
    """Return the widest target of a host."""
    return I8MM if host.has("dotprod", "i8mm") else DOT if host.has("dotprod") else NEON


INSTRUCTIONS = {
    ("pause", 0): Intrinsic("llvm.aarch64.isb", constants=(("i4", 15, 0),)),
    ("mixed dot", 4): Intrinsic("llvm.aarch64.neon.usdot.v4i32.v16i8", "i4", ("i4", "u1", "u1")),
    ("signed dot", 4): Intrinsic("llvm.aarch64.neon.sdot.v4i32.v16i8", "i4", ("i4", "u1", "u1")),
}

ARCHITECTURE = Architecture(
    "arm",
    (NEON, DOT, I8MM),
    INSTRUCTIONS,
    CodeGeneration("aarch64-unknown-linux-gnu", "", relocation="pic", code_model="small"),
    detect,
    needs={NEON.name: ("asimd",), DOT.name: ("asimd", "asimddp"), I8MM.name: ("asimd", "asimddp", "i8mm")},
    cpuinfo=("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
    elf=183,
    mach_o=0x0100000C,
    futex=98,
)
