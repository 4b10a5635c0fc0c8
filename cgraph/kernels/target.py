"""Targets of this machine, selected at run time, and LLVM's code generator for them.

One source of emitters serves all targets; `cgraph.kernels.isa` describes the processors.
"""

from functools import cache
from itertools import takewhile
from typing import Any

from cgraph.kernels.host import host, tiles_state
from cgraph.kernels.isa.architectures import architecture_of, architecture_of_machine
from cgraph.kernels.isa.records import CodeGeneration
from cgraph.kernels.isa.records import Target as Target
from cgraph.kernels.isa.systems import has_elf
from cgraph.record import replace


@cache
def host_target() -> Target:
    """Return the widest target that this machine runs."""
    x = host()
    detect = architecture_of_machine(x.triple).detect
    assert detect, x.triple
    return detect(x)


def runnable_targets() -> dict[str, Target]:
    """Return the targets that this machine runs by name, the widest first; ``host`` is the widest one."""
    own = host_target()
    narrower = list(takewhile(lambda x: x.name != own.name, architecture_of(own).targets))
    return {"host": own, own.name: own, **{x.name: x for x in reversed(narrower)}}


def target_named(name: str) -> Target:
    """Return the target `name`; ``host`` is the widest one here.

    Raises
        ValueError: this machine does not run it
    """
    runnable = runnable_targets()
    if name not in runnable:
        raise ValueError(f"target {name!r} does not run on this machine. Use one of: {', '.join(sorted(runnable))}")
    return runnable[name]


def with_tiles(target: Target) -> Target:
    """Return this machine's widest target with products on tile registers; ask the system for permission first.

    Raises
        ValueError: a narrower target, a processor without tiles, or a system that refuses them to this process
    """
    if target != host_target():
        raise ValueError(f"the target {target.name!r} has no tile registers. Use the target 'host', or tiles=False")
    state = tiles_state()
    if not state:
        raise ValueError("this processor has no tile registers (Intel AMX). Use tiles=False")
    if state == "refused":
        raise ValueError(
            "the system refuses tile registers to this process, as it does where a signal stack is small. "
            "Use tiles=False"
        )
    return on_tiles(target)


def on_tiles(target: Target) -> Target:
    """Return a target whose products use tile registers."""
    return replace(target, tiles="amx")


def code_generation(target: Target) -> CodeGeneration:
    """Return the code generator's settings for a target; they are part of a kernel's cache name."""
    own = architecture_of(target)
    if own.objects is None or own is architecture_of_machine(host().triple):
        model = own.code_model if has_elf(host().triple) else "jitdefault"
        return CodeGeneration(
            host().triple, host().layout, code_model=model, jit=True, reduces_strength=own.reduces_strength
        )
    return own.objects


@cache
def target_machine(target: Target) -> Any:
    """Return LLVM's code generator for `target`, shared by all emitters."""
    return new_target_machine(target, code_generation(target))


def new_target_machine(target: Target, how: CodeGeneration) -> Any:
    """Return a new code generator, for an engine that takes ownership of it or for object files."""
    import llvmlite.binding as llvm

    if how.jit:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(how.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=how.optimisation,
        reloc=how.relocation,
        codemodel=how.code_model,
        jit=how.jit,
        abiname=how.abi,
    )
