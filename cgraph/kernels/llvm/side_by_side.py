"""Compilation of several kernels on several threads.

llvmlite lets one thread at a time into LLVM, since its modules share a context. Here each thread has a context and code
generators of its own, as LLVM requires of threads, and generates code without llvmlite's lock. That is two thirds of
the time; the rest takes turns.
Source: llvm.org/docs/ProgrammersManual.html#threads-and-llvm.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from threading import Lock, Thread
from typing import Any

import llvmlite.binding as llvm

from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm.compile import compile_kernel, options_of
from cgraph.kernels.target import Target, code_generation, new_target_machine

Keep = Callable[[str, bytes, float], None]


class OwnLlvm:
    """The parts of LLVM that only one thread uses. Changes: code generators are added.

    Fields
        context: of the thread's modules
    """

    def __init__(self) -> None:
        self.context = llvm.create_context()
        self.machine = cache(lambda target: new_target_machine(target, code_generation(target)))

    def emit(self, machine: Any, module: Any) -> bytes:
        """Return a module's object code; other threads may be inside LLVM."""
        lib = llvm.ffi.lib
        function = lib.LLVMPY_TargetMachineEmitToMemory
        with llvm.ffi.OutputString() as error:
            buffer = getattr(function, "_cfn", function)(machine, module, 1, error)  # past the lock
            if not buffer:
                raise RuntimeError(str(error))
        try:
            return ctypes.string_at(lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer))
        finally:
            lib.LLVMPY_DisposeMemoryBuffer(buffer)


def compile_side_by_side(kernels: Mapping[str, Kernel], target: Target, threads: int, keep: Keep) -> None:
    """Compile kernels, and call `keep` with the symbol, object code and seconds of each, one call at a time.

    Parameters
        kernels: by symbol
        threads: how many, with the caller's; fewer run where the system refuses one
    Raises
        the first error of a thread, after all have ended
    """
    todo, turn, errors = iter(kernels.items()), Lock(), list[BaseException]()

    def work() -> None:
        own = OwnLlvm()
        try:
            while not errors:
                with turn:
                    symbol, kernel = next(todo, ("", None))
                if kernel is None:
                    return
                code, seconds = compile_kernel(kernel, symbol, target, own)
                with turn:
                    keep(symbol, code, seconds)
        except BaseException as error:
            errors.append(error)

    helpers = [Thread(target=work, name=f"cgraph-compile-{i}", daemon=True) for i in range(1, threads)]
    with options_of(code_generation(target)):
        try:
            start(helpers)
            work()
        except BaseException as error:  # a signal's handler raised: the others stop after their present kernel
            errors.append(error)
        for helper in helpers:
            end(helper, errors)
    if errors:
        raise errors[0]


def start(helpers: Sequence[Thread]) -> None:
    """Start threads, as many as the system gives."""
    try:
        for helper in helpers:
            helper.start()
    except RuntimeError:
        pass


def end(helper: Thread, errors: list[BaseException]) -> None:
    """Wait for a thread, also if a signal's handler raises meanwhile: what it raises is added to `errors`."""
    while helper.is_alive():
        try:
            helper.join()
        except BaseException as error:
            errors.append(error)
