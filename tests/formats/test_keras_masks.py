"""Masks of steps: which layers keep them, join them, and read them."""

import numpy as np
import pytest

from cgraph.formats.keras_layers import RULES
from cgraph.formats.keras_rules import LayerUse
from cgraph.ops.leaf import Const
from tests.support.keras_networks import (
    COUNTS,
    IDS,
    KERAS3,
    OTHER,
    PLAIN,
    RNG,
    UNITS,
    WEIGHTS,
    C,
    E,
    F,
    N,
    T,
    X,
    arrays,
    layer,
    masked_rows,
    normal,
    recurrent,
    run,
    start,
    stored,
)
from tests.support.tolerance import assert_near


def joined(axis):
    return np.concatenate([E, F], axis)


NEWER = {"dtype": KERAS3}
BOTH, EITHER = COUNTS & (OTHER != 0), COUNTS | (OTHER != 0)
MASKS = {
    "kept": (layer("Dropout", "m", ["e"]), E, COUNTS),
    "lost": (layer("Permute", "m", ["e"], {"dims": [1, 2]}), E, None),
    "of both": (layer("Add", "m", ["e", "f"]), E + F, BOTH),
    "of either": (layer("Add", "m", ["e", "f"], NEWER), E + F, EITHER),
    "of the one that has one": (layer("Add", "m", ["e", "g"]), E + F, COUNTS),
    "of one that has none": (layer("Add", "m", ["e", "g"], NEWER), E + F, None),
    "of steps that were turned around": (
        layer("SimpleRNN", "m", ["e"], PLAIN | {"return_sequences": True, "go_backwards": True}), None, COUNTS,
    ),
    "behind a layer of each step": (
        layer("TimeDistributed", "m", ["e"], {"layer": {"class_name": "ReLU", "config": {"name": "r"}}}),
        np.maximum(E, 0), COUNTS,
    ),
    "of joined features": (layer("Concatenate", "m", ["e", "f"], {"axis": -1}), joined(-1), BOTH),
    "of joined steps": (
        layer("Concatenate", "m", ["e", "f"], {"axis": 1}), joined(1), np.concatenate([COUNTS, OTHER != 0], 1),
    ),
    "of joined steps, counted from the last axis": (
        layer("Concatenate", "m", ["e", "f"], {"axis": -2}), joined(1), np.concatenate([COUNTS, OTHER != 0], 1),
    ),
    "of joined steps without one": (
        layer("Concatenate", "m", ["g", "e"], {"axis": 1}), np.concatenate([F, E], 1),
        np.concatenate([np.ones((N, T), bool), COUNTS], 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_reaches_the_layer_that_reads_it(name):
    row, x, mask = MASKS[name]
    weights = {}
    if x is None:
        weights["m"] = stored(w := arrays("SimpleRNN"), "cell")
        x = recurrent("SimpleRNN", w, E, None, COUNTS, {"go_backwards": True})[0]
    w = arrays("GRU", inputs=x.shape[-1])
    rows = masked_rows(row, layer("GRU", "l", ["m"], PLAIN), layer("GlobalAveragePooling1D", "a", ["m"]))
    rows.append(layer("GlobalAveragePooling1D", "k", ["m"], {"keepdims": True}))
    outputs = [("l", 0), ("a", 0), ("k", 0)]
    found, mean, wide = run(rows, WEIGHTS | weights | {"l": stored(w, "cell")}, [IDS, OTHER], outputs)
    assert_near(found, recurrent("GRU", w, x, None, mask)[1], "float32 sums near zero")
    counts = np.ones(x.shape[:2]) if mask is None else mask
    assert_near(mean, (x * counts[..., None]).sum(1) / counts.sum(1)[:, None], "float32 sums near zero")
    np.testing.assert_array_equal(wide, mean[:, None], strict=True)


def test_a_mask_stays_behind_two_directions_that_return_all_steps():
    inner = {"class_name": "LSTM", "config": PLAIN | {"name": "g", "return_sequences": True}}
    rows = masked_rows(layer("Bidirectional", "m", ["e"], {"layer": inner}))  # joined unless told otherwise
    rows.append(layer("GlobalAveragePooling1D", "a", ["m"]))
    both = stored(arrays("LSTM"), "m/forward_g/cell") | stored(arrays("LSTM"), "m/backward_g/cell")
    y, mean = run(rows, WEIGHTS | {"m": both}, [IDS, OTHER], [("m", 0), ("a", 0)])
    assert y.shape == (N, T, 2 * UNITS)
    assert_near(mean, (y * COUNTS[..., None]).sum(1) / COUNTS.sum(1)[:, None], "float32 sums near zero")
    assert not y[~COUNTS].any(), "outputs of steps that do not count are zero"


STATISTICS = {"moving_mean": normal(C), "moving_variance": normal(C) ** 2}
KEEP = {
    "Activation": {"activation": "tanh"}, "ActivityRegularization": {}, "AlphaDropout": {}, "Average": {},
    "BatchNormalization": {"epsilon": 0.1}, "Dense": {}, "Dropout": {}, "ELU": {}, "GaussianDropout": {},
    "GaussianNoise": {}, "GroupNormalization": {"axis": -1, "groups": 2, "epsilon": 0.1}, "Identity": {},
    "LayerNormalization": {"axis": -1, "epsilon": 0.1}, "LeakyReLU": {"alpha": 0.1}, "Maximum": {}, "Minimum": {},
    "Multiply": {},
    "Normalization": {"axis": -1, "mean": [0.5] * C, "variance": [2.0] * C},
    "PReLU": {}, "ReLU": {}, "Rescaling": {"scale": 2.0, "offset": 1.0}, "SpatialDropout1D": {},
    "Subtract": {}, "UnitNormalization": {"axis": -1},
}  # fmt: skip
LOSE = {
    "Conv1D": {"kernel_size": [1], "strides": [1], "padding": "same"}, "LayerScale": {}, "Permute": {"dims": [1, 2]},
    "RMSNormalization": {"axis": -1, "epsilon": 0.1}, "Reshape": {"target_shape": [T, C]},
    "StochasticDepth": {}, "ZeroPadding1D": {"padding": 0},
}  # fmt: skip
ARRAYS = {
    "BatchNormalization": STATISTICS, "Dense": {"kernel": normal(C, C)}, "PReLU": {"alpha": normal(T, C)},
    "Conv1D": {"kernel": normal(1, C, C)}, "LayerScale": {"gamma": normal(C)}, "RMSNormalization": {"scale": normal(C)},
}  # fmt: skip


@pytest.mark.parametrize("kind", [*KEEP, *LOSE])
def test_steps_that_do_not_count_stay_so_behind_a_layer_of_single_steps(kind):
    """Source: `supports_masking` of Keras' layers."""
    reads = ["e", "f"] if kind in ("Average", "Maximum", "Minimum", "Multiply", "Subtract") else ["e"]
    rows = masked_rows(layer(kind, "m", reads, {**KEEP, **LOSE}[kind]), layer("GlobalAveragePooling1D", "a", ["m"]))
    x, mean = run(rows, WEIGHTS | {"m": ARRAYS.get(kind, {})}, [IDS, IDS], [("m", 0), ("a", 0)])
    counts = COUNTS if kind in KEEP else np.ones((N, T))
    assert_near(mean, (x * counts[..., None]).sum(1) / counts.sum(1)[:, None], "float32 sums near zero")


def test_steps_of_one_value_do_not_count():
    x = X.copy()
    x[0, 3:] = x[1, 1] = 0.5
    x[2, 2, 0] = 0.5  # other elements of this step differ
    counts = (x != 0.5).any(-1)
    w = arrays("SimpleRNN")
    rows = [
        start("x", (T, C)),
        None,
        layer("SimpleRNN", "l", ["m"], PLAIN),
    ]
    for value in (0.5, None):
        rows[1] = layer("Masking", "m", ["x"], {} if value is None else {"mask_value": value})
        x = x if value else x - np.float32(0.5)
        found, kept = run(rows, {"l": stored(w, "cell")}, [x], [("l", 0), ("m", 0)])
        assert_near(found, recurrent("SimpleRNN", w, x, None, counts)[1], "float32 sums near zero")
        np.testing.assert_array_equal(kept, x * counts[..., None])


def test_functions_of_tensors_compute_masks():
    rows = [
        start("i", (T,), "int32"), start("x", (T, C)),
        {**layer("NotEqual", "n", []), "inbound_nodes": [{"args": [
            {"class_name": "__keras_tensor__", "config": {"keras_history": ["i", 0, 0]}}, 0]}]},
        layer("ExpandDims", "d", ["n"], {"axis": -1}), layer("ZerosLike", "z", ["x"], {"dtype": "bool"}),
        layer("LogicalOr", "o", ["d", "z"]), layer("LogicalAnd", "b", ["o", "z"]),
        layer("Any", "a", ["o"], {"axis": -1}), layer("Any", "k", ["o"], {"axis": 1, "keepdims": True}),
    ]  # fmt: skip
    found = run(rows, {}, [IDS, X], [("o", 0), ("b", 0), ("a", 0), ("k", 0)])
    full = np.broadcast_to(COUNTS[..., None], X.shape)
    for got, want in zip(found, (full, full & False, COUNTS, full.any(1, keepdims=True))):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("masked", [(), (0,), (1,), (0, 1, 2)])
def test_joined_sequences_have_a_mask_only_if_one_of_them_has(axis, masked):
    xs = [Const(normal(2, n, 3)) for n in ((2, 4, 3) if axis == 1 else (3, 3, 3))]
    masks = [Const(RNG.random(x.shape[:2]) > 0.5) if i in masked else None for i, x in enumerate(xs)]
    result = RULES["Concatenate"].results(LayerUse({"axis": axis}, {}, xs, {}, masks, {}))
    np.testing.assert_array_equal(result.values[0].eval(), np.concatenate([x.eval() for x in xs], axis))
    if not masked:
        assert result.mask is None
        return
    parts = [np.ones(x.shape[:2], bool) if m is None else m.eval() for x, m in zip(xs, masks)]
    want = np.concatenate(parts, 1) if axis == 1 else np.logical_and.reduce(parts)
    np.testing.assert_array_equal(result.mask.eval(), want)


def test_a_layer_reads_a_mask_of_its_own_operand():
    """Of two sequences, only one of which has a mask, each goes into a mean of its steps."""
    rows = masked_rows(*(layer("GlobalAveragePooling1D", f"a{x}", [x]) for x in "efg"))
    found = run(rows, WEIGHTS, [IDS, OTHER], [(f"a{x}", 0) for x in "efg"])
    for got, x, counts in zip(found, (E, F, F), (COUNTS, OTHER != 0, np.ones((N, T), bool)), strict=True):
        assert_near(got, (x * counts[..., None]).sum(1) / counts.sum(1)[:, None], "float32 sums near zero")


def test_every_layer_that_keeps_a_mask_is_one_of_single_steps():
    """Those of images are not among the layers above."""
    images = {"SpatialDropout2D", "SpatialDropout3D", "Add"}
    assert {kind for kind, rule in RULES.items() if getattr(rule, "keeps_mask", False)} == {*KEEP, *images}
    merges = {"Add", "Maximum", "Minimum", "Multiply", "Subtract"}
    functions = {"Any", "ExpandDims", "LogicalAnd", "LogicalOr", "NotEqual", "ZerosLike"}
    assert {kind for kind, rule in RULES.items() if rule.takes_numbers} == merges | functions
