"""Chains of pointwise ops from one uint8 or int8 value to another, as tables of 256 bytes. Creates no nodes."""

from collections.abc import Mapping

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ops.arithmetic import Cast
from cgraph.ops.family import Pointwise
from cgraph.ops.leaf import ConstOp
from cgraph.ops.quantise import Dequantize, Quantize
from cgraph.ops.take import Take
from cgraph.passes.integers.patterns import SIGN, scale_of, single

MOST_NODES = 64  # maximum length of a chain


def table_of(node: Node, place: Mapping[Node, int]) -> tuple[Node, np.ndarray] | None:
    """Return the value and the table with ``table[x]`` equal to a Quantize, as bytes; None if there is none.

    `place`: position of each node in running order. Values in between may have other readers, and be 8-bit values
    themselves.
    """
    chain = chain_of(node)
    while chain is not None and len(chain[1]) > 1:
        inner, leaves = chain
        last = max(leaves, key=lambda x: place[x])
        more = chain_of(last) if isinstance(last.op, Quantize) else None
        if more is None or len(inner) > MOST_NODES:
            return None
        chain = inner | more[0], leaves - {last} | more[1]
    if chain is None or len(chain[1]) != 1:
        return None
    inner, (x,) = chain
    return x, tabulate(node, x, sorted(inner, key=lambda n: place[n]))


def table_taken(node: Node) -> tuple[Node, np.ndarray] | None:
    """Return the same for 256 bytes indexed by bytes, as TFLite's reader writes it."""
    if not isinstance(node.op, Take) or node.dtype != np.uint8:
        return None
    table, places = node.operands
    if not isinstance(table.op, ConstOp) or table.shape != (2 * SIGN,) or not isinstance(places.op, Cast):
        return None
    (x,) = places.operands
    return (x, table.op.array) if x.dtype == np.uint8 else None


def chain_of(node: Node) -> tuple[frozenset[Node], frozenset[Node]] | None:
    """Return the pointwise ops that end with a Quantize, and the 8-bit values that they begin with; None if they begin
    with something else, or have another shape.
    """
    inner, leaves, waiting = {node}, set[Node](), list(node.operands) if scale_of(node) else [node]
    while waiting:
        x = waiting.pop()
        if x in inner or single(x) is not None:
            continue
        if x.shape != node.shape or not isinstance(x.op, Pointwise) or not x.op.pure or len(inner) > MOST_NODES:
            return None
        inner.add(x)
        if isinstance(x.op, Dequantize) and scale_of(x):
            leaves.add(x.operands[0])
        else:
            waiting += x.operands
    return (frozenset(inner), frozenset(leaves)) if leaves else None


def tabulate(node: Node, x: Node, inner: list[Node]) -> np.ndarray:
    """Return the bytes of a node for all bytes of `x`, by the ops between them in running order."""
    every = np.arange(2 * SIGN, dtype="uint8")
    values = {x: every if x.dtype == np.uint8 else (every ^ SIGN).view("int8")}

    def value(operand: Node) -> np.ndarray:
        if operand not in values:
            values[operand] = np.full(every.shape, single(operand), operand.dtype)
        return values[operand]

    with np.errstate(all="ignore"):
        for step in inner:
            values[step] = np.asarray(step.op.meaning(*map(value, step.operands)), step.dtype)
    out = values[node]
    return out if out.dtype == np.uint8 else out.view("uint8") ^ np.uint8(SIGN)
