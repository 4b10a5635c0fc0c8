"""Losses: one number of what a model predicts and what is wanted, the mean over the batch."""

from collections.abc import Callable
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import Node, PositionError, ShapeError

__all__ = ["Loss", "binary_cross_entropy", "cross_entropy", "hinge", "huber", "l1", "l2", "quadratic"]

Loss = Callable[..., Node | dict[str, Node]]
"""Of what a model predicts and what is wanted: one number, or parts by name, whose sum is minimised."""


def cross_entropy(scores: Node, wanted: Node) -> Node:
    """Minus the log probability of the wanted class.

    Parameters
        scores: logits ``[n, classes]`` or ``[n, ..., classes]``
        wanted: integer classes ``[n, ...]``, or probabilities in the shape of `scores`

    A class that has no score adds nothing: to find it in the graph would keep weights from being changed in place. The
    steps of training look at what they are given (`check_classes`).
    """
    logs = cg.log_softmax(scores, axis=-1)
    return -cg.mean(cg.sum(picked(logs, wanted), axis=-1))


def check_classes(loss: Loss, scores: Node, wanted: Any) -> None:
    """PositionError when `cross_entropy` of these scores is asked for a class that has none."""
    classes, wanted = scores.shape[-1], np.asarray(wanted)
    if loss is cross_entropy and wanted.dtype.kind in "iu" and wanted.size:
        least, most = wanted.min(), wanted.max()
        if least < 0 or most >= classes:
            wrong = least if least < 0 else most
            raise PositionError(
                f"class {wrong} is wanted, and {scores.name} {scores.spec} has scores of 0 to {classes - 1}"
            )


def picked(logs: Node, wanted: Node) -> Node:
    """`logs` weighted by what is wanted; the sum over the last axis is the log probability."""
    if wanted.dtype.kind == "f":
        same_shape(logs, wanted)
        return logs * wanted
    if wanted.shape != logs.shape[:-1]:
        raise ShapeError(f"classes {wanted.name} {wanted.spec} for scores {logs.spec}")
    classes = cg.arange(logs.shape[-1], dtype=wanted.dtype)
    return cg.where(cg.equal(cg.expand_dims(wanted, wanted.ndim), classes), logs, cg.zeros_like(logs))


def binary_cross_entropy(scores: Node, wanted: Node) -> Node:
    """Minus the log probability of the wanted answers, 0 or 1, given logits."""
    same_shape(scores, wanted)
    return cg.mean(cg.softplus(scores) - scores * wanted)


def quadratic(predicted: Node, wanted: Node) -> Node:
    """Mean of the squared differences of all elements."""
    same_shape(predicted, wanted)
    return cg.mean(cg.square(predicted - wanted))


def l1(predicted: Node, wanted: Node) -> Node:
    """Mean over the batch of the sum of absolute differences."""
    same_shape(predicted, wanted)
    return cg.sum(cg.abs(predicted - wanted)) * (1 / predicted.shape[0])


def l2(predicted: Node, wanted: Node) -> Node:
    """Mean over the batch of the Euclidean distance."""
    same_shape(predicted, wanted)
    rows = cg.reshape(cg.square(predicted - wanted), (predicted.shape[0], -1))
    return cg.mean(cg.sqrt(cg.sum(rows, axis=1) + 1e-12))


def hinge(scores: Node, wanted: Node) -> Node:
    """Mean of ``max(0, 1 - wanted * scores)``, with wanted -1 or 1."""
    same_shape(scores, wanted)
    return cg.mean(cg.relu(1.0 - wanted * scores))


def huber(predicted: Node, wanted: Node) -> Node:
    """Mean of ``d² / 2`` where the difference d is within 1, else of ``|d| - 1/2``."""
    same_shape(predicted, wanted)
    d = cg.abs(predicted - wanted)
    return cg.mean(cg.where(d < 1.0, 0.5 * d * d, d - 0.5))


def same_shape(x: Node, y: Node) -> None:
    """Refuse to broadcast predictions against what is wanted: that is a mistake more often than not."""
    if x.shape != y.shape:
        raise ShapeError(f"a loss of {x.name} {x.spec} against {y.name} {y.spec}")
