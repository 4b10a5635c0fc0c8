"""Metrics: figures of predictions and targets over any number of batches.

A metric adds up sums over batches and computes its figure from them, so the figure of many batches is that of all their
samples at once. A plain function of nodes that returns one number is a metric too: its mean over the samples.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import cgraph as cg
from cgraph import InputError, Node, Record, ShapeError
from nn.checks import check_kind
from nn.missing import missing_member

__all__ = ["Metric", "accuracy", "confusion", "mean_iou", "top_k"]


def ratio(sums: np.ndarray) -> np.ndarray:
    """Return the first of two sums divided by the second; NaN for 0 / 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[0] / sums[1])


class Metric(Record):
    """A figure of predictions and targets.

    Fields
        name: its name in the progress bar and in the History
        part: function of predictions and targets that returns the node to sum over the batches, in float64
        figure: function of that sum that returns the figure
    """

    name: str
    part: Callable[..., Node]
    figure: Callable[[np.ndarray], np.ndarray] = ratio


def accuracy() -> Metric:
    """Return the metric of the share of predictions whose largest score is that of the target class.

    Scores are ``[n, ..., classes]``; targets are classes ``[n, ...]`` or scores.
    """
    return Metric(
        "accuracy", lambda scores, targets: share(cg.equal(cg.argmax(scores, -1), classes_of(targets, scores)))
    )


def top_k(k: int) -> Metric:
    """Return the metric of the share of predictions whose target class is among the `k` largest scores."""

    def part(scores: Node, targets: Node) -> Node:
        _, places = cg.top_k(scores, k, axis=-1)
        right = cg.equal(places, cg.expand_dims(classes_of(targets, scores), -1))
        return share(cg.any(right, axis=-1))

    return Metric(f"top_{k}", part)


def confusion(classes: int) -> Metric:
    """Return the metric that counts predictions by target class (rows) and predicted class (columns)."""
    return Metric("confusion", lambda scores, targets: pairs(scores, targets, classes), np.asarray)


def mean_iou(classes: int) -> Metric:
    """Return the metric of intersection over union, the mean over classes that are a target or a prediction."""

    def figure(counts: np.ndarray) -> np.ndarray:
        both = np.diagonal(counts)
        either = counts.sum(0) + counts.sum(1) - both
        return np.asarray(np.mean(both[either > 0] / either[either > 0])) if either.any() else np.asarray(np.nan)

    return Metric("mean_iou", lambda scores, targets: pairs(scores, targets, classes), figure)


def share(right: Node) -> Node:
    """Return the number of true elements and the number of elements."""
    return cg.stack([cg.sum(cg.astype(right, "float64")), cg.Const(np.float64(right.size))])


def pairs(scores: Node, targets: Node, classes: int) -> Node:
    """Return the counts ``[classes, classes]`` of target and predicted classes."""
    if scores.shape[-1] != classes:
        raise ShapeError(
            f"the metric has {classes} classes and {scores.name} {scores.spec} has {scores.shape[-1]} scores. Pass the "
            "metric the number of classes of the model."
        )
    predictions, asked = (
        cg.reshape(cg.one_hot(x, classes, dtype="float64"), (-1, classes))
        for x in (cg.argmax(scores, -1), classes_of(targets, scores))
    )
    return cg.matmul(cg.transpose(asked), predictions)


def classes_of(targets: Node, scores: Node) -> Node:
    """Return the target classes, int64, of classes or scores."""
    if targets.shape == scores.shape and targets.dtype.kind == "f":
        return cg.argmax(targets, -1)
    if targets.shape != scores.shape[:-1]:
        raise ShapeError(
            f"classes {targets.name} {targets.spec} do not fit scores {scores.spec}. Pass one class for each row of "
            "scores."
        )
    return cg.astype(targets, "int64")


def metrics_of(metrics: Sequence[Metric | Callable[..., Node]]) -> tuple[Metric, ...]:
    """Return metrics and functions as metrics. InputError when two have the same name."""
    check_kind("metrics", metrics, Iterable, "a list of metrics, such as [nn.metrics.accuracy()]")
    each = tuple(metrics)
    for x in each:
        check_kind("one of metrics", x, Metric | Callable, "an nn.metrics.Metric or a function")
    records = tuple(x if isinstance(x, Metric) else mean_of(x) for x in each)
    names = [x.name for x in records]
    if len({*names}) != len(names):
        raise InputError(
            f"metrics are called {', '.join(names)}. Give each a different name, as in nn.metrics.Metric(name, …)."
        )
    return records


def mean_of(function: Callable[..., Node]) -> Metric:
    """Return the metric of the mean over samples of a function of a batch; an object without a name has its class's."""
    name = getattr(function, "__name__", type(function).__name__)

    def part(predicted: Node, *targets: Node) -> Node:
        number = function(predicted, *targets)
        if number.shape:
            raise ShapeError(f"{name} returns {number.spec}. Return one number, or pass an nn.metrics.Metric.")
        n = predicted.shape[0]
        return cg.stack([cg.astype(number, "float64") * n, cg.Const(np.float64(n))])

    return Metric(name, part)


class Tally:
    """Sums of metrics over batches. Changes: the sums."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.metrics = tuple(metrics)
        self.sums: dict[str, np.ndarray] = {}

    def add(self, parts: Sequence[np.ndarray]) -> None:
        """Add the sums of one batch."""
        for metric, part in zip(self.metrics, parts):
            self.sums[metric.name] = self.sums.get(metric.name, 0.0) + np.asarray(part)

    def figures(self) -> dict[str, np.ndarray]:
        """Return the figures of all batches since `clear`."""
        return {x.name: x.figure(self.sums[x.name]) for x in self.metrics if x.name in self.sums}

    def clear(self) -> None:
        """Forget all batches."""
        self.sums = {}


def figures_text(figures: Mapping[str, Any]) -> str:
    """Return the scalar figures as text for a progress bar."""
    return "".join(f"{name} {float(x):.4f}  " for name, x in figures.items() if np.ndim(x) == 0)


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # for a type checker, the module would have every name

    def __getattr__(name: str) -> object:
        """Raise AttributeError with the name to use instead."""
        if name.startswith("_"):  # names that Python looks up in any module
            raise AttributeError(f"nn.metrics has no attribute {name!r}")
        raise missing_member("nn.metrics", name, __all__)
