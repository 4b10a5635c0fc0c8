"""Compilation of kernels: from an emitter to object code or PTX.

An emitter is a function ``emit(k: Builder, *params)`` that writes the body of one kernel; ``k.args()`` are the
arguments of its family's signature. There is no registry: a family's name determines module and function
(`cgraph.kernels.families`). Emitters whose code is final (register-tiled kernels) are marked ``@final``: they skip
LLVM's middle end, which halves their compile time.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm

from cgraph.errors import NoKernelError
from cgraph.kernels.families import place_of
from cgraph.kernels.isa.records import CodeGeneration
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import KERNEL_TYPE, Builder
from cgraph.kernels.llvm.gpu_build import GPU_KERNEL_TYPE, TASK_THREADS, GpuBuilder
from cgraph.kernels.llvm.own_mathematics import OwnMathematics
from cgraph.kernels.signature import WordTable
from cgraph.kernels.target import Target, code_generation, target_machine
from cgraph.record import Record


class KernelText(Record, eq=False):
    """The LLVM text that an emitter has written.

    Fields
        text: the LLVM IR of its kernel
        linked: text of the foreign functions that the kernel calls, by their names in messages
        is_final: it needs no optimisation passes
        is_narrow: vectors that LLVM creates have at most 256 bits
    """

    text: str
    linked: Mapping[str, str]
    is_final: bool = False
    is_narrow: bool = False


def emit_kernel(kernel: Kernel, symbol: str, target: Target, word_table: WordTable | None = None) -> KernelText:
    """Emit a kernel for a CPU, whose arguments are 64-bit words unless there is a `word_table`."""
    emit = emitter_of(kernel)
    module = ir.Module(symbol)
    module.triple = target_machine(target).triple
    function = ir.Function(module, getattr(emit, "function_type", KERNEL_TYPE), symbol)
    builder = Builder if target.has_libc else OwnMathematics
    k = builder(module, function, kernel, target, word_table)
    emit(k, *kernel.params)
    k.finish()
    if target.tuning:
        function.attributes.append(f'"tune-cpu"="{target.tuning}"')
    return KernelText(str(module), k.linked, getattr(emit, "is_final", False), k.is_narrow)


def emitter_of(kernel: Kernel) -> Callable:
    """Return the function that writes a kernel's body."""
    module, name = place_of(kernel.family, "emit")
    return getattr(import_module(module), name)


def emit_gpu_kernel(kernel: Kernel, symbol: str, words: int, target: Target) -> KernelText:
    """Emit a kernel for a GPU, which takes `words` arguments by value."""
    emit = emitter_of(kernel)
    module = ir.Module(symbol)
    module.triple = target_machine(target).triple
    function = ir.Function(module, GPU_KERNEL_TYPE, symbol)
    k = GpuBuilder(module, function, kernel, target)
    if not kernel.is_block:
        k.leave_beyond_tasks()
    emit(k, *kernel.params)
    k.finish()
    threads, resident = getattr(emit, "block_threads", TASK_THREADS), getattr(emit, "resident", 1)
    args, tasks = function.args
    function.head = (
        f"define ptx_kernel void {function.ref}(ptr byval([{words} x i64]) align 8 {args.ref}, {tasks.operand}) "
        f'"nvvm.reqntid"="{threads},1,1" "nvvm.minctasm"="{resident}"'
    )
    return KernelText(str(module), k.linked)


def compile_ptx(kernel: Kernel, symbol: str, words: int, target: Target) -> tuple[bytes, float]:
    """Return the PTX of `kernel`, whose entry is called `symbol` and takes `words` int64 arguments, and the seconds it
    took.
    """
    start = time.perf_counter()
    machine = target_machine(target)
    module = link_and_optimise(symbol, emit_gpu_kernel(kernel, symbol, words, target), machine, vectors=False)
    return machine.emit_assembly(module).encode(), time.perf_counter() - start


def compile_kernel(kernel: Kernel, symbol: str, target: Target, own: Any = None) -> tuple[bytes, float]:
    """Return the object code of `kernel`, whose function is called `symbol`, and the seconds it took.

    Parameters
        own: the parts of LLVM that only this thread uses (`cgraph.kernels.llvm.side_by_side.OwnLlvm`), where the caller
            has set LLVM's options; None for those that all threads share
    """
    start, how = time.perf_counter(), code_generation(target)
    code = emit_kernel(kernel, symbol, target)
    machine = (own.machine if own else target_machine)(target.narrow if code.is_narrow else target)
    module = link_and_optimise(symbol, code, machine, quick=how.jit, context=own.context if own else None)
    if own:
        return own.emit(machine, module), time.perf_counter() - start
    with options_of(how):
        return machine.emit_object(module), time.perf_counter() - start


@contextmanager
def options_of(how: CodeGeneration) -> Iterator[None]:
    """Set LLVM's options of `how` for all code that this process generates within this context.

    Loop strength reduction takes a third of the code generator's time; nine networks on AVX2 were as fast without it
    (decision 0064). An exception at any line restores the option.
    """
    if how.reduces_strength:
        yield
        return
    try:
        llvm.set_option("cgraph", "-disable-lsr")
        yield
    finally:
        llvm.set_option("cgraph", "-disable-lsr=0")


def link_and_optimise(
    symbol: str, code: KernelText, machine: Any, vectors: bool = True, quick: bool = False, context: Any = None
) -> Any:
    """Return the module with everything that it calls linked in. NoKernelError if foreign code calls an unknown
    function.

    Loops of foreign code are vectorised if `vectors`; the project's own kernels are vectors already. If `quick`, those
    pass through `simplify` alone. `context`: LLVM's, None for the one that all threads share.
    """
    module = llvm.parse_assembly(code.text, context)
    own = {f.name for f in module.functions}
    for text in code.linked.values():
        module.link_in(llvm.parse_assembly(text, context))
    if code.linked:
        make_internal(module, symbol)
    module.verify()
    if not code.is_final:
        if quick and not code.linked:
            simplify(module, machine)
        else:
            optimise(module, machine, vectors=vectors and bool(code.linked))
    require_known_functions(code, module, own)
    return module


def make_internal(module: Any, symbol: str) -> None:
    """Make everything except the kernel internal, so that functions inlined everywhere disappear."""
    for item in (*module.functions, *module.global_variables):
        if not item.is_declaration and item.name != symbol:
            item.linkage = "internal"
    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.add_function_attribute("alwaysinline")


def require_known_functions(code: KernelText, module: Any, own: set[str]) -> None:
    """Raise NoKernelError with the functions that foreign code still calls and no kernel has."""
    left = {f.name for f in module.functions} - own
    names = sorted(name for name in left if not ANYWHERE.match(name))
    if code.linked and names:
        raise NoKernelError(
            f"{', '.join(code.linked)} calls {', '.join(names)}, which kernels lack. "
            "Use arithmetic and functions of math and NumPy only"
        )


def simplify(module: Any, machine: Any) -> None:
    """Make slots registers, and simplify branches and instructions once: a tenth of the time of `optimise`.

    Enough for own kernels that run here: their emitters write vectors and loops out, and the code generator hoists.
    """
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


def optimise(module: Any, machine: Any, vectors: bool) -> None:
    """Run LLVM's passes: slots become registers, code is hoisted and simplified; loops are unrolled and vectorised if
    requested.
    """
    options = llvm.create_pipeline_tuning_options(3 if vectors else 2)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = vectors
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


# intrinsics that LLVM compiles for every device, and the C library's mathematics, which a GPU's text does not contain
ANYWHERE = re.compile(
    r"llvm\.(mem(cpy|set|move)|lifetime|assume|experimental\.noalias|nvvm|masked|vector|fabs|sqrt|floor|ceil|trunc|rint"
    r"|nearbyint|copysign|fma|fmuladd|minnum|maxnum|minimum|maximum|[su](min|max)|abs|ct(pop|lz|tz)|bswap|bitreverse"
    r"|fsh[lr]|[su](add|sub|mul)\.(sat|with\.overflow)|is\.fpclass)\b"
    r"|(llvm\.)?(exp2?|expm1|log(2|10|1p)?|a?(sin|cos|tan)h?|erfc?|[lt]gamma|pow|atan2|hypot|fmod|sqrt|floor|ceil|trunc|rint"
    r"|fabs|copysign)(f?|\.(v\d+)?f\d\d)$"
)
