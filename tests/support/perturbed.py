"""Graphs that differ from a given one in a single place: an op, a field, a constant, an operand, a reader, a dtype."""

import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.errors import CgraphError
from cgraph.ir.graph import Node, Op, apply
from cgraph.ir.roots import Roots, rebuild
from cgraph.ir.spec import Spec
from cgraph.kernels.target import Target
from cgraph.ops.arithmetic import Add, Cast, Maximum, Minimum, Multiply, Negative, Subtract, TrueDivide
from cgraph.ops.elementary import Sqrt
from cgraph.ops.leaf import Const, ConstOp, Var
from cgraph.ops.loop import Body
from cgraph.ops.reduce import Max, Sum
from cgraph.record import Record, replace

Outputs = tuple[Node, ...]
OTHERS: dict[type[Op], type[Op]] = {
    Add: Subtract,
    Subtract: Add,
    Multiply: TrueDivide,
    TrueDivide: Multiply,
    Maximum: Minimum,
    Minimum: Maximum,
    Negative: Sqrt,
    Sqrt: Negative,
    Sum: Max,
}
"""Ops of the same fields and operands that another one may be taken for."""
FROM_ONE = ("dilation", "groups", "steps", "stride", "window")
"""Fields whose numbers are 1 or more; those of others are 0 or more."""
REFUSED = (CgraphError, ValueError, TypeError, IndexError, KeyError, AssertionError, ZeroDivisionError)


def perturbed(outputs: Sequence[Node]) -> Iterator[tuple[str, Outputs]]:
    """Yield a name and outputs for each graph that differs in one place and has a meaning."""
    graph = Roots.of(tuple(outputs))
    for i, node in enumerate(graph.order):
        place = f"{i} {node.op.name}"
        if node.operands and node not in graph.ends and isinstance(node.spec, Spec):
            yield f"{place} shown", (*graph, node)
            if node.dtype.kind == "f":
                yield f"{place} read", (*graph, cg.sin(node))
        for name, other in changes_of(node):
            changed = with_other(graph, node, other)
            if changed is not None:
                yield f"{place} {name}", changed
    for dtype in ("float32", "float64"):
        changed = with_dtype(graph, dtype)
        if changed is not None and any(a is not b for a, b in zip(changed, graph)):
            yield dtype, changed


def changes_of(node: Node) -> Iterator[tuple[str, Any]]:
    """Yield a name and what makes another node of the node's new operands."""
    op = node.op
    if isinstance(op, ConstOp):
        yield from ((name, lambda _, x=x: Const(x)) for name, x in other_constants(op.array))
        yield "varies", lambda _: Var(node.shape, node.dtype, "varies")
    if not node.operands:
        return
    if type(op) in OTHERS:
        fields = [getattr(op, name) for name in op._fields]
        yield "other op", lambda xs: apply(OTHERS[type(op)](*fields), *xs)
    for field in op._fields:
        for value in other_values(getattr(op, field), int(field in FROM_ONE)):
            if field in ("axis", "axes") and np.max(value, initial=0) >= node.operands[0].ndim:
                continue
            yield f"{field}={value}", lambda xs, f=field, v=value: apply(replace(op, **{f: v}), *xs)
    for j, x in enumerate(node.operands):
        if x.operands and isinstance(x.spec, Spec):
            yield f"without {j}", lambda xs, j=j: apply(op, *xs[:j], Var(xs[j].shape, xs[j].dtype, "cut"), *xs[j + 1 :])
    if len(node.operands) == 2 and node.operands[0].spec == node.operands[1].spec and node.operands[0].operands:
        yield "twice the first", lambda xs: apply(op, xs[0], xs[0])


def other_constants(x: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield constants that differ in the last element, or in the sign of all."""
    if not x.size or x.dtype.names:
        return
    last = x.copy()
    last.reshape(-1)[-1] = not last.reshape(-1)[-1] if x.dtype == bool else last.reshape(-1)[-1] + x.dtype.type(1)
    yield "another last", last
    yield "negated", ~x if x.dtype.kind in "bu" else -x


def other_values(value: Any, least: int) -> Iterator[Any]:
    """Yield other values of a field: numbers one more and one less, each one of a tuple, the other bool."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (n for n in (value + 1, value - 1) if n >= least)
    elif isinstance(value, float):
        yield value + 0.5
    elif isinstance(value, tuple):
        for i, member in enumerate(value):
            yield from ((*value[:i], other, *value[i + 1 :]) for other in other_values(member, least))


def with_other(graph: Roots, node: Node, other: Any) -> Outputs | None:
    """Return the graph with another node in one place; None if it has no meaning."""
    try:
        return rebuild(graph, lambda n, new: other(tuple(new[x] for x in n.operands)) if n is node else None)
    except REFUSED:
        return None


def with_dtype(graph: Roots, dtype: str) -> Outputs | None:
    """Return the graph with all its floats of one dtype; None if an op does not take it."""

    def change(node: Node, new: Any) -> Node | None:
        op: Any = node.op
        if isinstance(op, ConstOp) and node.dtype in ("float32", "float64"):
            return Const(op.array.astype(dtype), name=op.label)
        if isinstance(node, Var) and node.dtype in ("float32", "float64"):
            return Var(node.shape, dtype, node.name)
        if isinstance(op, Cast) and node.dtype in ("float32", "float64"):
            return apply(Cast(np.dtype(dtype)), new[node.operands[0]])
        return None

    try:
        return rebuild(graph, change)
    except REFUSED:
        return None


def shape_of_graph(outputs: Sequence[Node], contents: bool = False) -> str:
    """Return a text that is equal for equal graphs: ops with their fields, operands and specs.

    Parameters
        contents: with the integers of constants, not their names only
    """
    order = Roots.of(tuple(outputs)).order
    place = {x: i for i, x in enumerate(order)}
    lines = [f"{i} {fields_of(x, contents)} {[place[y] for y in x.operands]} {x.spec}" for i, x in enumerate(order)]
    return "\n".join([*lines, str([place[x] for x in outputs])])


def fields_of(node: Node, contents: bool) -> str:
    """Return an op with its fields, or a leaf by its kind and name."""
    if not node.operands:
        op: Any = node.op
        has_numbers = contents and isinstance(op, ConstOp) and op.array.dtype.kind in "biu"
        numbers = f" {zlib.crc32(np.ascontiguousarray(op.array))}" if has_numbers else ""
        name = re.sub(r"^var\d+$", "var", node.name)  # the number counts the Vars of the process
        return f"{type(op).__name__} {name}{numbers}"
    return text_of(node.op)


def text_of(value: Any) -> str:
    """Return a value as text; floats with four digits."""
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, Target):
        return f"{value.name}{value.bf16}{value.tiles}"
    if isinstance(value, Body):
        return f"Body({[len(x) for x in (value.carry, value.xs, value.shared)]} {shape_of_graph(value.results)})"
    if isinstance(value, Record):
        fields = ", ".join(f"{name}={text_of(getattr(value, name))}" for name in value._fields)
        return f"{type(value).__name__}({fields})"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(text_of, value))})"
    if isinstance(value, np.ndarray):
        return f"array {value.dtype}{value.shape}"
    return str(value)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
