"""Estimates of kernel times, for the choice of tasks and chunks."""

from cgraph.kernels.expression import Program
from cgraph.kernels.target import Target
from cgraph.kernels.views.layout import TASK_ELEMENTS

# instructions that are polynomials or loops, and the operations that they take
FUNCTIONS = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh"
    " erf erfc ndtr gamma lgamma sigmoid pow rem fmod".split()
)
FUNCTION_OPERATIONS = 16
TASK_OPERATIONS = 200_000  # of 4 bytes: about 10 microseconds


def tile_ns(target: Target, multiply_adds: int) -> float:
    """Return the approximate nanoseconds of this many vector multiply-adds."""
    return multiply_adds * (0.3 if target.fma else 0.6)


def task_elements(program: Program) -> int:
    """Return the elements of a task: fewer for long programs, so that several threads share arrays of medium size."""
    operations = sum(operations_of(name, dtype) for name, dtype, *_ in program)
    return min(TASK_ELEMENTS, TASK_OPERATIONS // operations // 64 * 64 or 64)


def operations_of(name: str, dtype: str) -> int:
    """Return the approximate operations of an instruction; those on 8 bytes count twice."""
    return (FUNCTION_OPERATIONS if name in FUNCTIONS else 1) * (1 + (int(dtype[1:]) > 4))
