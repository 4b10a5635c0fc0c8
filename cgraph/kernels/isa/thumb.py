"""Cortex-M4 and M7: ARM's micro-controllers. Code is exported for them, never run by Python.

Sources: Arm v7-M Architecture Reference Manual; LLVM's ``ARMProcessors.td``.
"""

from cgraph.kernels.isa.records import Architecture, CodeGeneration, Intrinsic, Target

FEW = 64  # columns of a block: stacks are small
CORTEX_M4 = Target("cortex-m4", "cortex-m4", "", 1, 32, True, "thumb", block_columns=FEW, rounds=False)
CORTEX_M4_BYTES = Target(
    "cortex-m4-bytes", "cortex-m4", "", 4, 4, True, "thumb", dot="halves", block_columns=FEW, rounds=False
)
CORTEX_M7 = Target("cortex-m7", "cortex-m7", "", 1, 32, True, "thumb", block_columns=FEW)
CORTEX_M7_BYTES = Target("cortex-m7-bytes", "cortex-m7", "", 4, 4, True, "thumb", dot="halves", block_columns=FEW)

INSTRUCTIONS = {
    ("unsigned bytes", 0): Intrinsic("llvm.arm.uxtb16", "i4", ("i4",)),
    ("signed bytes", 0): Intrinsic("llvm.arm.sxtb16", "i4", ("i4",)),
    ("halves dot", 0): Intrinsic("llvm.arm.smlad", "i4", ("i4", "i4", "i4")),
    ("low halves", 0): Intrinsic("llvm.arm.smlabb", "i4", ("i4", "i4", "i4")),
    ("low by high", 0): Intrinsic("llvm.arm.smlabt", "i4", ("i4", "i4", "i4")),
    ("high by low", 0): Intrinsic("llvm.arm.smlatb", "i4", ("i4", "i4", "i4")),
    ("saturated byte", 0): Intrinsic("llvm.arm.usat", "i4", ("i4",), (("i4", 8, 0),)),
    ("high halves", 0): Intrinsic("llvm.arm.smlatt", "i4", ("i4", "i4", "i4")),
}

ARCHITECTURE = Architecture(
    "thumb",
    (CORTEX_M4, CORTEX_M7, CORTEX_M4_BYTES, CORTEX_M7_BYTES),
    INSTRUCTIONS,
    CodeGeneration(
        "thumbv7em-unknown-none-gnueabihf", "", relocation="static", code_model="small", address_bits=32, form="arm-elf"
    ),
)
