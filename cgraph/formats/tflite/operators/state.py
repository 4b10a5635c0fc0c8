"""Importers of resource variables: their handles, reads, assignments and initial values."""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.source import stored_form
from cgraph.formats.tflite.value import TfliteValue
from cgraph.ir.graph import Node
from cgraph.ops.leaf import ConstOp


@operator("VAR_HANDLE")
def handle(c: TfliteContext) -> TfliteValue:
    """Import VAR_HANDLE: the number of the variable of a name."""
    container, name = c.option("container"), c.option("name")
    number = c.variables.number((container, name), f"{container}/{name}" if container else name)
    return TfliteValue(array=np.array(number, "int32"))


@operator("READ_VARIABLE", on_bytes=True, on_words=True)
def read(c: TfliteContext) -> Node:
    """Import READ_VARIABLE; operand: a handle. The result has the bytes that were assigned, with its own scale."""
    (result,) = c.results
    return c.variables.read(number_of(c), *stored_form(result))


@operator("ASSIGN_VARIABLE", on_bytes=True, on_words=True)
def assign(c: TfliteContext) -> list[Node]:
    """Import ASSIGN_VARIABLE; operands: a handle, the value."""
    c.variables.assign(number_of(c), c[1].plain)
    return []


@operator("CALL_ONCE")
def call_once(c: TfliteContext) -> list[Node]:
    """Import CALL_ONCE: a graph that assigns initial values; further calls of it do nothing."""
    number = c.option("graph")
    if number not in c.variables.graphs:
        c.variables.graphs.add(number)
        with c.variables.initialising():
            c.build(number, ())
    return []


def number_of(c: TfliteContext) -> int:
    """Return the number of the variable of operand 0. FormatError inside IF and WHILE."""
    x = c[0]
    constant = x.array if x.array is not None else x.node.op.array if isinstance(x.node.op, ConstOp) else None
    if constant is None or (c.is_inner and not c.variables.is_initial):
        raise FormatError("variables inside IF and WHILE are not supported. Read and assign them outside")
    return int(constant.reshape(()))
