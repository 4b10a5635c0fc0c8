"""Importers of sequences and optionals, which are resolved while the graph is built."""

from typing import Any

import numpy as np

from cgraph.errors import FormatError, PositionError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, Value, operator
from cgraph.formats.onnx.dynamic.value import Array, Ragged
from cgraph.formats.onnx.dynamic_ops.slices import join_along
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const


def sequence(c: Context, i: int = 0) -> list[Value]:
    """Return operand i, which must be a sequence."""
    value = c.value(i)
    if not isinstance(value, list):
        raise FormatError(f"operand {i} is not a sequence")
    return value


@operator("Identity")
def identity(c: Context) -> list[Value]:
    """Import Identity, also of sequences and empty optionals."""
    return [c.value(0)]


@operator("SequenceConstruct")
def sequence_construct(c: Context) -> Any:
    return [[c.array(i) for i in range(len(c.operands))]]


@operator("SequenceEmpty")
def sequence_empty(c: Context) -> Any:
    return [[]]


@operator("SequenceAt")
def sequence_at(c: Context) -> Value:
    items = sequence(c)
    return items[sequence_index(items, c.number(1))]


def sequence_index(items: list[Value], at: int, more: int = 0) -> int:
    """Return an index into a sequence extended by `more`; a negative one counts from the end."""
    n = len(items)
    if not -n <= at < n + more:
        raise PositionError(f"index {at} is outside a sequence of {n} items")
    return at


@operator("SequenceLength")
def sequence_length(c: Context) -> Node:
    return Const(np.array(len(sequence(c)), np.int64))


@operator("SequenceInsert")
def sequence_insert(c: Context) -> Any:
    items = list(sequence(c))
    items.insert(sequence_index(items, c.number(2, len(items)), 1), c.array(1))
    return [items]


@operator("SequenceErase")
def sequence_erase(c: Context) -> Any:
    items = list(sequence(c))
    del items[sequence_index(items, c.number(1, -1))]
    return [items]


@operator("SplitToSequence")
def split_to_sequence(c: Context) -> Any:
    """Import SplitToSequence: given lengths, or equal ones with a shorter last part; length 1 by default."""
    x, axis = c[0], c.attribute("axis", 0) % c[0].ndim
    n = x.shape[axis]
    c.spend(nodes=n if c.value(1) is None or c[1].ndim == 0 else c[1].size)
    lengths = c.ints(1, [1] * n)
    if c.value(1) is not None and c[1].ndim == 0:
        lengths = [min(lengths[0], n - i) for i in range(0, n, lengths[0])]
    pieces = cg.split(x, np.cumsum(lengths)[:-1].tolist(), axis)
    dropped = c.value(1) is None and not c.attribute("keepdims", 1)
    return [[cg.squeeze(p, axis) for p in pieces] if dropped else pieces]


@operator("ConcatFromSequence")
def concat_from_sequence(c: Context) -> Array:
    items, axis = sequence(c), c.required("axis")
    if not any(isinstance(x, Ragged) for x in items):
        return (cg.stack if c.attribute("new_axis", 0) else cg.concat)(items, axis)
    if c.attribute("new_axis", 0):
        raise FormatError(
            "values of a length known only at run time cannot be stacked. Give shapes= or constants= that fix it"
        )
    return join_along(c, items, axis)


@operator("SequenceMap")
def sequence_map(c: Context) -> tuple[list[Value], ...]:
    """Import SequenceMap: a graph is built for each item; further operands are sequences as long as the first, or
    arrays, which every item gets.
    """
    first, body = sequence(c), c.required("body")
    others = [x for x in c.operands[1:] if isinstance(x, list)]
    if any(len(x) != len(first) for x in others):
        lengths = ", ".join(str(len(x)) for x in (first, *others))
        raise FormatError(f"sequences of {lengths} items: all must have one length")
    results = [c.build(body, [x[i] if isinstance(x, list) else x for x in c.operands]) for i in range(len(first))]
    return tuple([result[k] for result in results] for k in range(len(body.output)))


@operator("Optional")
def optional(c: Context) -> Any:
    return [c.value(0)]


@operator("OptionalGetElement")
def optional_get(c: Context) -> Any:
    if c.value(0) is None:
        raise FormatError("the optional is empty: check it with OptionalHasElement")
    return [c.value(0)]


@operator("OptionalHasElement")
def optional_has(c: Context) -> Node:
    return Const(np.array(c.value(0) is not None))
