"""Operators and functions of Keras on sequences, beside NumPy."""

import numpy as np
import pytest

from tests.support.keras_networks import IDS, WEIGHTS, C, E, N, T, X, layer, normal, run, start
from tests.support.tolerance import assert_near


@pytest.mark.parametrize("axis", [1, 2, 3, -1, -2, -3])
def test_a_sequence_gets_an_axis_in_the_order_of_keras(axis):
    rows = [start("x", (T, C)), layer("ExpandDims", "d", ["x"], {"axis": axis}), layer("ZerosLike", "z", ["d"])]
    found, zeros = run(rows, {}, [X], [("d", 0), ("z", 0)])
    np.testing.assert_array_equal(np.moveaxis(found, 1, -1), np.expand_dims(X, axis), strict=True)
    np.testing.assert_array_equal(zeros, found * 0, strict=True)


def test_embeddings_of_floats_and_repeated_vectors():
    rows = [start("i", (T,)), layer("Embedding", "e", ["i"]), layer("Flatten", "f", ["e"])]
    rows.append(layer("RepeatVector", "r", ["f"], {"n": 2}))
    found = run(rows, WEIGHTS, [IDS.astype("f4")], [("e", 0), ("r", 0)])
    np.testing.assert_array_equal(found[0], E)
    np.testing.assert_array_equal(found[1], np.stack([E.reshape(N, -1)] * 2, 1))


FLAT = normal(N, C)


@pytest.mark.parametrize(
    ("a", "b", "axes", "rule"),
    [
        (X, X, 2, "ntc,nsc->nts"), (X, X, 1, "ntc,ntd->ncd"),
        (X, FLAT, [2, 1], "ntc,nc->nt"), (FLAT, X, [1, 2], "nc,ntc->nt"),
        (X, normal(N, C, 2), [-1, 1], "ntc,ncd->ntd"), (FLAT, FLAT[::-1], -1, "nc,nc->n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("normalize", [False, True])
def test_products_over_chosen_axes(a, b, axes, rule, normalize):
    rows = [
        start("a", a.shape[1:]),
        start("b", b.shape[1:]),
        layer("Dot", "d", ["a", "b"], {"axes": axes, "normalize": normalize}),
    ]
    (found,) = run(rows, {}, [a, np.ascontiguousarray(b)], [("d", 0)])
    if normalize:
        pair = axes if isinstance(axes, list) else [axes, axes]
        a, b = (x / np.linalg.norm(x, axis=axis, keepdims=True) for x, axis in zip((a, b), pair))
    want = np.einsum(rule, a, b)
    assert_near(found, want if want.ndim > 1 else want[:, None], "float32 sums near zero")


def test_norms_of_sequences():
    scale, shift = normal(C), normal(C)
    rows = [start("x", (T, C))]
    rows.append(layer("GroupNormalization", "g", ["x"], {"groups": 2, "axis": -1, "epsilon": 0.1}))
    rows.append(layer("GroupNormalization", "i", ["x"], {"groups": -1, "axis": 2, "epsilon": 0.1, "scale": False}))
    rows.append(layer("UnitNormalization", "u", ["x"], {"axis": -1}))
    rows.append(layer("UnitNormalization", "v", ["x"], {"axis": [1, 2]}))
    rows.append(layer("RMSNormalization", "r", ["x"], {"axis": -1, "epsilon": 0.1}))
    rows.append(layer("BatchNormalization", "b", ["x"], {"axis": [2], "epsilon": 0.1}))
    moving = {"moving_mean": shift, "moving_variance": scale**2}
    weights = {"g": {"gamma": scale, "beta": shift}, "i": {"beta": shift}, "r": {"scale": scale}, "b": moving}
    found = run(rows, weights, [X], [(name, 0) for name in "giuvrb"])
    x = X.astype(float)
    groups = x.reshape(N, T, 2, 2)
    mean, var = groups.mean((1, 3), keepdims=True), groups.var((1, 3), keepdims=True)
    wanted = [
        ((groups - mean) / np.sqrt(var + 0.1)).reshape(X.shape) * scale + shift,
        (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 0.1) + shift,
        x / np.linalg.norm(x, axis=-1, keepdims=True),
        x / np.sqrt((x * x).sum((1, 2), keepdims=True)),
        x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.1) * scale,
        (x - shift) / np.sqrt(scale**2 + 0.1),
    ]
    for got, want in zip(found, wanted):
        assert_near(got, want, "float32 sums near zero")


@pytest.mark.parametrize(
    ("function", "rule"),
    [("__operators__.add", np.add), ("math.add", np.add), ("__operators__.mul", np.multiply),
     ("math.multiply", np.multiply), ("__operators__.sub", np.subtract), ("math.subtract", np.subtract),
     ("__operators__.truediv", np.divide), ("math.truediv", np.divide), ("math.divide", np.divide)],
)  # fmt: skip
def test_operators_that_keras_2_writes_as_functions(function, rule):
    rows = [start("x", (T, C)), start("y", (T, C))]
    rows.append(
        {
            **layer("TFOpLambda", "a", [], {"function": function}),
            "inbound_nodes": [["x", 0, 0, {"y": ["y", 0, 0], "name": None}]],
        }
    )
    rows.append({**layer("TFOpLambda", "b", [], {"function": function}), "inbound_nodes": [["x", 0, 0, {"y": 2.0}]]})
    found = run(rows, {}, [X, X[::-1].copy()], [("a", 0), ("b", 0)])
    assert_near(found[0], rule(X, X[::-1]), "float32 sums near zero")
    assert_near(found[1], rule(X, np.float32(2)), "float32 sums near zero")


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 3, 2), (4, 3, 2, 5)])
def test_any_is_along_an_axis_of_keras_and_what_is_left_has_its_order(shape, keep):
    x = np.random.default_rng(1).random((N, *shape)) > 0.7
    for axis in (*range(1, x.ndim), -1):
        rows = [start("x", shape, "bool"), layer("Any", "a", ["x"], {"axis": axis, "keepdims": keep})]
        given = np.ascontiguousarray(np.moveaxis(x, -1, 1)) if x.ndim > 3 else x
        (found,) = run(rows, {}, [given], [("a", 0)])
        found = np.moveaxis(found, 1, -1) if found.ndim > 3 else found
        np.testing.assert_array_equal(found, x.any(axis, keepdims=keep), strict=True)
