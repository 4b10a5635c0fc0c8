"""Metrics: figures that people read, of what a model predicts and what is wanted, over any number of batches.

A metric adds something up over batches, and makes its figure of the sum: so a figure of many batches is that of all
their samples at once. A plain function of nodes that gives one number is a metric too: its mean over the samples.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import InputError, Node, Record, ShapeError
from nn.checks import check_kind

__all__ = ["Metric", "accuracy", "confusion", "mean_iou", "top_k"]


def ratio(sums: np.ndarray) -> np.ndarray:
    """The first of two sums over the second; not a number when there was nothing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[0] / sums[1])


class Metric(Record):
    """A figure of predictions.

    Fields
        name: by which it is shown and kept
        part: of what is predicted and what is wanted, the node that is added up over the batches, in float64
        figure: of that sum
    """

    name: str
    part: Callable[..., Node]
    figure: Callable[[np.ndarray], np.ndarray] = ratio


def accuracy() -> Metric:
    """The share of predictions whose largest score is the wanted class's.

    Scores are ``[n, ..., classes]``; wanted are classes ``[n, ...]`` or scores of their own.
    """
    return Metric(
        "accuracy", lambda scores, targets: share(cg.equal(cg.argmax(scores, -1), classes_of(targets, scores)))
    )


def top_k(k: int) -> Metric:
    """The share of predictions of which the wanted class is among the `k` with the largest scores."""

    def part(scores: Node, targets: Node) -> Node:
        _, places = cg.top_k(scores, k, axis=-1)
        right = cg.equal(places, cg.expand_dims(classes_of(targets, scores), -1))
        return share(cg.any(right, axis=-1))

    return Metric(f"top_{k}", part)


def confusion(classes: int) -> Metric:
    """How often each class (rows) was taken for each (columns) ``[classes, classes]``."""
    return Metric("confusion", lambda scores, targets: pairs(scores, targets, classes), np.asarray)


def mean_iou(classes: int) -> Metric:
    """The mean over classes of intersection over union, of those that were wanted or predicted at all."""

    def figure(counts: np.ndarray) -> np.ndarray:
        both = np.diagonal(counts)
        either = counts.sum(0) + counts.sum(1) - both
        return np.asarray(np.mean(both[either > 0] / either[either > 0])) if either.any() else np.asarray(np.nan)

    return Metric("mean_iou", lambda scores, targets: pairs(scores, targets, classes), figure)


def share(right: Node) -> Node:
    """How many are true, and how many there are."""
    return cg.stack([cg.sum(cg.astype(right, "float64")), cg.Const(np.float64(right.size))])


def pairs(scores: Node, targets: Node, classes: int) -> Node:
    """Counts of wanted and predicted classes."""
    if scores.shape[-1] != classes:
        raise ShapeError(f"a metric of {classes} classes, and {scores.name} {scores.spec} has scores of another number")
    predictions, asked = (
        cg.reshape(cg.one_hot(x, classes, dtype="float64"), (-1, classes))
        for x in (cg.argmax(scores, -1), classes_of(targets, scores))
    )
    return cg.matmul(cg.transpose(asked), predictions)


def classes_of(targets: Node, scores: Node) -> Node:
    """Wanted classes, also of wanted scores."""
    if targets.shape == scores.shape and targets.dtype.kind == "f":
        return cg.argmax(targets, -1)
    if targets.shape != scores.shape[:-1]:
        raise ShapeError(f"classes {targets.name} {targets.spec} for scores {scores.spec}")
    return cg.astype(targets, "int64")


def metrics_of(metrics: Sequence[Metric | Callable[..., Node]]) -> tuple[Metric, ...]:
    """Metrics of what a caller names. InputError when two have one name."""
    check_kind("metrics", metrics, Iterable, "several, such as [nn.metrics.accuracy()]")
    for x in metrics:
        check_kind("one of metrics", x, Metric | Callable, "an nn.metrics.Metric or a function")
    records = tuple(x if isinstance(x, Metric) else mean_of(x) for x in metrics)
    names = [x.name for x in records]
    if len({*names}) != len(names):
        raise InputError(f"metrics are called {', '.join(names)}; each needs a name of its own")
    return records


def mean_of(function: Callable[..., Node]) -> Metric:
    """The mean over samples of what a function says of a batch."""

    def part(predicted: Node, *targets: Node) -> Node:
        number = function(predicted, *targets)
        if number.shape:
            raise ShapeError(
                f"{function.__name__} gives {number.spec}; a metric is one number, or an nn.metrics.Metric"
            )
        n = predicted.shape[0]
        return cg.stack([cg.astype(number, "float64") * n, cg.Const(np.float64(n))])

    return Metric(function.__name__, part)


class Tally:
    """Sums of metrics over batches. Changes: the sums."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.metrics = tuple(metrics)
        self.sums: dict[str, np.ndarray] = {}

    def add(self, parts: Sequence[np.ndarray]) -> None:
        """One batch more."""
        for metric, part in zip(self.metrics, parts):
            self.sums[metric.name] = self.sums.get(metric.name, 0.0) + np.asarray(part)

    def figures(self) -> dict[str, np.ndarray]:
        """Of all batches since `clear`."""
        return {x.name: x.figure(self.sums[x.name]) for x in self.metrics if x.name in self.sums}

    def clear(self) -> None:
        self.sums = {}


def figures_text(figures: Mapping[str, Any]) -> str:
    """Those figures that are one number, as text for a progress bar."""
    return "".join(f"{name} {float(x):.4f}  " for name, x in figures.items() if np.ndim(x) == 0)
