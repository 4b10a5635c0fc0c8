"""Products of matrices."""

from math import prod

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import Context, operator
from cgraph.ir.graph import Node


@operator("FULLY_CONNECTED")
def fully_connected(c: Context) -> Node:
    """``x @ w.T + bias``, where x is cut into rows as long as those of w ``[n, k]``."""
    if c.option("weights_format"):
        raise FormatError("shuffled weights are not supported")
    w = c.filters(1, (1, 0))
    shape = rows_of(c, w.shape[0])
    y = cg.matmul(c[0].plain.reshape((prod(shape), w.shape[0])), w)
    bias = c.get(2)
    return c.activated(y if bias is None else y + bias.plain).reshape((*shape, w.shape[1]))


def rows_of(c: Context, k: int) -> tuple[int, ...]:
    """The result's axes before the last: those of operand 0, or one."""
    shape = c[0].shape
    if k < 1 or prod(shape) % k or (c.option("keepdims") and shape[-1:] != (k,)):
        raise FormatError(f"{list(shape)} cannot be cut into rows of {k}")
    return shape[:-1] if c.option("keepdims") else (prod(shape) // k,)


@operator("BATCH_MATMUL")
def batch_matmul(c: Context) -> Node:
    x, y = c.nodes
    return cg.matmul(
        cg.swapaxes(x, -1, -2) if c.option("adjoint_x") else x, cg.swapaxes(y, -1, -2) if c.option("adjoint_y") else y
    )
