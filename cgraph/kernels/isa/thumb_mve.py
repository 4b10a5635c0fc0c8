"""Cortex-M55: ARM's micro-controllers with vectors (MVE). Code is exported for them, never run by Python.

Sources: Arm v8-M Architecture Reference Manual, with v8.1-M; LLVM's ``ARMProcessors.td``.
"""

from cgraph.kernels.isa.records import Architecture, CodeGeneration, Target

CORTEX_M55 = Target("cortex-m55", "cortex-m55", "", 4, 8, True, "thumb_mve", block_columns=64)

ARCHITECTURE = Architecture(
    "thumb_mve",
    (CORTEX_M55,),
    {},
    CodeGeneration(
        "thumbv8.1m.main-none-eabihf", "", relocation="static", code_model="small", address_bits=32, form="arm-elf"
    ),
)
