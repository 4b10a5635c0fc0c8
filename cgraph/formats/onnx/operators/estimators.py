"""Importers of linear models and support vector machines of ai.onnx.ml."""

from itertools import combinations

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.operators.scores import both_classes, class_labels, labels_of, names_labels, post_transform
from cgraph.ir.graph import Node

ROUNDS = 100  # iterations that compute class probabilities from pairwise ones, as in libsvm
CLOSE = 0.005  # tolerance of these iterations, divided by the number of classes
LEAST = 1e-7  # pairwise probabilities are clipped to LEAST and 1 - LEAST


def floats(c: Context, name: str) -> np.ndarray:
    """Return a list attribute of float32; empty if absent."""
    return np.asarray(c.numbers(name, ()), np.float32)


def rows_of(c: Context) -> Node:
    """Return the operand ``[n, columns]`` in float32."""
    return cg.astype(c[0] if c[0].ndim == 2 else cg.reshape(c[0], (1, -1)), "float32")


def linear_combination(x: Node, coefficients: np.ndarray, added: np.ndarray) -> Node:
    """Return ``[n, targets]``: products with coefficients ``[targets, columns]``."""
    product = cg.matmul(x, coefficients.reshape(-1, x.shape[1]).T)
    return product + added if added.size else product


@operator("ai.onnx.ml.LinearRegressor")
def linear_regressor(c: Context) -> Node:
    """Return the predictions of a linear model, ``[n, targets]``."""
    scores = linear_combination(rows_of(c), floats(c, "coefficients"), floats(c, "intercepts"))
    return post_transform(scores, c.attribute("post_transform", "NONE"))


@operator("ai.onnx.ml.LinearClassifier")
@names_labels
def linear_classifier(c: Context) -> tuple[Node, Node]:
    """Import LinearClassifier: the label of each row and the scores of its classes.

    Each class has an intercept, if there are any; further coefficients are not read, as in onnxruntime.
    """
    labels, how = class_labels(c), c.attribute("post_transform", "NONE")
    x, coefficients, intercepts = rows_of(c), floats(c, "coefficients"), floats(c, "intercepts")
    if intercepts.size:
        coefficients = coefficients[: intercepts.size * x.shape[1]]
    scores = linear_combination(x, coefficients, intercepts)
    if scores.shape[1] > 1:
        return labels_of(labels, cg.argmax(scores, 1)), post_transform(scores, how)
    if len(labels) == 2:
        classes = cg.astype(scores[:, 0] > 0, "int64")
        return labels_of(labels, classes), both_classes(scores, how != "LOGISTIC", how)
    first = labels[:1] if len(labels) else np.ones(1, np.int64)
    classes = scores[:, 0] > (0.0 if how == "NONE" else 0.5)
    return cg.where(classes, first, np.int64(0)), post_transform(scores, how)


def kernel_of(c: Context, x: Node, vectors: np.ndarray) -> Node:
    """Return ``[n, vectors]``: the kernel of rows and support vectors."""
    kind = c.attribute("kernel_type", "LINEAR")
    gamma, bias, degree = np.asarray(c.attribute("kernel_params") or [0, 0, 0], np.float32)
    if kind == "RBF":
        return cg.exp(-gamma * cg.maximum(distances(x, vectors), np.float32(0)))
    products = cg.matmul(x, vectors.T)
    if kind == "LINEAR":
        return products
    if kind == "POLY":
        return (products * gamma + bias) ** float(degree)
    if kind == "SIGMOID":
        return cg.tanh(products * gamma + bias)
    raise FormatError(f"kernel_type {kind!r:.40} is not supported. Use LINEAR, POLY, RBF or SIGMOID")


def distances(x: Node, vectors: np.ndarray) -> Node:
    """Return squared distances ``[n, vectors]``, from differences for accuracy."""
    difference = cg.expand_dims(x, 1) - vectors
    return cg.sum(difference * difference, -1)


@operator("ai.onnx.ml.SVMRegressor")
def svm_regressor(c: Context) -> Node:
    """Import SVMRegressor: ``[n, 1]``; 1 or -1 with `one_class`."""
    x, coefficients, added = rows_of(c), floats(c, "coefficients"), floats(c, "rho")[:1]
    count = c.attribute("n_supports", 0)
    if count:
        x = kernel_of(c, x, floats(c, "support_vectors").reshape(count, -1))
    scores = linear_combination(x, coefficients, added)
    if c.attribute("one_class", 0):
        return cg.where(scores > 0, np.float32(1), np.float32(-1))
    return post_transform(scores, c.attribute("post_transform", "NONE"))


@operator("ai.onnx.ml.SVMClassifier")
@names_labels
def svm_classifier(c: Context) -> tuple[Node, Node]:
    """Import SVMClassifier: labels by votes of pairs of classes, and pairwise scores or class probabilities."""
    labels, how = class_labels(c), c.attribute("post_transform", "NONE")
    counts = c.attribute("vectors_per_class") or []
    if not counts:
        return machine_without_vectors(c, labels, how)
    scores, votes = pairs_of(c, counts, floats(c, "coefficients"))
    likely, classes = (floats(c, "prob_a"), floats(c, "prob_b")), labels_of(labels, cg.argmax(votes, 1))
    if likely[0].size:
        return classes, post_transform(probabilities(scores, *likely, len(counts)), how)
    if len(labels) == 2:
        return classes, both_classes(scores, how in ("SOFTMAX", "SOFTMAX_ZERO"), how)
    return classes, post_transform(scores, how)


def machine_without_vectors(c: Context, labels: np.ndarray, how: str) -> tuple[Node, Node]:
    """Import a machine without support vectors: one score per class; of two, a threshold decides, as in onnxruntime."""
    coefficients, rho = floats(c, "coefficients"), floats(c, "rho")
    scores = linear_combination(rows_of(c), coefficients, rho[:1])
    classes = cg.argmax(scores, 1)
    if len(rho) == 1 and len(labels) == 2:
        largest = cg.max(scores, 1)
        second = largest >= 0.5 if (coefficients >= 0).all() else largest > 0
        classes = cg.where(second, np.int64(1), classes)
    return labels_of(labels, classes), post_transform(scores, how)


def pairs_of(c: Context, counts: list[int], coefficients: np.ndarray) -> tuple[Node, Node]:
    """Return pairwise scores ``[n, pairs]``, positive for the first class, and the wins of classes ``[n, classes]``."""
    kernel = kernel_of(c, rows_of(c), floats(c, "support_vectors").reshape(sum(counts), -1))
    table, rho = coefficients.reshape(-1, sum(counts)), floats(c, "rho")
    ends = np.cumsum([0, *counts])
    count = len(counts) * (len(counts) - 1) // 2
    c.spend(nodes=8 * count, nbytes=4.0 * count * sum(counts))
    pairs = list(combinations(range(len(counts)), 2))
    weights, first, second = np.zeros((3, len(pairs), max(sum(counts), len(counts))), np.float32)
    for number, (i, j) in enumerate(pairs):
        weights[number, ends[i] : ends[i + 1]] = table[j - 1, ends[i] : ends[i + 1]]
        weights[number, ends[j] : ends[j + 1]] = table[i, ends[j] : ends[j + 1]]
        first[number, i] = second[number, j] = 1
    scores = cg.matmul(kernel, weights[:, : sum(counts)].T) + rho
    wins = cg.astype(scores > 0, "float32")
    votes = cg.matmul(wins, first[:, : len(counts)]) + cg.matmul(1 - wins, second[:, : len(counts)])
    return scores, votes


def probabilities(scores: Node, a: np.ndarray, b: np.ndarray, count: int) -> Node:
    """Return probabilities ``[n, classes]`` from pairwise scores by Wu, Lin and Weng's second method (2004)."""
    share = cg.clip(cg.sigmoid(-(scores * a + b)), LEAST, 1 - LEAST)
    values = cg.concat([share, 1 - share, cg.broadcast_to(np.float32(0), (share.shape[0], 1))], 1)
    which = np.full((count, count), 2 * share.shape[1], np.int64)  # of the values; the last one is 0
    for k, (i, j) in enumerate(combinations(range(count), 2)):
        which[i, j], which[j, i] = k, share.shape[1] + k
    between, across = (cg.reshape(cg.take(values, x.ravel(), 1), (-1, count, count)) for x in (which, which.T))
    own = cg.sum(between * between, 1, keepdims=True)
    table = cg.where(np.eye(count, dtype=bool), own, -between * across)
    start = cg.broadcast_to(np.float32(1 / count), (scores.shape[0], count))
    return cg.while_loop(
        lambda state: cg.any(cg.logical_not(state[1] < CLOSE / count)),  # a NaN stays in its row
        lambda state: refine(table, state[0], count),
        refine(table, start, count),
        ROUNDS - 1,
    )[0]


def refine(table: Node, shares: Node, count: int) -> tuple[Node, Node]:
    """Return the probabilities after one iteration, and the errors before it; converged rows stay unchanged."""
    product = cg.sum(table * cg.expand_dims(shares, 1), -1)
    total = cg.sum(shares * product, 1, keepdims=True)
    error = cg.max(cg.abs(product - total), 1, keepdims=True)
    estimate = shares
    for t in range(count):
        own = table[:, t, t : t + 1]
        step = (total - product[:, t : t + 1]) / own
        total = (total + step * (step * own + 2 * product[:, t : t + 1])) / ((1 + step) * (1 + step))
        only = np.eye(count, dtype=np.float32)[t]
        estimate = (estimate + step * only) / (1 + step)
        product = (product + step * table[:, t]) / (1 + step)
    return cg.where(error < CLOSE / count, shares, estimate), error
