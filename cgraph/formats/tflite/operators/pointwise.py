"""Arithmetic, comparisons and activations, element by element."""

from collections.abc import Callable

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import Context, operator
from cgraph.formats.tflite.value import Value
from cgraph.ir.graph import Node

BINARY: dict[str, Callable[..., Node]] = {
    "ADD": lambda x, y: x + y,
    "DIV": lambda x, y: cg.true_divide(x, y) if x.dtype.kind == "f" else truncated_quotient(x, y),
    "EQUAL": lambda x, y: cg.equal(x, y),
    "FLOOR_DIV": lambda x, y: cg.floor_divide(x, y),
    "FLOOR_MOD": lambda x, y: cg.remainder(x, y),
    "GREATER": lambda x, y: cg.greater(x, y),
    "GREATER_EQUAL": lambda x, y: cg.greater_equal(x, y),
    "LESS": lambda x, y: cg.less(x, y),
    "LESS_EQUAL": lambda x, y: cg.less_equal(x, y),
    "LOGICAL_AND": lambda x, y: cg.logical_and(x, y),
    "LOGICAL_OR": lambda x, y: cg.logical_or(x, y),
    "MAXIMUM": lambda x, y: cg.maximum(x, y),
    "MINIMUM": lambda x, y: cg.minimum(x, y),
    "MUL": lambda x, y: x * y,
    "NOT_EQUAL": lambda x, y: cg.not_equal(x, y),
    "POW": lambda x, y: cg.power(x, y),
    "PRELU": lambda x, y: cg.prelu(x, y),
    "SQUARED_DIFFERENCE": lambda x, y: cg.square(x - y),
    "SUB": lambda x, y: x - y,
}
WITH_ACTIVATION = ("ADD", "DIV", "MUL", "SUB")
UNARY: dict[str, Callable[[Node], Node]] = {
    "ABS": lambda x: cg.abs(x),
    "CEIL": lambda x: cg.ceil(x),
    "COS": lambda x: cg.cos(x),
    "ELU": lambda x: cg.elu(x),
    "EXP": lambda x: cg.exp(x),
    "FLOOR": lambda x: cg.floor(x),
    "HARD_SWISH": lambda x: cg.hard_swish(x),
    "LOG": lambda x: cg.log(x),
    "LOGICAL_NOT": lambda x: cg.logical_not(x),
    "LOGISTIC": lambda x: cg.sigmoid(x),
    "NEG": lambda x: cg.negative(x),
    "RELU": lambda x: cg.relu(x),
    "RELU6": lambda x: cg.relu6(x),
    "RELU_0_TO_1": lambda x: cg.clip(x, 0.0, 1.0),
    "RELU_N1_TO_1": lambda x: cg.clip(x, -1.0, 1.0),
    "ROUND": lambda x: cg.rint(x),
    "RSQRT": lambda x: cg.reciprocal(cg.sqrt(x)),
    "SIGN": lambda x: cg.sign(x),
    "SIN": lambda x: cg.sin(x),
    "SQRT": lambda x: cg.sqrt(x),
    "SQUARE": lambda x: cg.square(x),
    "TANH": lambda x: cg.tanh(x),
    "ZEROS_LIKE": lambda x: cg.zeros_like(x),
}


def truncated_quotient(x: Node, y: Node) -> Node:
    """x / y of whole numbers without its fraction, 0 when y is 0."""
    magnitude = cg.floor_divide(cg.abs(x), cg.abs(y))
    return cg.where(cg.less(x, 0) != cg.less(y, 0), -magnitude, magnitude)


@operator(*BINARY)
def binary(c: Context) -> Value:
    (x, y), first = c.alike(c[0], c[1])
    if x.dtype != y.dtype:
        raise FormatError(f"operands of {x.dtype} and {y.dtype}")
    found = BINARY[c.kind](x, y)
    return Value(c.activated(found) if c.kind in WITH_ACTIVATION else found, first=first)


@operator(*UNARY)
def unary(c: Context) -> Value:
    return Value(UNARY[c.kind](c[0].node), first=c[0].first)


@operator("GELU")
def gelu(c: Context) -> Value:
    x = c[0].node
    if not c.option("approximate"):
        return Value(cg.gelu(x), first=c[0].first)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)  # sqrt(2 / pi)
    return Value(0.5 * x * (1.0 + cg.tanh(inner)), first=c[0].first)


@operator("LEAKY_RELU")
def leaky_relu(c: Context) -> Value:
    return Value(cg.leaky_relu(c[0].node, c.option("alpha")), first=c[0].first)


@operator("ADD_N")
def add_n(c: Context) -> Value:
    nodes, first = c.alike()
    total = nodes[0]
    for x in nodes[1:]:
        total = total + x
    return Value(total, first=first)


@operator("CAST")
def cast(c: Context) -> Value:
    return Value(cg.astype(c[0].node, c.dtypes[0]), first=c[0].first)


@operator("SELECT", "SELECT_V2")
def select(c: Context) -> Value:
    """The older one's condition may be one for each element of the first axis."""
    if c.kind == "SELECT" and c[0].ndim == 1 and c[1].ndim > 1:
        return Value(cg.where(c[0].plain.reshape((-1, *[1] * (c[1].ndim - 1))), c[1].plain, c[2].plain))
    (p, x, y), first = c.alike()
    return Value(cg.where(p, x, y), first=first)
