"""Importers of matrix products."""

from math import prod

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.dynamic import asymmetric, symmetric
from cgraph.formats.tflite.fixed import as_bytes, bounds_of, parts_of, scale_factor, subtract_zero
from cgraph.formats.tflite.operators.conv import bias_of, constant_filters, dynamic_filters
from cgraph.ir.graph import Node, apply
from cgraph.kernels.conv8.calls import Result
from cgraph.ops.leaf import Const
from cgraph.ops.physical.integer import IntegerMatmul


@operator("FULLY_CONNECTED", on_bytes=True)
def fully_connected(c: TfliteContext) -> Node:
    """Import FULLY_CONNECTED: ``x @ w.T + bias``, with x reshaped to rows of the length of those of w ``[n, k]``."""
    if c.option("weights_format"):
        raise FormatError(
            f"weights_format {c.option('weights_format')} (shuffled) is not supported. Convert with the default one"
        )
    w = c.filters(1, (1, 0))
    shape = rows_of(c, w.shape[0])
    x = c[0].plain.reshape((prod(shape), w.shape[0]))
    if c.is_quantised:
        return product_of_bytes(c, x, w).reshape((*shape, w.shape[1]))
    bias = c.get(2)
    if c[1].quantised is not None:
        y = dynamic_product(c, x, w)
        return c.activated(y if bias is None else bias.plain + y).reshape((*shape, w.shape[1]))
    y = cg.matmul(x, w)
    return c.activated(y if bias is None else y + bias.plain).reshape((*shape, w.shape[1]))


def dynamic_product(c: TfliteContext, x: Node, w: Node) -> Node:
    """Multiply floats, quantised per row, by int8 weights: exact integer sums, corrected for the zero point."""
    weights = dynamic_filters(c, x, w)
    x8 = (asymmetric if c.option("asymmetric") else symmetric)(x, (1,))
    count = weights.shape[1]
    constants = weights, np.zeros(count, "int32"), np.ones(count, "float32")
    total = apply(IntegerMatmul(0, Result("i4")), x8.numbers, *(Const(y, copy=False) for y in constants))
    total = total - x8.zero * weights.sum(0, dtype="int32")
    return cg.astype(total, "float32") * (x8.scale * c[1].bytes.scales)


def product_of_bytes(c: TfliteContext, x: Node, w: Node) -> Node:
    """Multiply bytes: exact sums, scaled and rounded once. One scale is a float32 product, one per column float64."""
    (weights, zero), sx, sw = constant_filters(c, w), c[0].bytes.scale, c[1].bytes.scales
    scale = np.float64(sx) * sw.astype("float64") if sw.size > 1 else (sx * sw).astype("float64")
    count = weights.shape[1]
    bias, factors = bias_of(c, 2, count), parts_of(np.broadcast_to(scale / np.float64(c.result.scale), count))
    result = Result("i4") if zero else Result("u1", c.result.zero, *bounds_of(c), fixed="once")
    constants = (Const(y, copy=False) for y in (weights, bias, factors))
    total = apply(IntegerMatmul(c[0].bytes.zero, result), x, *constants)
    if not zero:
        return total
    row_sums = cg.astype(
        cg.sum(subtract_zero(c[0], x), axis=1, keepdims=True), "int32"
    )  # a column around another number adds it
    return as_bytes(cg.fixed_product(total - row_sums * np.int32(zero), *factors, once=True), c.result, bounds_of(c))


def rows_of(c: TfliteContext, k: int) -> tuple[int, ...]:
    """Return the axes of the result before the last: those of operand 0, or one."""
    shape = c[0].shape
    if k < 1 or prod(shape) % k or (c.option("keepdims") and shape[-1:] != (k,)):
        raise FormatError(f"{list(shape)} cannot be cut into rows of {k}")
    return shape[:-1] if c.option("keepdims") else (prod(shape) // k,)


@operator("BATCH_MATMUL", on_bytes=True)
def batch_matmul(c: TfliteContext) -> Node:
    x, y = [subtract_zero(v, v.plain) for v in (c[0], c[1])] if c.is_quantised else c.nodes
    total = cg.matmul(
        cg.swapaxes(x, -1, -2) if c.option("adjoint_x") else x, cg.swapaxes(y, -1, -2) if c.option("adjoint_y") else y
    )
    if not c.is_quantised:
        return total
    scale = np.float64(c[0].bytes.scale * c[1].bytes.scale) / np.float64(c.result.scale)
    return as_bytes(scale_factor(total, scale), c.result)
