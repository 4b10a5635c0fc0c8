"""Reductions along axes, and what is normalised by them."""

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import Context, operator
from cgraph.formats.tflite.value import Value
from cgraph.ir.graph import Node

REDUCE = {
    "MEAN": "mean", "SUM": "sum", "REDUCE_MAX": "max", "REDUCE_MIN": "min", "REDUCE_PROD": "prod", "REDUCE_ANY": "any",
    "REDUCE_ALL": "all",
}  # fmt: skip
SMALL = 1e-6  # the least root of squares that L2_NORMALIZATION divides by


def axes_of(c: Context, x: Value) -> tuple[int, ...]:
    """The axes of operand 1 in the file's order, each once."""
    axes = c.ints(1)
    if any(not -x.ndim <= n < x.ndim for n in axes):
        raise FormatError(f"the axes {axes} are none of {x.ndim}")
    return tuple(sorted({n % x.ndim for n in axes}))


@operator(*REDUCE)
def reduce(c: Context) -> Value:
    x, keep = c[0], c.option("keepdims")
    axes = axes_of(c, x)
    stays = x.first and (keep or 3 in axes or {1, 2} <= set(axes))  # what is left has the file's order
    node = x.node if stays else x.plain
    places = tuple(c.axis(n, x) for n in axes) if stays else axes
    found = cg.astype(getattr(cg, REDUCE[c.kind])(node, axis=places, keepdims=bool(keep)), node.dtype)
    return Value(found, first=bool(stays and keep))


@operator("ARG_MAX", "ARG_MIN")
def arg_max(c: Context) -> Node:
    axes = axes_of(c, c[0])
    if len(axes) != 1:
        raise FormatError(f"one axis is expected, not {len(axes)}")
    function = cg.argmax if c.kind == "ARG_MAX" else cg.argmin
    return cg.astype(function(c[0].plain, axis=axes[0]), c.dtypes[0])


@operator("SOFTMAX", "LOG_SOFTMAX")
def softmax(c: Context) -> Value:
    axis = c.axis(-1, c[0])
    if c.kind == "LOG_SOFTMAX":
        return Value(cg.log_softmax(c[0].node, axis=axis), first=c[0].first)
    beta = c.option("beta")
    return Value(cg.softmax(c[0].node if beta == 1 else c[0].node * beta, axis=axis), first=c[0].first)


@operator("L2_NORMALIZATION")
def l2_normalization(c: Context) -> Value:
    root = cg.sqrt(cg.sum(cg.square(c[0].node), axis=c.axis(-1, c[0]), keepdims=True))
    return Value(c.activated(c[0].node / cg.maximum(root, SMALL)), first=c[0].first)


@operator("CUMSUM")
def cumsum(c: Context) -> Node:
    x, axis = c[0].plain, c.axis(c.ints(1)[0], Value(c[0].plain))
    y = cg.flip(x, axis) if c.option("reverse") else x
    total = cg.astype(cg.cumsum(y, axis=axis), x.dtype)
    total = total - y if c.option("exclusive") else total
    return cg.flip(total, axis) if c.option("reverse") else total
