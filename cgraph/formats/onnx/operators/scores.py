"""Scores and labels of classes, shared by classifiers of ai.onnx.ml."""

from functools import wraps
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, Importer, Value, operator
from cgraph.formats.onnx.vocabulary import CodedStrings
from cgraph.ir.graph import Node

NEAR_ZERO = 1e-7  # SOFTMAX_ZERO leaves scores of smaller magnitude unchanged


def class_labels(c: Context) -> np.ndarray:
    """Return the int64 label of each class; the codes of names that are strings."""
    names = c.attribute("classlabels_strings", [])
    whole = c.numbers("classlabels_int64s", c.numbers("classlabels_ints", ()))
    return c.vocabulary.codes(names) if names else np.asarray(whole, np.int64)


def names_labels(importer: Importer) -> Importer:
    """Declare an importer of a classifier, whose first result holds strings if the names of its classes are strings."""

    @wraps(importer)
    def named(c: Context) -> Value:
        label, *others = importer(c)
        return (CodedStrings(label) if c.attribute("classlabels_strings") else label, *others)

    return named


def labels_of(labels: np.ndarray, places: Node) -> Node:
    """Return the labels of classes by their indices."""
    return cg.take(labels, places, 0) if len(labels) else places


def post_transform(scores: Node, how: str) -> Node:
    """Apply a post_transform to ``[n, classes]``."""
    if how not in TRANSFORMS:
        raise FormatError(f"post_transform {how!r:.40} is not supported. Use {', '.join(TRANSFORMS)}")
    return TRANSFORMS[how](scores)


def softmax_zero(x: Node) -> Node:
    """Return the softmax in which scores near 0 are scaled but not exponentiated."""
    largest = cg.max(x, -1, keepdims=True)
    scaled = cg.where(cg.abs(x) > NEAR_ZERO, cg.exp(x - largest), x * cg.exp(-largest))
    return scaled / cg.sum(scaled, -1, keepdims=True)


def probit(x: Node) -> Node:
    """Return the quantile of the normal distribution, by the operators' approximation (Winitzki, 2008)."""
    x = 2 * x - 1
    log = cg.log((1 - x) * (1 + x))
    half = 2 / (np.pi * 0.147) + 0.5 * log
    return np.sqrt(2) * cg.sign(x) * cg.sqrt(cg.sqrt(half * half - log / 0.147) - half)


TRANSFORMS: dict[str, Any] = {
    "NONE": lambda x: x,
    "LOGISTIC": lambda x: cg.sigmoid(x),
    "SOFTMAX": lambda x: cg.softmax(x, -1),
    "SOFTMAX_ZERO": softmax_zero,
    "PROBIT": probit,
}


def both_classes(score: Node, positive: bool, how: str) -> Node:
    """Return ``[n, 2]`` from the score ``[n, 1]`` of the second of two classes.

    Parameters
        positive: no weight is negative, so scores are probabilities
    """
    if how == "PROBIT":
        return probit(score)
    if positive:
        return cg.concat([1 - score, score], 1)
    both = cg.concat([-score, score], 1)
    return post_transform(both, how) if how == "LOGISTIC" else both


@operator("ai.onnx.ml.ZipMap")
def zip_map(c: Context) -> Node:
    """Import ZipMap: return the array of scores ``[n, classes]`` in place of a dictionary per row."""
    return c[0]
