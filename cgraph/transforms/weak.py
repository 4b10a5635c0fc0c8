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
SELECTING = frozenset(["where", "clip"])
"""Functions that are not ufuncs and promote their operands."""


def is_weak(x: Any) -> bool:
    """Return True for a Python number, traced or not."""
    return x.weak is not None if isinstance(x, Tracer) else type(x) in SAMPLES


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
        return astype(x.node, operand_dtype(name, i, np.result_type(*strong, SAMPLES[x.weak])))

    return (*args[: len(args) - len(operands)], *(convert(i, x) for i, x in enumerate(operands)))


def operand_dtype(name: str, i: int, dtype: np.dtype) -> np.dtype:
    """Return the dtype in which NumPy reads operand `i` of a function of two operands that promote to `dtype`.

    It is a float for integers that are divided, so that ``x / 300`` of bytes does not read 300 as a byte.
    """
    ufunc = getattr(np, name)
    if dtype.kind not in "biu" or not isinstance(ufunc, np.ufunc) or ufunc.nin != 2:
        return dtype
    try:
        loop = ufunc.resolve_dtypes((dtype, dtype, *[None] * ufunc.nout))
    except TypeError:
        return dtype  # without a meaning for integers; the function refuses its operands itself
    return np.result_type(loop[i], "float32") if loop[i].kind == "f" else loop[i]


def python_arithmetic(name: str, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return operands of Python numbers only: True and False count as 1 and 0, except for logic."""
    if name in LOGIC or name in COMPARISONS.values():
        return tuple(args)
    return tuple(astype(x.node, "int64") if isinstance(x, Tracer) and x.weak is bool else x for x in args)


def weak_type(node: Node) -> type | None:
    """Return the type of the Python number that arithmetic of Python numbers gives."""
    return BY_KIND.get(node.dtype.kind)
