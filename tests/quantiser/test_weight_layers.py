"""Layers with constant weights: what their weights and bias contain, where they end, and which nodes are none."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import Node
from cgraph.quantiser.layers import WeightLayer
from cgraph.quantiser.network import network_of, prepare
from cgraph.quantiser.rebuild import apply_layer
from tests.quantiser.nets import Net
from tests.support.tolerance import assert_close

IMAGE, ROWS = cg.Var((2, 3, 6, 5), name="image"), cg.Var((4, 6), name="rows")
NET = Net(3)
FILTERS, MATRIX, OTHER = NET.normal(4, 3, 3, 3), NET.normal(6, 5), NET.normal(5, 5)
FACTOR, TERM, ROW = NET.normal(4, 1, 1), NET.normal(4, 1, 1), NET.normal(5)
PLANE, COLUMN = NET.normal(2, 4, 4, 3), NET.normal(4, 1)


def conv() -> Node:
    return cg.conv2d(IMAGE, cg.Const(FILTERS))


def product() -> Node:
    return ROWS @ cg.Const(MATRIX)


ENDS = {
    "alone": (conv, "conv2d"),
    "term": (lambda: conv() + TERM, "add"),
    "term on the left": (lambda: TERM + conv(), "add"),
    "factor": (lambda: FACTOR * conv(), "multiply"),
    "factor and term": (lambda: conv() * FACTOR + TERM, "add"),
    "term and factor": (lambda: (TERM + conv()) * FACTOR, "multiply"),
    "difference": (lambda: conv() - TERM, "subtract"),
    "groups": (lambda: cg.conv2d(IMAGE, FILTERS[:3, :1], 2, 1, 1, 3) + TERM[:3], "add"),
    "of each pixel": (lambda: conv() + PLANE, "conv2d"),
    "after a bound": (lambda: cg.relu(conv()) + TERM, "conv2d"),
    "product": (product, "matmul"),
    "row": (lambda: product() + ROW, "add"),
    "row on the left": (lambda: ROW + product(), "add"),
    "row of one sample": (lambda: product() + ROW[None], "add"),
    "column": (lambda: product() + COLUMN, "matmul"),
    "column of as many rows as columns": (lambda: ROWS @ cg.Const(MATRIX[:, :4]) + COLUMN, "matmul"),
    "unknown row": (lambda: product() + cg.exp(cg.sum(ROWS)) * ROW, "matmul"),
    "factor of a product": (lambda: product() * ROW, "matmul"),
    "number": (lambda: product() + 1.5, "matmul"),
}


def layers(*outputs: Node) -> tuple[WeightLayer, ...]:
    return network_of(prepare(outputs, (IMAGE, ROWS))).layers


@pytest.mark.parametrize("name", ENDS)
def test_a_layer_ends_after_the_factors_and_terms_that_its_weights_and_bias_contain(name):
    build, end = ENDS[name]
    (layer,) = layers(cg.tanh(build()))
    assert layer.end.op.name == end and any(layer.x is x for x in (IMAGE, ROWS))
    assert layer.weights.dtype == layer.bias.dtype == np.float32
    assert layer.bias.shape == (layer.weights.shape[layer.axis],)
    values = {x: np.random.default_rng(0).standard_normal(x.shape).astype("f4") for x in (IMAGE, ROWS)}
    again = apply_layer(layer, layer.x, cg.Const(layer.weights), cg.Const(layer.bias))
    assert_close(*evaluate([again, layer.end], values))
    assert layer.last is layer.end or name == "after a bound"


@pytest.mark.parametrize("build", [conv, product, lambda: conv() * FACTOR])
def test_a_layer_ends_before_a_value_that_others_read_or_that_is_an_output(build):
    term = ROW if build is product else TERM
    before = build()
    for outputs in ((before + term, before), (before, before + term), (cg.tanh(before), cg.exp(before + term))):
        (layer,) = layers(*outputs)
        assert layer.last is layer.end and layer.end.op.name == before.op.name and not layer.bias.any()


BOUNDS = {
    "relu": (cg.relu, True),
    "relu6": (lambda x: cg.clip(x, 0, 6), True),
    "maximum": (lambda x: cg.maximum(-1, x), True),
    "both": (lambda x: cg.minimum(cg.relu(x), 3), True),
    "array": (lambda x: cg.maximum(x, np.arange(3, dtype="f4")), False),
    "tanh": (cg.tanh, False),
    "itself": (lambda x: cg.maximum(x, -x), False),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_follow_a_layer_as_far_as_nobody_else_reads_what_they_bound(name):
    change, is_bound = BOUNDS[name]
    sums = conv() + TERM
    (layer,) = layers(cg.exp(change(sums)))
    assert (layer.last is layer.end) != is_bound
    if is_bound:
        assert [x.op.name for x in network_of(prepare((change(sums),), (IMAGE,))).order][-1] == layer.last.op.name
    (shared,) = layers(change(sums), cg.exp(sums))
    assert shared.last is shared.end


def test_layers_are_numbered_if_their_weights_have_one_name_or_none():
    one, two = cg.Const(MATRIX, name="w"), cg.Const(OTHER, name="w")
    last = ROWS @ one @ two @ cg.Const(OTHER + 1)
    names = [x.name for x in layers(last @ cg.Const(OTHER + 2), cg.conv2d(IMAGE, cg.Const(FILTERS, name="w")))]
    assert sorted(names) == ["matmul", "matmul.2", "w", "w.2", "w.3"]
    assert all(x.axis == (1 if x.core.op.name == "matmul" else 0) for x in layers(last, conv()))


NO_LAYERS = {
    "unknown": ("f4", lambda x, w: x @ w),
    "constant on the left": ("f4", lambda x, w: cg.Const(np.ones((3, 4), "f4")) @ x),
    "float64": ("f8", lambda x, w: x @ cg.Const(MATRIX.astype("f8"))),
    "no rows": ("f4", lambda x, w: x[:0] @ cg.Const(MATRIX)),
    "several matrices": ("f4", lambda x, w: x @ cg.Const(np.ones((2, 6, 5), "f4"))),
}


@pytest.mark.parametrize("name", NO_LAYERS)
def test_products_of_unknown_weights_other_dtypes_no_rows_or_several_matrices_are_no_layers(name):
    dtype, build = NO_LAYERS[name]
    x, w = cg.Var((4, 6), dtype, "x"), cg.Var((6, 5), dtype, "w")
    assert network_of(prepare((build(x, w),), (x, w))).layers == ()
