"""Losses: one number for predictions and targets, the mean over the batch."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import cgraph as cg
from cgraph import InputError, Node, PositionError, Record, ShapeError
from cgraph.record import set_field
from nn.deprecation import renamed_keyword
from nn.missing import missing_member

__all__ = ["CrossEntropy", "Loss", "binary_cross_entropy", "cross_entropy", "hinge", "huber", "l1", "l2", "quadratic"]

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


class CrossEntropy(Record):
    """`cross_entropy` with class weights and label smoothing.

    The loss of a sample is ``-sum(weights * q * log_softmax(scores))`` with
    ``q = (1 - smoothing) * target + smoothing / classes``; the result is its mean over the samples. torch divides by
    the sum of the samples' weights instead.

    Fields
        weights: positive or zero weight of each class; None for 1
        smoothing: share of each target that is spread over all classes, from 0 to 1
    Raises
        InputError: a weight is negative or not finite, or smoothing is not between 0 and 1
        ShapeError: the number of weights is not that of the scores, or as for `cross_entropy`

    Example
        nn.train(model, loader, nn.losses.CrossEntropy(weights=(1.0, 5.0), smoothing=0.1))
    """

    weights: Sequence[float] | None = None
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if self.weights is not None:
            weights = np.asarray(self.weights, np.float64)
            if weights.ndim != 1 or not ((weights >= 0) & np.isfinite(weights)).all():
                raise InputError(f"weights is {self.weights!r:.80}. Pass one finite weight >= 0 for each class.")
            set_field(self, "weights", tuple(weights.tolist()))
        if not 0 <= self.smoothing <= 1:
            raise InputError(f"smoothing is {self.smoothing!r:.60}. Pass a number from 0 to 1.")

    def __call__(self, scores: Node, targets: Node) -> Node:
        """Return the loss; `scores` and `targets` as for `cross_entropy`."""
        logs = cg.log_softmax(scores, axis=-1)
        if self.weights is not None:
            if len(self.weights) != scores.shape[-1]:
                raise ShapeError(
                    f"CrossEntropy has {len(self.weights)} weights and {scores.name} {scores.spec} has "
                    f"{scores.shape[-1]} scores. Pass one weight for each class."
                )
            logs = logs * cg.Const(np.asarray(self.weights, logs.dtype))
        loss = cg.sum(pick_scores(logs, targets), axis=-1)
        if self.smoothing:
            loss = loss * (1 - self.smoothing) + cg.mean(logs, axis=-1) * self.smoothing
        return -cg.mean(loss)


def takes_classes(loss: Loss) -> bool:
    """Return True for a loss whose integer targets are classes."""
    return loss is cross_entropy or isinstance(loss, CrossEntropy)


def check_classes(loss: Loss, scores: Node, targets: Any) -> None:
    """Raise PositionError when a target class of a cross entropy has no score."""
    classes, targets = scores.shape[-1], np.asarray(targets)
    if takes_classes(loss) and targets.dtype.kind in "iu" and targets.size:
        least, most = targets.min(), targets.max()
        if least < 0 or most >= classes:
            wrong = least if least < 0 else most
            raise PositionError(
                f"target class {wrong} has no score: {scores.name} {scores.spec} has scores of 0 to {classes - 1}. "
                "Correct the targets, or give the model more classes."
            )


def pick_scores(logs: Node, targets: Node) -> Node:
    """Return `logs` weighted by the targets; the sum over the last axis is the log probability."""
    targets = node_of(targets)
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
    count = logs.shape[-1]
    classes = cg.arange(count, dtype=np.result_type(targets.dtype, np.min_scalar_type(count)))
    return cg.where(cg.equal(cg.expand_dims(targets, targets.ndim), classes), logs, cg.zeros_like(logs))


@renamed_keyword("wanted", "targets")
def binary_cross_entropy(scores: Node, targets: Node) -> Node:
    """Return the mean negative log probability of targets 0 or 1, for scores that are logits."""
    scores, targets = same_shape(scores, targets)
    return cg.mean(cg.softplus(scores) - scores * targets)


@renamed_keyword("wanted", "targets")
def quadratic(predicted: Node, targets: Node) -> Node:
    """Return the mean of the squared differences of all elements."""
    predicted, targets = same_shape(predicted, targets)
    return cg.mean(cg.square(predicted - targets))


@renamed_keyword("wanted", "targets")
def l1(predicted: Node, targets: Node) -> Node:
    """Return the mean over the batch of the sum of absolute differences."""
    predicted, targets = same_shape(predicted, targets)
    return cg.sum(cg.abs(predicted - targets)) * (1 / batch_of(predicted))


@renamed_keyword("wanted", "targets")
def l2(predicted: Node, targets: Node) -> Node:
    """Return the mean over the batch of the Euclidean distance."""
    predicted, targets = same_shape(predicted, targets)
    rows = cg.reshape(cg.square(predicted - targets), (batch_of(predicted), -1))
    return cg.mean(cg.sqrt(cg.sum(rows, axis=1) + 1e-12))


@renamed_keyword("wanted", "targets")
def hinge(scores: Node, targets: Node) -> Node:
    """Return the mean of ``max(0, 1 - targets * scores)``, with targets -1 or 1."""
    scores, targets = same_shape(scores, targets)
    return cg.mean(cg.relu(1.0 - targets * scores))


@renamed_keyword("wanted", "targets")
def huber(predicted: Node, targets: Node) -> Node:
    """Return the mean of ``d² / 2`` where the difference d is within 1, else of ``|d| - 1/2``."""
    predicted, targets = same_shape(predicted, targets)
    d = cg.abs(predicted - targets)
    return cg.mean(cg.where(d < 1.0, 0.5 * d * d, d - 0.5))


def node_of(x: Any) -> Node:
    """Return a node or a traced array unchanged, and anything else as a constant."""
    return x if hasattr(x, "spec") else cg.Const(x)


def same_shape(x: Any, y: Any) -> tuple[Node, Node]:
    """Return predictions and targets as nodes. ShapeError instead of broadcasting, which is usually a mistake."""
    x, y = node_of(x), node_of(y)
    if x.shape != y.shape:
        raise ShapeError(
            f"the loss compares predictions {x.name} {x.spec} with targets {y.name} {y.spec}, but their shapes must be "
            "equal. Reshape the targets, or change the last layer."
        )
    return x, y


def batch_of(predicted: Node) -> int:
    """Return the number of samples. ShapeError if there are none."""
    if not predicted.shape or not predicted.shape[0]:
        raise ShapeError(f"{predicted.name} {predicted.spec} has no samples. Pass predictions [n, ...], with n > 0.")
    return predicted.shape[0]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # for a type checker, the module would have every name

    def __getattr__(name: str) -> object:
        """Raise AttributeError with the name to use instead."""
        if name.startswith("_"):  # names that Python looks up in any module
            raise AttributeError(f"nn.losses has no attribute {name!r}")
        raise missing_member("nn.losses", name, __all__)
