"""Importers of classification losses."""

from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.ir.graph import Node


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood(c: Context) -> Node:
    return likelihood_loss(c, c[0], c[1])


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(c: Context) -> Any:
    log = cg.log_softmax(c[0], 1)
    return likelihood_loss(c, log, c[1]), log


def likelihood_loss(c: Context, log: Node, labels: Node) -> Node:
    """Return the weighted -log of the label's class; labels equal to `ignore_index` are ignored.

    `log` is ``[n, classes, ...]``, the labels ``[n, ...]``.
    """
    ignored = c.attribute("ignore_index")
    c.spend(nbytes=8 * log.shape[1])
    classes = np.arange(log.shape[1]).reshape(-1, *[1] * (log.ndim - 2))
    is_label = cg.equal(cg.expand_dims(labels, 1), classes)
    picked = cg.sum(cg.where(is_label, log, cg.zeros_like(log)), 1)
    weight = cg.ones(labels.shape, log.dtype)
    if c.value(2) is not None:
        per_class = cg.broadcast_to(cg.reshape(c[2], classes.shape), log.shape)
        weight = cg.sum(cg.where(is_label, per_class, cg.zeros_like(log)), 1)
    if ignored is not None:
        weight = cg.where(cg.equal(labels, ignored), cg.zeros_like(weight), weight)
    loss = -picked * weight
    kind = c.attribute("reduction", "mean")
    if kind == "none":
        return loss
    if kind not in ("mean", "sum"):
        raise FormatError(f"reduction {kind!r} is not supported. Use none, mean or sum")
    total = cg.sum(loss)
    return total if kind == "sum" else total / cg.sum(weight)
