"""LLVM's code generator for object files: addresses as a linker places them."""

from typing import Any

import llvmlite.binding as llvm

from cgraph.kernels.isa.records import CodeGeneration, Target


def object_machine(target: Target, how: CodeGeneration) -> Any:
    """Return the code generator of object files for a target."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(how.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=how.optimisation,
        reloc=how.relocation,
        codemodel=how.code_model,
        abiname=how.abi,
    )
