"""Python numbers as arguments: they promote as NumPy promotes Python numbers, by kind and not by size."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.ir.graph import COMPARISONS, Node
from cgraph.ops.arithmetic import astype
from cgraph.transforms.tracer import Tracer

SAMPLES: dict[type, Any] = {bool: True, int: 0, float: 0.0, complex: 0j}
"""A number of each type, from which NumPy's rule computes the promoted dtype."""
BY_KIND = {"b": bool, "i": int, "f": float, "c": complex}
LOGIC = frozenset("bitwise_and bitwise_or bitwise_xor invert".split())
UFUNCS = frozenset(name for name, x in vars(np).items() if isinstance(x, np.ufunc))
SELECTING = frozenset(["where", "clip", "quantile", "percentile", "nanquantile", "nanpercentile", "trapezoid"])
"""Functions that are not ufuncs and promote their operands."""
OPERANDS = frozenset("a_min a_max min max q dx".split())
"""Names by which these operands are passed."""


def is_weak(x: Any) -> bool:
    """Return True for a Python number, traced or not."""
    return x.weak is not None if isinstance(x, Tracer) else type(x) in SAMPLES


def number_types(x: Any) -> Any:
    """Return the type of each Python number in nested tuples, lists and dicts, and None for anything else."""
    if isinstance(x, tuple | list):
        return [number_types(member) for member in x]
    if isinstance(x, dict):
        return {key: number_types(member) for key, member in x.items()}
    return (x.weak if isinstance(x, Tracer) else type(x)) if is_weak(x) else None


def promotes_numbers(name: str, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Return True if a function promotes its operands, and traced Python numbers may be among them."""
    if name in UFUNCS or name in SELECTING:
        return any(isinstance(x, Tracer) and x.weak for x in (*args, *kwargs.values()))
    return name == "select"


def strong_arguments(name: str, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Return arguments with traced Python numbers in the dtype of the operands that the function promotes them with."""
    if name == "select":
        return strong_choices(*args, **kwargs), {}
    names = [key for key in kwargs if key in OPERANDS]
    new = with_strong_dtypes(name, (*args, *(kwargs[key] for key in names)))
    return new[: len(args)], kwargs | dict(zip(names, new[len(args) :]))


def strong_choices(condlist: Any, choicelist: Sequence[Any], default: Any = 0) -> tuple[Any, ...]:
    """Return the arguments of ``np.select`` with choices and default of one dtype."""
    _, *choices, default = with_strong_dtypes("where", (None, *choicelist, default))
    return condlist, choices, default


def with_strong_dtypes(name: str, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the operands with traced Python numbers in the dtype that NumPy computes with.

    A Python integer beside an array of integers is compared by its value, whatever the array's dtype.
    """
    operands = args[1:] if name == "where" else args
    strong = [x.dtype for x in operands if not is_weak(x) and hasattr(x, "dtype")]
    if not strong:
        return tuple(args)
    compares = name in COMPARISONS.values() and np.result_type(*strong).kind in "iu"

    def convert(i: int, x: Any) -> Any:
        if not isinstance(x, Tracer) or x.weak is None or (compares and x.weak is int):
            return x
        return astype(x.node, operand_dtype(name, i, np.result_type(*strong, SAMPLES[x.weak]), x.weak))

    return (*args[: len(args) - len(operands)], *(convert(i, x) for i, x in enumerate(operands)))


def operand_dtype(name: str, i: int, dtype: np.dtype, weak: type) -> np.dtype:
    """Return the dtype in which NumPy reads operand `i`, a number of type `weak`, of a function of two operands.

    The operands promote to `dtype`. The number is read as a float if integers are divided, so that ``x / 300`` of
    bytes does not read 300 as a byte, and as an integer by ``ldexp``.
    """
    ufunc = getattr(np, name)
    if dtype.kind not in "biuf" or not isinstance(ufunc, np.ufunc) or ufunc.nin != 2:
        return dtype
    for operands in ((dtype, dtype), tuple(weak if k == i else dtype for k in range(2))):
        try:
            read = ufunc.resolve_dtypes((*operands, *[None] * ufunc.nout))[i]
        except TypeError:
            continue
        return np.result_type(read, "float32") if read.kind == "f" else read
    return dtype  # without a meaning for these operands; the function refuses them itself


def python_arithmetic(name: str, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return operands of Python numbers only: True and False count as 1 and 0, except for logic."""
    if name in LOGIC or name in COMPARISONS.values():
        return tuple(args)
    if name == "power" and type(args[1]) is int and args[1] < 0 and args[0].weak in (bool, int):
        return astype(args[0].node, "float64"), float(args[1])
    return tuple(astype(x.node, "int64") if isinstance(x, Tracer) and x.weak is bool else x for x in args)


def weak_type(node: Node) -> type | None:
    """Return the type of the Python number that arithmetic of Python numbers gives."""
    return BY_KIND.get(node.dtype.kind)
