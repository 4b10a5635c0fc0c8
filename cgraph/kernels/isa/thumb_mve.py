"""Cortex-M55: ARM's micro-controllers with vectors (MVE). Code is exported for them, never run by Python.

Sources: Arm v8-M Architecture Reference Manual, with v8.1-M; LLVM's ``ARMProcessors.td``.
"""

from cgraph.kernels.isa.records import Architecture, CodeGeneration, Intrinsic, Target

CORTEX_M55 = Target("cortex-m55", "cortex-m55", "", 4, 8, True, "thumb_mve", dot="across", block_columns=64)

_NUMBER = ("i4", 0, 0)
INSTRUCTIONS = {
    # of bytes with signs; products are added, not subtracted, and of bytes at equal places
    ("bytes dot", 0): Intrinsic(
        "llvm.arm.mve.vmldava.v16i8", "i4", ("i4", "u1", "u1"), (_NUMBER, _NUMBER, _NUMBER), constants_first=True
    ),
    ("load words", 4): Intrinsic("llvm.arm.mve.vldr.gather.base.v4i32.v4i32", "i4", ("i4",), (_NUMBER,)),
    ("doubled product", 4): Intrinsic("llvm.arm.mve.vqrdmulh.v4i32", "i4", ("i4", "i4")),
}

ARCHITECTURE = Architecture(
    "thumb_mve",
    (CORTEX_M55,),
    INSTRUCTIONS,
    CodeGeneration(
        "thumbv8.1m.main-unknown-none-gnueabihf",
        "",
        relocation="static",
        code_model="small",
        address_bits=32,
        form="arm-elf",
    ),
)
