"""Losses: one number of what a model predicts and what is wanted, the mean over the batch."""

from collections.abc import Callable
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import Node, PositionError, ShapeError
from nn.deprecation import renamed_keyword

__all__ = ["Loss", "binary_cross_entropy", "cross_entropy", "hinge", "huber", "l1", "l2", "quadratic"]

Loss = Callable[..., Node | dict[str, Node]]
"""Of what a model predicts and what is wanted: one number, or parts by name, whose sum is minimised."""


@renamed_keyword("wanted", "targets")
def cross_entropy(scores: Node, targets: Node) -> Node:
    """Minus the log probability of the wanted class.

    Parameters
        scores: logits ``[n, classes]`` or ``[n, ..., classes]``
        wanted: integer classes ``[n, ...]``, or probabilities in the shape of `scores`

    A class that has no score adds nothing: to find it in the graph would keep weights from being changed in place. The
    steps of training look at what they are given (`check_classes`).
    """
    logs = cg.log_softmax(scores, axis=-1)
    return -cg.mean(cg.sum(pick_scores(logs, targets), axis=-1))


def check_classes(loss: Loss, scores: Node, targets: Any) -> None:
    """PositionError when `cross_entropy` of these scores is asked for a class that has none."""
    classes, targets = scores.shape[-1], np.asarray(targets)
    if loss is cross_entropy and targets.dtype.kind in "iu" and targets.size:
        least, most = targets.min(), targets.max()
        if least < 0 or most >= classes:
            wrong = least if least < 0 else most
            raise PositionError(
                f"class {wrong} is wanted, and {scores.name} {scores.spec} has scores of 0 to {classes - 1}"
            )


def pick_scores(logs: Node, targets: Node) -> Node:
    """`logs` weighted by what is wanted; the sum over the last axis is the log probability."""
    if targets.dtype.kind == "f":
        same_shape(logs, targets)
        return logs * targets
    if targets.shape != logs.shape[:-1]:
        raise ShapeError(f"classes {targets.name} {targets.spec} for scores {logs.spec}")
    classes = cg.arange(logs.shape[-1], dtype=targets.dtype)
    return cg.where(cg.equal(cg.expand_dims(targets, targets.ndim), classes), logs, cg.zeros_like(logs))


@renamed_keyword("wanted", "targets")
def binary_cross_entropy(scores: Node, targets: Node) -> Node:
    """Minus the log probability of the wanted answers, 0 or 1, given logits."""
    same_shape(scores, targets)
    return cg.mean(cg.softplus(scores) - scores * targets)


@renamed_keyword("wanted", "targets")
def quadratic(predicted: Node, targets: Node) -> Node:
    """Mean of the squared differences of all elements."""
    same_shape(predicted, targets)
    return cg.mean(cg.square(predicted - targets))


@renamed_keyword("wanted", "targets")
def l1(predicted: Node, targets: Node) -> Node:
    """Mean over the batch of the sum of absolute differences."""
    same_shape(predicted, targets)
    return cg.sum(cg.abs(predicted - targets)) * (1 / predicted.shape[0])


@renamed_keyword("wanted", "targets")
def l2(predicted: Node, targets: Node) -> Node:
    """Mean over the batch of the Euclidean distance."""
    same_shape(predicted, targets)
    rows = cg.reshape(cg.square(predicted - targets), (predicted.shape[0], -1))
    return cg.mean(cg.sqrt(cg.sum(rows, axis=1) + 1e-12))


@renamed_keyword("wanted", "targets")
def hinge(scores: Node, targets: Node) -> Node:
    """Mean of ``max(0, 1 - wanted * scores)``, with wanted -1 or 1."""
    same_shape(scores, targets)
    return cg.mean(cg.relu(1.0 - targets * scores))


@renamed_keyword("wanted", "targets")
def huber(predicted: Node, targets: Node) -> Node:
    """Mean of ``d² / 2`` where the difference d is within 1, else of ``|d| - 1/2``."""
    same_shape(predicted, targets)
    d = cg.abs(predicted - targets)
    return cg.mean(cg.where(d < 1.0, 0.5 * d * d, d - 0.5))


def same_shape(x: Node, y: Node) -> None:
    """Refuse to broadcast predictions against what is wanted: that is a mistake more often than not."""
    if x.shape != y.shape:
        raise ShapeError(f"a loss of {x.name} {x.spec} against {y.name} {y.spec}")
