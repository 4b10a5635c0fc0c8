"""RISC-V of 64 bits with double precision (rv64gc), without its vector extension.

Source: The RISC-V Instruction Set Manual, volume I.
"""

from cgraph.kernels.isa.records import Architecture, CodeGeneration, Target

RISCV64_GC = Target("riscv64", "generic-rv64", "+m,+a,+f,+d,+c", 1, 28, True, "riscv")
RISCV64_BYTES = Target("riscv64-bytes", "generic-rv64", "+m,+a,+f,+d,+c", 4, 8, True, "riscv")
OBJECTS = CodeGeneration("riscv64-unknown-linux-gnu", "", relocation="pic", code_model="medium", abi="lp64d")
ARCHITECTURE = Architecture("riscv", (RISCV64_GC, RISCV64_BYTES), {}, OBJECTS)
