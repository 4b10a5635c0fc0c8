"""Emitters of ONNX nodes: a function or table row for each op."""

from collections.abc import Callable
from dataclasses import field
from math import log
from typing import Any

import numpy as np

from cgraph.formats.onnx.tensors import number_of_dtype
from cgraph.ir.graph import Node
from cgraph.ops.shape import BroadcastTo
from cgraph.record import Record


class Emitted(Record):
    """One ONNX node.

    Fields
        kind: ONNX's operator
        operands: nodes, arrays (initialisers), other expressions, or None for an absent operand
        attributes: arguments of `onnx.helper.make_node`
        results: number of results; consumers read them through `Item`
    """

    kind: str
    operands: tuple[Any, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    results: int = 1


Emitter = Callable[[Node], Emitted]
EMITTERS: dict[str, Emitter] = {}


def emitter(*names: str) -> Callable[[Emitter], Emitter]:
    """Register an emitter for ops."""

    def register(function: Emitter) -> Emitter:
        EMITTERS.update(dict.fromkeys(names, function))
        return function

    return register


def node(kind: str, *operands: Any, **attributes: Any) -> Emitted:
    return Emitted(kind, operands, attributes)


POINTWISE = {
    "abs": "Abs", "add": "Add", "arccos": "Acos", "arccosh": "Acosh", "arcsin": "Asin", "arcsinh": "Asinh",
    "arctan": "Atan", "arctanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "equal": "Equal", "erf": "Erf",
    "exp": "Exp", "floor": "Floor", "greater": "Greater", "greater_equal": "GreaterOrEqual", "isnan": "IsNaN",
    "less": "Less", "less_equal": "LessOrEqual", "log": "Log", "maximum": "Max", "minimum": "Min", "multiply": "Mul",
    "negative": "Neg", "power": "Pow", "reciprocal": "Reciprocal", "relu": "Relu", "rint": "Round",
    "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "softplus": "Softplus", "sqrt": "Sqrt",
    "subtract": "Sub", "tan": "Tan", "tanh": "Tanh", "true_divide": "Div", "where": "Where",
}  # fmt: skip


def without_broadcasts(x: Node, shape: tuple[int, ...]) -> list[Node]:
    """Return the operands of a pointwise node without broadcasts, which are implicit in ONNX."""
    plain = [v.operands[0] if isinstance(v.op, BroadcastTo) else v for v in x.operands]
    return plain if np.broadcast_shapes(*(v.shape for v in plain)) == shape else list(x.operands)


@emitter(*POINTWISE)
def pointwise(x: Node) -> Emitted:
    return node(POINTWISE[x.op.name], *without_broadcasts(x, x.shape))


def number(x: Node, value: float) -> np.ndarray:
    """Return a number in the dtype of a node."""
    return np.asarray(value, x.dtype)


@emitter("square")
def square(x: Node) -> Emitted:
    return node("Mul", x.operands[0], x.operands[0])


@emitter("not_equal")
def not_equal(x: Node) -> Emitted:
    return node("Not", node("Equal", *without_broadcasts(x, x.shape)))


@emitter("trunc")
def trunc(x: Node) -> Emitted:
    (v,) = x.operands
    return node("Mul", node("Sign", v), node("Floor", node("Abs", v)))


@emitter("expm1", "log1p", "exp2", "log2", "log10")
def exponential(x: Node) -> Emitted:
    (v,) = x.operands
    if x.op.name == "expm1":
        return node("Sub", node("Exp", v), number(x, 1))
    if x.op.name == "log1p":
        return node("Log", node("Add", v, number(x, 1)))
    if x.op.name == "exp2":
        return node("Exp", node("Mul", v, number(x, log(2))))
    return node("Div", node("Log", v), number(x, log(2 if x.op.name == "log2" else 10)))


@emitter("fmod")
def fmod(x: Node) -> Emitted:
    return node("Mod", *without_broadcasts(x, x.shape), fmod=1)


@emitter("bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor")
def logic(x: Node) -> Emitted:
    kind = x.op.name.split("_")[1].capitalize()
    return node(kind if x.dtype == bool else f"Bitwise{kind}", *without_broadcasts(x, x.shape))


@emitter("invert", "logical_not")
def invert(x: Node) -> Emitted:
    return node("Not" if x.dtype == bool else "BitwiseNot", x.operands[0])


@emitter("cast")
def cast(x: Node) -> Emitted:
    return node("Cast", x.operands[0], to=number_of_dtype(x.dtype))


def ints(values: Any) -> np.ndarray:
    return np.array(list(values), np.int64)


@emitter("reshape")
def reshape(x: Node) -> Emitted:
    return node("Reshape", x.operands[0], ints(x.shape), allowzero=int(0 in x.shape))


@emitter("transpose")
def transpose(x: Node) -> Emitted:
    return node("Transpose", x.operands[0], perm=list(x.op.axes))  # type: ignore[attr-defined]


@emitter("broadcast_to")
def broadcast_to(x: Node) -> Emitted:
    return node("Expand", x.operands[0], ints(x.shape))


@emitter("slice")
def slice_(x: Node) -> Emitted:
    op: Any = x.op
    ends = [s + n * step for s, n, step in zip(op.starts, op.lengths, op.steps)]
    ends = [e if e >= 0 else -(2**31) for e in ends]
    return node("Slice", x.operands[0], ints(op.starts), ints(ends), ints(range(len(ends))), ints(op.steps))


@emitter("concat")
def concat(x: Node) -> Emitted:
    return Emitted("Concat", x.operands, {"axis": x.op.axis})  # type: ignore[attr-defined]


@emitter("contiguous")
def contiguous(x: Node) -> Emitted:
    return node("Identity", x.operands[0])


@emitter("full")
def full(x: Node) -> Emitted:
    return node("Expand", number(x, x.op.value), ints(x.shape))  # type: ignore[attr-defined]


@emitter("pad")
def pad(x: Node) -> Emitted:
    op: Any = x.op
    widths = [a for a, _ in op.widths] + [b for _, b in op.widths]
    return node("Pad", x.operands[0], ints(widths), number(x, op.value), mode="constant")


@emitter("take")
def take(x: Node) -> Emitted:
    return node("Gather", *x.operands, axis=x.op.axis)  # type: ignore[attr-defined]


@emitter("take_along_axis")
def take_along_axis(x: Node) -> Emitted:
    return node("GatherElements", *x.operands, axis=x.op.axis)  # type: ignore[attr-defined]


@emitter("cumsum")
def cumsum(x: Node) -> Emitted:
    return node("CumSum", x.operands[0], np.array(x.op.axis, np.int64))  # type: ignore[attr-defined]


@emitter("sum", "prod", "max", "min")
def reduction(x: Node) -> Emitted:
    axes, v = ints(x.op.axes), x.operands[0]  # type: ignore[attr-defined]
    same: Any = node("Cast", v, to=number_of_dtype(x.dtype)) if v.dtype != x.dtype else v
    return node(f"Reduce{x.op.name.capitalize()}", same, axes, keepdims=0)


@emitter("logsumexp")
def logsumexp(x: Node) -> Emitted:
    return node("ReduceLogSumExp", x.operands[0], ints([x.op.axis]), keepdims=0)  # type: ignore[attr-defined]


@emitter("any", "all")
def any_all(x: Node) -> Emitted:
    kind, axes = "ReduceMax" if x.op.name == "any" else "ReduceMin", ints(x.op.axes)  # type: ignore[attr-defined]
    truth = node(
        "Cast", node("Cast", x.operands[0], to=number_of_dtype(np.dtype(bool))), to=number_of_dtype(np.dtype("int32"))
    )
    return node("Cast", node(kind, truth, axes, keepdims=0), to=number_of_dtype(x.dtype))


@emitter("triangle")
def triangle(x: Node) -> Emitted:
    op: Any = x.op
    return node("Trilu", x.operands[0], np.array(op.offset, np.int64), upper=int(op.upper))


@emitter("argmax", "argmin")
def place(x: Node) -> Emitted:
    axes, (v,) = x.op.axes, x.operands  # type: ignore[attr-defined]
    others = [i for i in range(v.ndim) if i not in axes]
    flat = node("Reshape", node("Transpose", v, perm=[*others, *axes]), ints([*x.shape, -1])) if len(axes) > 1 else v
    axis = len(others) if len(axes) > 1 else axes[0]
    return node("ArgMax" if x.op.name == "argmax" else "ArgMin", flat, axis=axis, keepdims=0)


@emitter("top_k")
def top_k(x: Node) -> Emitted:
    op: Any = x.op
    return Emitted("TopK", (x.operands[0], ints([op.count])), {"axis": op.axis, "largest": int(op.descending)}, 2)
