"""Losses: one number for predictions and targets, the mean over the batch."""

from collections.abc import Callable
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import Node, PositionError, ShapeError
from nn.deprecation import renamed_keyword

__all__ = ["Loss", "binary_cross_entropy", "cross_entropy", "hinge", "huber", "l1", "l2", "quadratic"]

Loss = Callable[..., Node | dict[str, Node]]
"""A function of predictions and targets. It returns one number, or parts by name, whose sum is minimised."""


@renamed_keyword("wanted", "targets")
def cross_entropy(scores: Node, targets: Node) -> Node:
    """Return the mean negative log probability of the target class.

    Parameters
        scores: logits ``[n, classes]`` or ``[n, ..., classes]``
        targets: integer classes ``[n, ...]``, or probabilities in the shape of `scores`

    A class without a score adds nothing, because a check in the graph would prevent updates in place. Training steps
    check their targets before they run (`check_classes`).
    """
    logs = cg.log_softmax(scores, axis=-1)
    return -cg.mean(cg.sum(pick_scores(logs, targets), axis=-1))


def check_classes(loss: Loss, scores: Node, targets: Any) -> None:
    """Raise PositionError when a target class of `cross_entropy` has no score."""
    classes, targets = scores.shape[-1], np.asarray(targets)
    if loss is cross_entropy and targets.dtype.kind in "iu" and targets.size:
        least, most = targets.min(), targets.max()
        if least < 0 or most >= classes:
            wrong = least if least < 0 else most
            raise PositionError(
                f"target class {wrong} has no score: {scores.name} {scores.spec} has scores of 0 to {classes - 1}. "
                "Correct the targets, or give the model more classes."
            )


def pick_scores(logs: Node, targets: Node) -> Node:
    """Return `logs` weighted by the targets; the sum over the last axis is the log probability."""
    if targets.dtype.kind == "f":
        if targets.shape == logs.shape[:-1]:
            raise ShapeError(
                f"labels must be integers, got {targets.name} {targets.spec} for scores {logs.spec}. Convert them with "
                ".astype('int64'), or pass probabilities in the shape of the scores."
            )
        same_shape(logs, targets)
        return logs * targets
    if targets.shape != logs.shape[:-1]:
        raise ShapeError(
            f"classes {targets.name} {targets.spec} do not fit scores {logs.spec}. Pass one class for each row of "
            "scores, or probabilities in the shape of the scores."
        )
    classes = cg.arange(logs.shape[-1], dtype=targets.dtype)
    return cg.where(cg.equal(cg.expand_dims(targets, targets.ndim), classes), logs, cg.zeros_like(logs))


@renamed_keyword("wanted", "targets")
def binary_cross_entropy(scores: Node, targets: Node) -> Node:
    """Return the mean negative log probability of targets 0 or 1, for scores that are logits."""
    same_shape(scores, targets)
    return cg.mean(cg.softplus(scores) - scores * targets)


@renamed_keyword("wanted", "targets")
def quadratic(predicted: Node, targets: Node) -> Node:
    """Return the mean of the squared differences of all elements."""
    same_shape(predicted, targets)
    return cg.mean(cg.square(predicted - targets))


@renamed_keyword("wanted", "targets")
def l1(predicted: Node, targets: Node) -> Node:
    """Return the mean over the batch of the sum of absolute differences."""
    same_shape(predicted, targets)
    return cg.sum(cg.abs(predicted - targets)) * (1 / predicted.shape[0])


@renamed_keyword("wanted", "targets")
def l2(predicted: Node, targets: Node) -> Node:
    """Return the mean over the batch of the Euclidean distance."""
    same_shape(predicted, targets)
    rows = cg.reshape(cg.square(predicted - targets), (predicted.shape[0], -1))
    return cg.mean(cg.sqrt(cg.sum(rows, axis=1) + 1e-12))


@renamed_keyword("wanted", "targets")
def hinge(scores: Node, targets: Node) -> Node:
    """Return the mean of ``max(0, 1 - targets * scores)``, with targets -1 or 1."""
    same_shape(scores, targets)
    return cg.mean(cg.relu(1.0 - targets * scores))


@renamed_keyword("wanted", "targets")
def huber(predicted: Node, targets: Node) -> Node:
    """Return the mean of ``d² / 2`` where the difference d is within 1, else of ``|d| - 1/2``."""
    same_shape(predicted, targets)
    d = cg.abs(predicted - targets)
    return cg.mean(cg.where(d < 1.0, 0.5 * d * d, d - 0.5))


def same_shape(x: Node, y: Node) -> None:
    """Raise ShapeError instead of broadcasting predictions against targets, which is usually a mistake."""
    if x.shape != y.shape:
        raise ShapeError(
            f"the loss compares predictions {x.name} {x.spec} with targets {y.name} {y.spec}, but their shapes must be "
            "equal. Reshape the targets, or change the last layer."
        )


def __dir__() -> list[str]:
    return __all__
