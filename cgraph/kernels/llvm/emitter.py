"""Marks of emitters: functions ``emit(k: Builder, *params)`` that write the body of one kernel."""

from collections.abc import Callable

from cgraph.kernels.llvm import ir


def final(emit: Callable) -> Callable:
    """Mark an emitter whose code needs no optimisation passes: SSA only, no slots."""
    emit.is_final = True  # type: ignore[attr-defined]
    return emit


def called_as(kind: ir.FunctionType) -> Callable[[Callable], Callable]:
    """Mark an emitter of a function that is not a kernel, such as the interpreter."""

    def mark(emit: Callable) -> Callable:
        emit.function_type = kind  # type: ignore[attr-defined]
        return emit

    return mark
