"""AArch64: NEON, whose vectors have 128 bits.

Sources: Arm Architecture Reference Manual for A-profile; LLVM's ``IntrinsicsAArch64.td``; ELF for the Arm 64-bit
Architecture.
"""

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.isa.records import Architecture, CodeGeneration, Host, Intrinsic, Patch, Target
from cgraph.record import replace

NEON = Target("neon", "generic", "+neon", 4, 32, True, "arm", converts_half=True)
DOT = Target("neon-dot", "generic", "+neon,+dotprod", 4, 32, True, "arm", dot="signed", converts_half=True)
I8MM = Target("neon-i8mm", "generic", "+neon,+dotprod,+i8mm", 4, 32, True, "arm", dot="mixed", converts_half=True)


def detect(host: Host) -> Target:
    """Return the widest target of a host."""
    widest = I8MM if host.has("dotprod", "i8mm") else DOT if host.has("dotprod") else NEON
    return replace(widest, features=f"{widest.features},+bf16", bf16="dot") if host.has("bf16") else widest


INSTRUCTIONS = {
    ("pause", 0): Intrinsic("llvm.aarch64.isb", constants=(("i4", 15, 0),)),
    ("mixed dot", 4): Intrinsic("llvm.aarch64.neon.usdot.v4i32.v16i8", "i4", ("i4", "u1", "u1")),
    ("signed dot", 4): Intrinsic("llvm.aarch64.neon.sdot.v4i32.v16i8", "i4", ("i4", "u1", "u1")),
    ("bf16 dot", 4): Intrinsic("llvm.aarch64.neon.bfdot.v4f32.v8bf16", "f4", ("f4", BFLOAT16.code, BFLOAT16.code)),
}

_CALL = Patch("distance", ((26, 0),), 2, is_call=True)
_PAGES = Patch("pages", ((2, 29), (19, 5)))
RELOCATIONS = {
    257: Patch("address"),  # ABS64
    261: Patch("distance", ((32, 0),)),  # PREL32
    275: _PAGES,  # ADR_PREL_PG_HI21
    277: Patch("offset", ((12, 10),)),  # ADD_ABS_LO12_NC
    282: _CALL,  # JUMP26
    283: _CALL,  # CALL26
    # LDST8, LDST16, LDST32, LDST64 and LDST128_ABS_LO12_NC
    **{number: Patch("offset", ((12, 10),), shift) for shift, number in enumerate((278, 284, 285, 286, 299))},
}
_STUB = bytes.fromhex("50000058 00021fd6")  # ldr x16, address; br x16

ARCHITECTURE = Architecture(
    "arm",
    (NEON, DOT, I8MM),
    INSTRUCTIONS,
    CodeGeneration("aarch64-unknown-linux-gnu", "", relocation="pic", code_model="small"),
    detect,
    needs={NEON.name: ("asimd",), DOT.name: ("asimd", "asimddp"), I8MM.name: ("asimd", "asimddp", "i8mm")},
    cpuinfo=("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
    feature_names={"asimddp": "dotprod", "i8mm": "i8mm", "bf16": "bf16"},
    elf=183,
    mach_o=0x0100000C,
    relocations=RELOCATIONS,
    stub=_STUB,
    code_model="small",
    clear_cache="__clear_cache",
    futex=98,
)
