"""From an emitter to object code.

An emitter is a function ``emit(k: Builder, *params)`` that writes the body of one kernel; ``k.args()`` are the
arguments of its family's signature. `family` registers nothing: the family's name *is* its place, ``module.function``
below `cgraph.kernels.llvm`. Emitters whose code is final (register-tiled kernels) say ``@final``: they skip LLVM's
middle end, which halves their compile time.
"""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm.build import KERNEL_TYPE, Builder
from cgraph.kernels.llvm.gpu_build import GPU_KERNEL_TYPE, TASK_THREADS, GpuBuilder
from cgraph.kernels.target import Target, target_machine


def final(emit: Callable) -> Callable:
    """Mark an emitter whose code needs no optimisation passes: SSA only, no slots."""
    emit.is_final = True  # type: ignore[attr-defined]
    return emit


def called_as(kind: ir.FunctionType) -> Callable[[Callable], Callable]:
    """Mark an emitter of a function that is no kernel, such as the interpreter."""

    def mark(emit: Callable) -> Callable:
        emit.function_type = kind  # type: ignore[attr-defined]
        return emit

    return mark


def emit_text(kernel: Kernel, symbol: str, target: Target) -> tuple[str, bool]:
    """The LLVM IR of a kernel, and whether it is final."""
    emit = emitter_of(kernel)
    module = ir.Module(symbol)
    module.triple = target_machine(target).triple
    function = ir.Function(module, getattr(emit, "function_type", KERNEL_TYPE), symbol)
    k = Builder(module, function, kernel, target)
    emit(k, *kernel.params)
    k.finish()
    return str(module), getattr(emit, "is_final", False)


def emitter_of(kernel: Kernel) -> Callable:
    """The function that writes a kernel's body."""
    module_name, _, function_name = kernel.family.rpartition(".")
    return getattr(import_module(f"cgraph.kernels.llvm.{module_name}"), function_name)


def emit_gpu_text(kernel: Kernel, symbol: str, words: int, target: Target) -> str:
    """The LLVM IR of a kernel for a GPU, which takes `words` arguments by value."""
    emit = emitter_of(kernel)
    module = ir.Module(symbol)
    module.triple = target_machine(target).triple
    function = ir.Function(module, GPU_KERNEL_TYPE, symbol)
    k = GpuBuilder(module, function, kernel, target)
    if not kernel.is_block:
        k.leave_beyond_tasks()
    emit(k, *kernel.params)
    k.finish()
    threads = getattr(emit, "block_threads", TASK_THREADS)
    head = (
        f'define ptx_kernel void @"{symbol}"(ptr byval([{words} x i64]) align 8 %".1", i64 %".2") '
        f'"nvvm.reqntid"="{threads},1,1"'
    )
    return str(module).replace(f'define void @"{symbol}"(ptr %".1", i64 %".2")', head)  # llvmlite writes no such types


def compile_ptx(kernel: Kernel, symbol: str, words: int, target: Target) -> tuple[bytes, float]:
    """PTX of `kernel`, whose entry is called `symbol` and takes `words` int64 arguments, and the seconds it took."""
    start = time.perf_counter()
    module = llvm.parse_assembly(emit_gpu_text(kernel, symbol, words, target))
    module.verify()
    machine = target_machine(target)
    optimise(module, machine)
    return machine.emit_assembly(module).encode(), time.perf_counter() - start


def compile_kernel(kernel: Kernel, symbol: str, target: Target) -> tuple[bytes, float]:
    """Object code of `kernel`, whose function is called `symbol`, and the seconds it took."""
    start = time.perf_counter()
    text, is_final = emit_text(kernel, symbol, target)
    module = llvm.parse_assembly(text)
    module.verify()
    machine = target_machine(target)
    if not is_final:
        optimise(module, machine)
    return machine.emit_object(module), time.perf_counter() - start


def optimise(module: Any, machine: Any) -> None:
    """Registers for slots, hoisting, simplification; no vectoriser: kernels say their vectors themselves."""
    options = llvm.create_pipeline_tuning_options(2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
