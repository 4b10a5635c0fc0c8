"""Importers of normalisation and softmax."""

from functools import partial
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic_ops.operators import keeping, lowest, number, samples
from cgraph.ir.graph import Node
from cgraph.ops.shape import axis_of


@operator("BatchNormalization")
def batch_norm(c: Context) -> Any:
    return normalise_in_training(c) if c.attribute("training_mode", 0) else normalise(c)


@keeping(lambda c: [1])
def normalise(c: Context) -> Node:
    """Normalise with given statistics."""
    return cg.batch_norm(*(c[i] for i in range(5)), c.attribute("epsilon", 1e-5))


def normalise_in_training(c: Context) -> Any:
    """Normalise with the statistics of the batch, and update running ones."""
    x, scale, shift, mean, variance = (c[i] for i in range(5))
    axes = tuple(i for i in range(x.ndim) if i != 1)
    own_mean, own_variance = cg.mean(x, axes), cg.var(x, axes)
    momentum = c.attribute("momentum", 0.9)
    y = cg.batch_norm(x, scale, shift, own_mean, own_variance, c.attribute("epsilon", 1e-5))
    return y, mean * momentum + own_mean * (1 - momentum), variance * momentum + own_variance * (1 - momentum)


@operator("InstanceNormalization")
@samples(0)
def instance_norm(c: Context) -> Node:
    return cg.instance_norm(c[0], c[1], c[2], c.attribute("epsilon", 1e-5))


@operator("GroupNormalization")
@samples(0)
def group_norm(c: Context) -> Node:
    """Import GroupNormalization: scale and shift per group in opset 18, per channel in opset 21."""
    x, scale, shift, groups = c[0], c[1], c[2], c.required("num_groups")
    if c.opset < 21:
        scale, shift = (cg.repeat(v, x.shape[1] // groups) for v in (scale, shift))
    return cg.group_norm(x, scale, shift, groups, c.attribute("epsilon", 1e-5))


def last_axes(c: Context) -> range:
    """Return the axes from `axis` on."""
    rank = c.array(0).ndim
    return range(axis_of(c.attribute("axis", -1), rank), rank)


def over_last_axes(v: Node, shape: tuple[int, ...]) -> Node | None:
    """Return a scale or shift along the axes of this shape, the last ones; None if it differs along other axes."""
    lead = max(v.ndim - len(shape), 0)
    if any(n != 1 for n in v.shape[:lead]):
        return None
    return cg.broadcast_to(cg.reshape(v, v.shape[lead:]), shape)


@operator("LayerNormalization")
@keeping(last_axes)
def layer_norm(c: Context) -> Any:
    """Import LayerNormalization, whose scale and shift broadcast to the operand."""
    x, scale, shift = c[0], c[1], c.get(2)
    axis, eps = axis_of(c.attribute("axis", -1), x.ndim), c.attribute("epsilon", 1e-5)
    shape = x.shape[axis:]
    zeros = cg.zeros(shape, x.dtype)
    factor, term = over_last_axes(scale, shape), zeros if shift is None else over_last_axes(shift, shape)
    if factor is None or term is None:
        y = cg.layer_norm(x, cg.ones(shape, x.dtype), zeros, eps) * cg.broadcast_to(scale, x.shape)
        y = y if shift is None else y + cg.broadcast_to(shift, x.shape)
    else:
        y = cg.layer_norm(x, factor, term, eps)
    if not (c.asks(1) or c.asks(2)):
        return y
    axes = tuple(range(axis, x.ndim))
    deviation = cg.reciprocal(cg.sqrt(cg.var(x, axes, keepdims=True) + eps))
    return y, cg.mean(x, axes, keepdims=True), deviation


@operator("RMSNormalization", "SimplifiedLayerNormalization")
@keeping(last_axes)
def rms_norm(c: Context) -> Node:
    """Import RMSNormalization, whose scale broadcasts to the operand."""
    x, axis = c[0], axis_of(c.attribute("axis", -1), c[0].ndim)
    shape, factor = x.shape[axis:], over_last_axes(c[1], x.shape[axis:])
    scale = cg.reshape(cg.ones(shape, x.dtype) if factor is None else factor, (-1,))
    rows = cg.rms_norm(cg.reshape(x, (*x.shape[:axis], -1)), scale, c.attribute("epsilon", 1e-5))
    y = cg.reshape(rows, x.shape)
    return y * cg.broadcast_to(c[1], x.shape) if factor is None else y


@operator("MeanVarianceNormalization")
def mean_variance_norm(c: Context) -> Node:
    x, axes = c[0], tuple(c.attribute("axes", [0, 2, 3]))
    return (x - cg.mean(x, axes, keepdims=True)) / (cg.std(x, axes, keepdims=True) + 1e-9)


@operator("LRN")
@samples(0)
def lrn(c: Context) -> Node:
    options = c.attribute("alpha", 1e-4), c.attribute("beta", 0.75), c.attribute("bias", 1.0)
    return cg.lrn(c[0], c.required("size"), *options)


@operator("LpNormalization")
@keeping(lambda c: (c.attribute("axis", -1),), number(0))
def lp_norm(c: Context) -> Node:
    """Import LpNormalization: divide by the norm along an axis; 0 for norm 0."""
    x, axis, p = c[0], c.attribute("axis", -1), c.attribute("p", 2)
    if p not in (1, 2):
        raise FormatError(f"p={p} is not supported. Use 1 or 2")
    size = cg.abs(x) if p == 1 else cg.square(x)
    total = cg.sum(size, axis, keepdims=True)
    length = total if p == 1 else cg.sqrt(total)
    return cg.where(cg.equal(length, 0), cg.zeros_like(x), x / length)


def soft_axes(c: Context) -> tuple[int, ...]:
    """Return the axes of a softmax."""
    if c.opset >= 13:
        return (c.attribute("axis", -1),)
    rank = c.array(0).ndim
    return tuple(range(rank))[c.attribute("axis", 1) :]


@operator("Softmax", "LogSoftmax", "Hardmax")
@keeping(soft_axes, lowest)
def softmax(c: Context) -> Node:
    """Import Softmax: over all axes from `axis` on (default 1) before opset 13, along one axis since."""
    x = c[0]
    function = {"Softmax": cg.softmax, "LogSoftmax": cg.log_softmax, "Hardmax": partial(hardmax, c)}[c.kind]
    if c.opset >= 13:
        return function(x, c.attribute("axis", -1))
    axis = c.attribute("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    flat = cg.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))
    return cg.reshape(function(flat, 1), x.shape)


def hardmax(c: Context, x: Node, axis: int) -> Node:
    """Return 1 at the first maximum along an axis, else 0."""
    axis = axis_of(axis, x.ndim)
    c.spend(nbytes=8 * x.shape[axis])
    steps = np.arange(x.shape[axis]).reshape(-1, *[1] * (x.ndim - 1 - axis))
    return cg.astype(cg.equal(cg.argmax(x, axis, keepdims=True), steps), x.dtype)
