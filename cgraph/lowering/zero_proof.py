"""Proof by its scalar program that a pointwise op maps zeros of images to zeros.

Idea: propagate through the program what is known of every instruction's value: some exact numbers, or nothing. Images
are 0 and constants have their numbers; other contents of operands, NaN and infinities included, are unknown, and so are
results computed from them, except a choice whose condition is known. Functions that kernels round are known only at
`POINTS`, if their values are such points too, where kernels return NumPy's values.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of, dtype_of_code
from cgraph.ir.graph import Node
from cgraph.kernels.expression import Program, constant_of, operands_of
from cgraph.ops.family import Pointwise, scalar_program
from cgraph.ops.leaf import ConstOp
from cgraph.ops.shape import BroadcastTo

Exact = np.ndarray | None
"""Exact numbers, ``[n, c, 1, 1]`` or one; None if nothing is known."""

CORRECT: dict[str, Any] = {
    "neg": np.negative, "abs": np.abs, "not": np.invert, "floor": np.floor, "ceil": np.ceil, "rint": np.rint,
    "trunc": np.trunc, "sqrt": np.sqrt, "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum,
    "max": np.maximum, "copysign": np.copysign, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "is_nan": np.isnan, "div": np.divide, "cast": np.asarray,
}  # fmt: skip
ROUNDED: dict[str, Any] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc), "pow": np.power,
    "hypot": np.hypot, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "ndtr": np.vectorize(lambda x: math.erfc(-x / 2**0.5) / 2),
}  # fmt: skip
POINTS = (0.0, 0.5, 1.0, math.inf, -math.inf)


def keeps_frame(node: Node) -> bool:
    """Return True if the result's halo is 0 wherever the halos of blocked operands are, for any broadcast operands."""
    return is_zero(node, [in_frame(x) for x in node.operands])


def keeps_rest(node: Node) -> bool:
    """Return True if the result is 0 in unused channels wherever the operands are."""
    return is_zero(node, [without_channel(x) for x in node.operands])


def in_frame(x: Node) -> Exact:
    """Return the value of an operand in the halo: 0, or its values if it is broadcast over all pixels."""
    if not isinstance(x.op, BroadcastTo):
        return np.zeros((), x.dtype)
    source = x.operands[0]
    return pixel_of(source.op.array) if isinstance(source.op, ConstOp) else None


def pixel_of(x: np.ndarray) -> np.ndarray:
    """Return a value that is broadcast over pixels as ``[n, c, 1, 1]``: one number for each channel, or for all."""
    return x.reshape((1,) * (4 - x.ndim) + x.shape)


def without_channel(x: Node) -> Exact:
    """Return the value of an operand in an unused channel: 0, or its one number if it is broadcast over everything."""
    if not isinstance(x.op, BroadcastTo) or x.operands[0].size > 1:
        return np.zeros((), x.dtype)
    return in_frame(x)


def is_zero(node: Node, operands: Sequence[Exact]) -> bool:
    assert isinstance(node.op, Pointwise)
    value = exact_result(scalar_program(node.op, tuple(code_of(x.dtype) for x in node.operands)), operands)
    return value is not None and not value.any()


def exact_result(program: Program, operands: Sequence[Exact]) -> Exact:
    """Return the result of a program if it is known, for operands of which some are known."""
    values: list[Exact] = []
    for instruction in program:
        name, dtype = instruction[0], dtype_of_code(instruction[1])
        if name == "load":
            values.append(operands[instruction[2]])
        elif name == "const":
            values.append(np.asarray(constant_of(instruction), dtype))
        else:
            values.append(exact_step(name, dtype, [values[i] for i in operands_of(instruction)]))
    return values[-1]


def exact_step(name: str, dtype: np.dtype, xs: list[Exact]) -> Exact:
    """Evaluate one instruction: a choice, a conversion, or a primitive of known numbers."""
    if name == "select":
        return select(*xs)
    if any(x is None for x in xs):
        return None
    with np.errstate(all="ignore"):
        if name in ROUNDED:
            value = ROUNDED[name](*xs).astype(dtype)
            return value if all(np.isin(x, POINTS).all() for x in (*xs, value)) else None
        if name in ("div", "cast") and dtype.kind != "f":  # floats out of range, or division by 0: not as in NumPy
            return None
        return CORRECT[name](*xs).astype(dtype) if name in CORRECT else None


def select(condition: Exact, x: Exact, y: Exact) -> Exact:
    if condition is None:
        return None
    if condition.all():
        return x
    if not condition.any():
        return y
    return None if x is None or y is None else np.where(condition, x, y)
