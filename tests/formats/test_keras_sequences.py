"""Sequences: recurrent layers step by step in NumPy, masks, attention, and layers around layers."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.keras_graph import graph_of
from cgraph.formats.keras_h5 import KerasFile
from cgraph.formats.keras_layers import RULES
from cgraph.formats.keras_rules import LayerUse
from cgraph.ops.leaf import Const
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
N, T, C, UNITS = 3, 5, 4, 3
X = RNG.normal(size=(N, T, C)).astype("f4")
IDS = np.array([[3, 1, 0, 0, 0], [2, 0, 4, 1, 0], [1, 2, 3, 4, 2]], "i4")
COUNTS = IDS != 0
TABLE = RNG.normal(size=(6, C)).astype("f4")
GATES = {"LSTM": 4, "GRU": 3, "SimpleRNN": 1}
STATES = {"LSTM": 2, "GRU": 1, "SimpleRNN": 1}
KERAS3 = {"class_name": "DTypePolicy", "config": {"name": "float32"}}


def normal(*shape):
    return RNG.normal(size=shape, scale=0.5).astype("f4")


def layer(kind, name, reads, options=None, named=None):
    rows = [[x, 0, 0, {}] if isinstance(x, str) else [*x, {}] for x in reads]
    if named and rows:
        rows[0][3] = named
    return {"class_name": kind, "name": name, "config": options or {}, "inbound_nodes": [rows] if rows else []}


def start(name, shape, dtype="float32"):
    return layer("InputLayer", name, [], {"batch_shape": [None, *shape], "dtype": dtype})


def run(rows, weights, values, outputs):
    """The outputs ``(layer, number)`` of a network, for its inputs; arrays are in groups of layers."""
    weights = {name: {f"{name}/{path}": x for path, x in some.items()} for name, some in weights.items()}
    inputs = [[row["name"], 0, 0] for row in rows if row["class_name"] == "InputLayer"]
    config = {"layers": rows, "input_layers": inputs, "output_layers": [[name, 0, i] for name, i in outputs]}
    graph = graph_of(KerasFile({"class_name": "Functional", "config": config}, weights), {"batch": len(values[0])})
    return cg.compile(graph.outputs, graph.inputs, engine="reference")(*values)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


CURVES = {"tanh": np.tanh, "sigmoid": sigmoid, "relu": lambda x: np.maximum(x, 0)}


def curves(options):
    """The functions of an output and a state, and of the gates."""
    return CURVES[options.get("activation", "tanh")], CURVES[options.get("recurrent_activation", "sigmoid")]


def cell(kind, w, x, states, options):
    """The states after one step."""
    h, kernel, reset_after = states[0], w["recurrent_kernel"], options.get("reset_after", True)
    outer_curve, gate = curves(options)
    bias = w.get("bias", np.zeros(kernel.shape[1]))
    if kind == "SimpleRNN":
        return [outer_curve(x @ w["kernel"] + bias + h @ kernel)]
    if kind == "LSTM":
        i, f, c, o = np.split(x @ w["kernel"] + bias + h @ kernel, 4, -1)
        c = gate(f) * states[1] + gate(i) * outer_curve(c)
        return [gate(o) * outer_curve(c), c]
    outer, inner = bias if reset_after and "bias" in w else (bias, np.zeros(kernel.shape[1]))
    a, b = np.split(x @ w["kernel"] + outer, 3, -1), np.split(h @ kernel + inner, 3, -1)
    z, r = gate(a[0] + b[0]), gate(a[1] + b[1])
    new = r * b[2] if reset_after else (r * h) @ kernel[:, 2 * UNITS :]
    return [z * h + (1 - z) * outer_curve(a[2] + new)]


def recurrent(kind, w, x, states=None, mask=None, options=None):
    """All outputs ``[n, t, units]``, the last one, and the last states."""
    options = options or {}
    x = x[:, ::-1] if options.get("go_backwards") else x
    mask = np.ones(x.shape[:2], bool) if mask is None else mask[:, ::-1] if options.get("go_backwards") else mask
    states = states or [np.zeros((len(x), UNITS))] * STATES[kind]
    output, rows = np.zeros((len(x), UNITS)), []
    for t in range(x.shape[1]):
        new = cell(kind, w, x[:, t].astype(float), states, options)
        counts = mask[:, t, None]
        output = np.where(counts, new[0], output)
        states = [np.where(counts, a, b) for a, b in zip(new, states)]
        rows.append(np.where(counts, output, 0) if options.get("zero_output_for_mask") else output)
    return np.stack(rows, 1), rows[-1], states


def arrays(kind, options=None, inputs=C):
    options, width = options or {}, GATES[kind] * UNITS
    w = {"kernel": normal(inputs, width), "recurrent_kernel": normal(UNITS, width)}
    if options.get("use_bias", True):
        w["bias"] = normal(*([2] if kind == "GRU" and options.get("reset_after", True) else []), width)
    return w


def stored(w, group):
    return {f"{group}/{name}": x for name, x in w.items()}


PLAIN = {"units": UNITS, "activation": "tanh", "recurrent_activation": "sigmoid"}
OPTIONS = [
    {},
    {"return_sequences": True},
    {"return_sequences": True, "go_backwards": True, "use_bias": False},
    {"return_state": True, "reset_after": False},
    {"return_sequences": True, "return_state": True, "go_backwards": True},
    {"return_sequences": True, "activation": "relu", "recurrent_activation": "tanh"},
    {"activation": "sigmoid", "recurrent_activation": "relu", "reset_after": False},
]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", GATES)
def test_a_recurrent_layer_is_its_steps(kind, options, masked):
    w, given = arrays(kind, options), [normal(N, UNITS) for _ in range(STATES[kind])]
    names = [f"s{i}" for i in range(STATES[kind])]
    rows = [start("x", (T, C)), *(start(name, (UNITS,)) for name in names), start("mask", (T,), "bool")]
    named = {"initial_state": [[name, 0, 0] for name in names], **({"mask": ["mask", 0, 0]} if masked else {})}
    outputs = [("l", i) for i in range(1 + len(names) * bool(options.get("return_state")))]
    rows.append(layer(kind, "l", ["x"], PLAIN | options, named))
    found = run(rows, {"l": stored(w, "cell")}, [X, *given, COUNTS], outputs)
    every, last, states = recurrent(kind, w, X, given, COUNTS if masked else None, options)
    wanted = [every if options.get("return_sequences") else last, *states]
    for got, want in zip(found, wanted):
        assert_near(got, want, "float32 sums near zero")


@pytest.mark.parametrize("kind", GATES)
def test_states_may_follow_the_sequence_and_a_zero_replaces_outputs_of_steps_that_do_not_count(kind):
    w, given = arrays(kind), [normal(N, UNITS) for _ in range(STATES[kind])]
    names = [f"s{i}" for i in range(STATES[kind])]
    rows = [start("x", (T, C)), *(start(name, (UNITS,)) for name in names), layer(kind, "l", ["x", *names], PLAIN)]
    (found,) = run(rows, {"l": stored(w, "cell")}, [X, *given], [("l", 0)])
    assert_near(found, recurrent(kind, w, X, given)[1], "float32 sums near zero")
    for options in ({"zero_output_for_mask": True}, {"zero_output_for_mask": True, "return_sequences": True}):
        rows = [start("ids", (T,), "int32"), layer("Embedding", "e", ["ids"], {"mask_zero": True})]
        rows.append(layer(kind, "l", ["e"], PLAIN | options))
        weights = {"e": {"embeddings": TABLE}, "l": stored(w, "cell")}
        (found,) = run(rows, weights, [IDS], [("l", 0)])
        every, last, _ = recurrent(kind, w, TABLE[IDS], None, COUNTS, options)
        assert_near(found, every if "return_sequences" in options else last, "float32 sums near zero")


@pytest.mark.parametrize("mode", ["concat", "sum", "mul", "ave", None])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_two_directions_are_merged(kind, every, mode):
    """Also with states, a mask, and under the names of both versions of Keras."""
    one, two = arrays(kind), arrays(kind)
    given = [normal(N, UNITS) for _ in range(2 * STATES[kind])]
    names = [f"s{i}" for i in range(len(given))]
    inner = {"class_name": kind, "config": PLAIN | {"name": "g", "return_sequences": every, "return_state": True}}
    rows = [start("ids", (T,), "int32"), *(start(name, (UNITS,)) for name in names)]
    rows.append(layer("Embedding", "e", ["ids"], {"mask_zero": True}))
    rows.append(layer("Bidirectional", "b", ["e", *names], {"layer": inner, "merge_mode": mode}))
    both = {"b": stored(one, "b/forward_g/cell") | stored(two, "s/b/backward_g/cell"), "e": {"embeddings": TABLE}}
    count = (2 if mode is None else 1) + len(given)
    found = run(rows, both, [IDS, *given], [("b", i) for i in range(count)])
    zero = {"zero_output_for_mask": every}
    half, x = len(given) // 2, TABLE[IDS]
    forward = recurrent(kind, one, x, given[:half], COUNTS, zero)
    backward = recurrent(kind, two, x, given[half:], COUNTS, zero | {"go_backwards": True})
    a, b = (forward[0], backward[0][:, ::-1]) if every else (forward[1], backward[1])
    merged = {
        "concat": [np.concatenate([a, b], -1)],
        "sum": [a + b],
        "mul": [a * b],
        "ave": [(a + b) / 2],
        None: [a, b],
    }
    for got, want in zip(found, [*merged[mode], *forward[2], *backward[2]]):
        assert_near(got, want, "float32 sums near zero")


def test_the_other_direction_may_be_another_layer():
    one, two = arrays("LSTM"), arrays("GRU")
    forward = {"class_name": "LSTM", "config": PLAIN | {"name": "forward_l"}}
    backward = {"class_name": "GRU", "config": PLAIN | {"name": "g", "go_backwards": True}}
    options = {"layer": forward, "backward_layer": backward, "merge_mode": "sum"}
    rows = [start("x", (T, C)), layer("Bidirectional", "b", ["x"], options)]
    weights = {"b": stored(one, "b/forward_l/cell") | stored(two, "b/g/cell")}
    (found,) = run(rows, weights, [X], [("b", 0)])
    want = recurrent("LSTM", one, X)[1] + recurrent("GRU", two, X, None, None, {"go_backwards": True})[1]
    assert_near(found, want, "float32 sums near zero")


def test_a_layer_sees_each_step_as_a_sample():
    images = RNG.normal(size=(N, T, 4, 3, 2)).astype("f4")
    kernel, wide = normal(2, 2, 2, 3), normal(3, 5)
    conv = {
        "class_name": "Conv2D",
        "config": {"name": "c", "kernel_size": [2, 2], "strides": [1, 1], "padding": "valid"},
    }
    inner = {"class_name": "Sequential", "config": {"name": "m", "layers": [
        {"class_name": "InputLayer", "config": {"name": "in", "batch_shape": [None, 3, 2, 3]}},
        {"class_name": "GlobalMaxPooling2D", "config": {"name": "p"}},
        {"class_name": "Dense", "config": {"name": "d", "use_bias": False}},
    ]}}  # fmt: skip
    rows = [
        start("x", (T, 4, 3, 2)),
        layer("TimeDistributed", "t", ["x"], {"layer": conv}),
        layer("TimeDistributed", "u", ["t"], {"layer": inner}),
    ]
    weights = {"t": {"t/c/kernel": kernel}, "u": {"u/m/d/kernel": wide}}
    (found,) = run(rows, weights, [np.moveaxis(images, -1, 1)], [("u", 0)])
    seen = np.lib.stride_tricks.sliding_window_view(images, (2, 2), (2, 3))
    want = np.einsum("ntpqcrs,rsck->ntpqk", seen, kernel).max((2, 3)) @ wide
    assert_near(found, want, "float32 sums near zero")


# -- masks ------------------------------------------------------------------------------------------------------------


def masked_rows(*more):
    return [start("i", (T,), "int32"), start("j", (T,), "int32"), *(
        layer("Embedding", name, [of], {"mask_zero": zero})
        for name, of, zero in (("e", "i", True), ("f", "j", True), ("g", "j", False))
    ), *more]  # fmt: skip


OTHER = IDS[::-1].copy()
WEIGHTS = {name: {"embeddings": TABLE} for name in "efg"}
E, F = TABLE[IDS], TABLE[OTHER]


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


@pytest.mark.parametrize("axis", [1, 2, 3, -1, -2, -3])
def test_a_sequence_gets_an_axis_in_the_order_of_keras(axis):
    rows = [start("x", (T, C)), layer("ExpandDims", "d", ["x"], {"axis": axis}), layer("ZerosLike", "z", ["d"])]
    found, zeros = run(rows, {}, [X], [("d", 0), ("z", 0)])
    np.testing.assert_array_equal(np.moveaxis(found, 1, -1), np.expand_dims(X, axis), strict=True)
    np.testing.assert_array_equal(zeros, found * 0, strict=True)


# -- attention --------------------------------------------------------------------------------------------------------


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(w, query, value, key, seen=None):
    q, k, v = (
        np.einsum("ntc,chd->nhtd", x.astype(float), w[f"{name}/kernel"]) + w[f"{name}/bias"][:, None]
        for x, name in ((query, "query"), (key, "key"), (value, "value"))
    )
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    scores = scores if seen is None else np.where(seen, scores, -1e30)
    return np.einsum("nhtd,hdc->ntc", softmax(scores) @ v, w["attention_output/kernel"]) + w["attention_output/bias"]


def heads(q, k, v, out):
    return {
        "query/kernel": normal(q, 2, 3), "query/bias": normal(2, 3), "key/kernel": normal(k, 2, 3),
        "key/bias": normal(2, 3), "value/kernel": normal(v, 2, 5), "value/bias": normal(2, 5),
        "attention_output/kernel": normal(2, 5, out), "attention_output/bias": normal(out),
    }  # fmt: skip


HEADS = {"num_heads": 2, "key_dim": 3, "value_dim": 5}
Y, Z = normal(N, 6, 3), normal(N, 6, 2)
SEEN = RNG.random((N, T, 6)) > 0.3
SEEN[..., 0] = True


def test_heads_attend_with_keys_values_masks_and_order():
    w = heads(C, 2, 3, C)
    rows = [start("x", (T, C)), start("y", (6, 3)), start("z", (6, 2)), start("m", (T, 6), "bool")]
    refer = {name: [name, 0, 0] for name in "yzm"}
    uses = {
        "positions": (["x", "y", "z"], {}, None),
        "names": (["x"], {"value": refer["y"], "key": refer["z"]}, None),
        "mask": (["x", "y", "z"], {"attention_mask": refer["m"]}, SEEN[:, None]),
        "order": (["x", "y", "z"], {"use_causal_mask": True}, np.tri(T, 6, dtype=bool)),
        "both": (["x", "y", "z"], {"attention_mask": refer["m"], "use_causal_mask": True},
                 SEEN[:, None] & np.tri(T, 6, dtype=bool)),
    }  # fmt: skip
    rows += [layer("MultiHeadAttention", name, reads, HEADS, named) for name, (reads, named, _) in uses.items()]
    rows.append(layer("MultiHeadAttention", "bare", ["x", "y", "z"], HEADS | {"use_bias": False}))
    bare = {name: x for name, x in w.items() if name.endswith("/kernel")}
    weights = dict.fromkeys(uses, w) | {"bare": bare}
    *found, unbiased = run(rows, weights, [X, Y, Z, SEEN], [(name, 0) for name in weights])
    for got, (_, _, seen) in zip(found, uses.values()):
        assert_near(got, attend(w, X, Y, Z, seen), "float32 sums near zero")
    no_bias = {name: x if name in bare else x * 0 for name, x in w.items()}
    assert_near(unbiased, attend(no_bias, X, Y, Z), "float32 sums near zero")


def test_heads_see_no_step_that_does_not_count():
    w = heads(C, C, C, C)
    named = {"value": ["f", 0, 0]}
    rows = masked_rows(
        layer("MultiHeadAttention", "a", ["e", "f"], HEADS), layer("MultiHeadAttention", "b", ["e"], HEADS, named)
    )
    found = run(rows, WEIGHTS | {"a": w, "b": w}, [IDS, OTHER], [("a", 0), ("b", 0)])
    want = attend(w, E, F, F, (COUNTS[:, :, None] & (OTHER != 0)[:, None])[:, None])
    for got in found:
        assert_near(got[COUNTS], want[COUNTS], "float32 sums near zero")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["Attention", "AdditiveAttention"])
def test_plain_attention(kind, causal):
    scale = normal(C) if kind == "AdditiveAttention" else np.float32(0.7)
    options = {"use_scale": True, "score_mode": "dot"}
    named = {"use_causal_mask": True} if causal else {}
    rows = masked_rows(
        layer(kind, "a", ["e", "f"], options, named), layer(kind, "b", ["e", "g", "f"], {"use_scale": False})
    )
    found, plain = run(rows, WEIGHTS | {"a": {"scale": np.asarray(scale)}}, [IDS, OTHER], [("a", 0), ("b", 0)])
    for got, factor, seen in ((found, scale, (OTHER != 0)[:, None]), (plain, 1, np.ones((N, 1, T), bool))):
        if kind == "Attention":
            scores = E.astype(float) @ F.transpose(0, 2, 1) * factor
        else:
            scores = (np.tanh(E[:, :, None].astype(float) + F[:, None]) * factor).sum(-1)
        seen = seen & np.tri(T, dtype=bool) if causal and got is found else seen
        want = softmax(np.where(seen, scores, scores - 1e9)) @ F
        assert_near(got, want * COUNTS[..., None], "float32 sums near zero")


@pytest.mark.parametrize("kind", ["Attention", "AdditiveAttention"])
def test_plain_attention_sees_no_later_key_of_a_longer_sequence_and_has_the_scale_of_its_kind(kind):
    """Of 5 queries and 7 keys. Unless told otherwise AdditiveAttention has a scale, and Attention has none."""
    keys, scale = normal(N, 7, C), normal(C)
    rows = [start("x", (T, C)), start("y", (7, C)), layer(kind, "a", ["x", "y"], {}, {"use_causal_mask": True})]
    (found,) = run(rows, {"a": {"scale": scale}}, [X, keys], [("a", 0)])
    if kind == "Attention":
        scores = X.astype(float) @ keys.transpose(0, 2, 1)
    else:
        scores = (np.tanh(X[:, :, None].astype(float) + keys[:, None]) * scale).sum(-1)
    seen = np.tri(T, 7, dtype=bool)
    assert_near(found, softmax(np.where(seen, scores, scores - 1e9)) @ keys, "float32 sums near zero")


SIDES = {"MultiHeadAttention": HEADS, "Attention": {}, "AdditiveAttention": {"use_scale": False}}


@pytest.mark.parametrize("kind", SIDES)
def test_steps_behind_attention_count_as_those_of_its_queries(kind):
    rows = masked_rows(layer(kind, "m", ["e", "g"], SIDES[kind]), layer("GlobalAveragePooling1D", "a", ["m"]))
    y, mean = run(rows, WEIGHTS | {"m": heads(C, C, C, C)}, [IDS, OTHER], [("m", 0), ("a", 0)])
    assert_near(mean, (y * COUNTS[..., None]).sum(1) / COUNTS.sum(1)[:, None], "float32 sums near zero")


# -- other layers -----------------------------------------------------------------------------------------------------


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


def lstm(named=None, **options):
    return [start("x", (T, C)), layer("LSTM", "l", ["x"], PLAIN | options, named)]


REFUSED = {
    "states that stay": (lstm(stateful=True), "stateful=True is not supported. Build the layer with stateful=False"),
    "one of two states": (lstm({"initial_state": ["x", 0, 0]}), "called with 1 states, and has 2"),
    "an argument": (lstm({"other": ["x", 0, 0]}), "its argument other= is not supported. Pass initial_state, mask by"),
    "an argument of a plain layer": (
        [start("x", (T, C)), layer("ReLU", "l", ["x"], {}, {"mask": ["x", 0, 0]})], "mask= is not supported. Pass none",
    ),
    "gates of heads": (
        [start("x", (T, C)), layer("MultiHeadAttention", "l", ["x", "x"], HEADS | {"use_gate": True})], "use_gate",
    ),
    "heads of images": (
        [start("x", (T, C, 2)), layer("MultiHeadAttention", "l", ["x", "x"], HEADS)], "Reshape its operands",
    ),
    "joined scores": (
        [start("x", (T, C)), layer("Attention", "l", ["x", "x"], {"score_mode": "concat"})], "Use 'dot'",
    ),
    "products of images": ([start("x", (T, C, 2)), layer("Dot", "l", ["x", "x"], {"axes": 1})], "Reshape them"),
    "an unknown merge": (
        [start("x", (T, C)), layer("Bidirectional", "l", ["x"], {
            "layer": {"class_name": "LSTM", "config": PLAIN | {"name": "g"}}, "merge_mode": "max"})],
        "merge_mode 'max'",
    ),
    "an unknown function": (
        [start("x", (T, C)), {**layer("TFOpLambda", "l", [], {"function": "nn.relu"}),
         "inbound_nodes": [["x", 0, 0, {"y": 1}]]}], "function 'nn.relu' is not supported",
    ),
}  # fmt: skip


def run_with_any_arrays(rows):
    """The output of the layer `l`, which finds arrays of each kind."""
    w = arrays("LSTM")
    both = stored(w, "l/forward_g/cell") | stored(w, "l/backward_g/cell")
    return run(rows, {"l": stored(w, "cell") | both | heads(C, C, C, C)}, [X], [("l", 0)])


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused(name):
    rows, words = REFUSED[name]
    with pytest.raises(FormatError, match=words):
        run_with_any_arrays(rows)


# -- steps that are convolutions --------------------------------------------------------------------------------------


def conv_lstm(w, x, options, states=None):
    """All states h ``[n, t, h, w, units]``, and the last h and c; windows 3 × 2, padding "same" and stride 1 inside."""
    x = x[:, ::-1] if options.get("go_backwards") else x
    rows, (outer_curve, gate) = [], curves(options)
    for t in range(x.shape[1]):
        inputs = windowed(x[:, t], w["kernel"], options["strides"]) + w.get("bias", 0)
        states = states or [np.zeros((*inputs.shape[:-1], UNITS))] * 2
        h, c = states
        i, f, new, o = np.split(inputs + windowed(h, w["recurrent_kernel"], [1, 1]), 4, -1)
        c = gate(f) * c + gate(i) * outer_curve(new)
        states = [gate(o) * outer_curve(c), c]
        rows.append(states[0])
    return np.stack(rows, 1), *states


def windowed(x, kernel, steps):
    around = [(0, 0)]
    for n, w, s in zip(x.shape[1:], kernel.shape, steps):
        total = max((-(-n // s) - 1) * s + w - n, 0)
        around.append((total // 2, total - total // 2))
    seen = np.lib.stride_tricks.sliding_window_view(np.pad(x, [*around, (0, 0)]), kernel.shape[:2], (1, 2))
    return np.einsum("npqcrs,rsck->npqk", seen[:, :: steps[0], :: steps[1]].astype(float), kernel)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"go_backwards": True, "strides": [2, 1]},
        {"use_bias": False},
        {"activation": "relu", "recurrent_activation": "tanh"},
    ],
    ids=str,
)
def test_a_convolutional_lstm_is_its_steps(options):
    x = normal(2, 3, 5, 4, 2)
    options = {
        "strides": [1, 1],
        "kernel_size": [3, 2],
        "padding": "same",
        "activation": "tanh",
        "filters": UNITS,
    } | options
    w = {"kernel": normal(3, 2, 2, 4 * UNITS), "recurrent_kernel": normal(3, 2, UNITS, 4 * UNITS)}
    if options.get("use_bias", True):
        w["bias"] = normal(4 * UNITS)
    every, h, c = conv_lstm(w, x, options)
    rows = [start("x", x.shape[1:])]
    rows.append(layer("ConvLSTM2D", "l", ["x"], options | {"return_sequences": True, "return_state": True}))
    rows.append(layer("ConvLSTM2D", "m", ["x"], options))
    weights = dict.fromkeys("lm", stored(w, "cell"))
    found = run(rows, weights, [np.moveaxis(x, -1, 1)], [("l", 0), ("l", 1), ("l", 2), ("m", 0)])
    for got, want in zip(found, (every, h, c, h)):
        assert_near(np.moveaxis(got, 1, -1), want, "float32 sums near zero")


def test_a_convolutional_lstm_goes_both_ways_and_starts_where_it_is_told():
    x, h, c = normal(2, 3, 5, 4, 2), normal(2, 5, 4, UNITS), normal(2, 5, 4, UNITS)
    options = {"strides": [1, 1], "kernel_size": [3, 2], "padding": "same", "activation": "tanh", "filters": UNITS}
    one, two = (
        {"kernel": normal(3, 2, 2, 4 * UNITS), "recurrent_kernel": normal(3, 2, UNITS, 4 * UNITS)} for _ in range(2)
    )
    inner = {"class_name": "ConvLSTM2D", "config": options | {"name": "g", "return_sequences": True}}
    rows = [start("x", x.shape[1:]), start("h", h.shape[1:]), start("c", c.shape[1:])]
    rows.append(layer("Bidirectional", "b", ["x"], {"layer": inner, "merge_mode": "concat"}))
    rows.append(layer("ConvLSTM2D", "l", ["x"], options, {"initial_state": [["h", 0, 0], ["c", 0, 0]]}))
    weights = {"b": stored(one, "b/forward_g/cell") | stored(two, "b/backward_g/cell"), "l": stored(one, "cell")}
    both, last = run(rows, weights, [np.moveaxis(v, -1, 1) for v in (x, h, c)], [("b", 0), ("l", 0)])
    backward = conv_lstm(two, x, options | {"go_backwards": True})[0][:, ::-1]
    want = np.concatenate([conv_lstm(one, x, options)[0], backward], -1)
    assert_near(np.moveaxis(both, 1, -1), want, "float32 sums near zero")
    assert_near(np.moveaxis(last, 1, -1), conv_lstm(one, x, options, [h, c])[1], "float32 sums near zero")
    rows = masked_rows(layer("Reshape", "r", ["e"], {"target_shape": [T, 2, 2]}), layer("Masking", "m", ["e"]))
    rows.append(layer("ConvLSTM1D", "n", ["r"], options | {"kernel_size": [2], "strides": [1]}, {"mask": ["i", 0, 0]}))
    with pytest.raises(FormatError, match="its argument mask= is not supported"):
        run(rows, WEIGHTS, [IDS, OTHER], [("n", 0)])


def test_a_convolutional_lstm_of_rows_is_one_of_images_of_one_row():
    """Its states are sequences, which have their channels last."""
    x, h, c = normal(2, 3, 4, 2), normal(2, 4, UNITS), normal(2, 4, UNITS)
    w = {"kernel": normal(2, 2, 4 * UNITS), "recurrent_kernel": normal(2, UNITS, 4 * UNITS), "bias": normal(4 * UNITS)}
    options = {"strides": [1], "kernel_size": [2], "padding": "same", "activation": "tanh", "filters": UNITS}
    options |= {"return_sequences": True, "return_state": True}
    rows = [start("x", x.shape[1:]), start("h", h.shape[1:]), start("c", c.shape[1:])]
    rows.append(layer("ConvLSTM1D", "l", ["x"], options, {"initial_state": [["h", 0, 0], ["c", 0, 0]]}))
    found = run(rows, {"l": stored(w, "cell")}, [np.moveaxis(x, -1, 1), h, c], [("l", 0), ("l", 1), ("l", 2)])
    wide = {name: v if name == "bias" else v[None] for name, v in w.items()}
    every, *states = conv_lstm(wide, x[:, :, None], {"strides": [1, 1]}, [h[:, None], c[:, None]])
    assert_near(np.moveaxis(found[0], 1, -1), every[:, :, 0], "float32 sums near zero")
    for got, want in zip(found[1:], states, strict=True):
        assert_near(got, want[:, 0], "float32 sums near zero")


@pytest.mark.parametrize(
    "options", [{"padding": "valid"}, {"dilation_rate": [1, 2]}, {"dilation_rate": [2, 1]}], ids=str
)
def test_steps_enter_a_convolutional_lstm_by_its_padding_and_dilation_and_states_by_neither(options):
    """The window over the state has padding "same" and no gaps, whatever that over a step has."""
    x = normal(2, 3, 6, 5, 2)
    plain = {"strides": [1, 1], "kernel_size": [3, 2], "padding": "same", "activation": "tanh", "filters": UNITS}
    w = {"kernel": normal(3, 2, 2, 4 * UNITS), "recurrent_kernel": normal(3, 2, UNITS, 4 * UNITS)}
    d = options.get("dilation_rate", [1, 1])
    spread = np.zeros(((3 - 1) * d[0] + 1, (2 - 1) * d[1] + 1, 2, 4 * UNITS))
    spread[:: d[0], :: d[1]] = w["kernel"]
    states = None
    for t in range(3):
        inputs = windowed(x[:, t], spread, [1, 1])
        if options.get("padding") == "valid":
            seen = np.lib.stride_tricks.sliding_window_view(x[:, t], (3, 2), (1, 2))
            inputs = np.einsum("npqcrs,rsck->npqk", seen.astype(float), w["kernel"])
        h, c = states or [np.zeros((*inputs.shape[:-1], UNITS))] * 2
        i, f, new, o = np.split(inputs + windowed(h, w["recurrent_kernel"], [1, 1]), 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
        states = sigmoid(o) * np.tanh(c), c
    rows = [start("x", x.shape[1:]), layer("ConvLSTM2D", "l", ["x"], plain | options)]
    (found,) = run(rows, {"l": stored(w, "cell")}, [np.moveaxis(x, -1, 1)], [("l", 0)])
    assert_near(np.moveaxis(found, 1, -1), states[0], "float32 sums near zero")


@pytest.mark.parametrize("zero", [None, False, True])
@pytest.mark.parametrize("every", [False, True])
def test_both_directions_put_zeros_where_told_or_where_all_steps_are_returned(every, zero):
    one, two = arrays("GRU"), arrays("GRU")
    config = PLAIN | {"name": "g", "return_sequences": every}
    config |= {} if zero is None else {"zero_output_for_mask": zero}
    rows = masked_rows(layer("Bidirectional", "b", ["e"], {"layer": {"class_name": "GRU", "config": config}}))
    both = stored(one, "b/forward_g/cell") | stored(two, "b/backward_g/cell")
    (found,) = run(rows, WEIGHTS | {"b": both}, [IDS, OTHER], [("b", 0)])
    options = {"zero_output_for_mask": zero or every}
    a = recurrent("GRU", one, E, None, COUNTS, options)
    b = recurrent("GRU", two, E, None, COUNTS, options | {"go_backwards": True})
    want = np.concatenate([a[0], b[0][:, ::-1]] if every else [a[1], b[1]], -1)
    assert_near(found, want, "float32 sums near zero")


@pytest.mark.parametrize("turned", [False, True])
def test_both_directions_read_states_and_a_mask_that_have_names(turned):
    """Of a layer that goes backwards itself, the other one goes forwards."""
    one, two = arrays("LSTM"), arrays("LSTM")
    given = [normal(N, UNITS) for _ in range(4)]
    names = [f"s{i}" for i in range(4)]
    config = PLAIN | {"name": "g", "go_backwards": turned, "return_state": True}
    named = {"initial_state": [[name, 0, 0] for name in names], "mask": ["m", 0, 0]}
    rows = [start("x", (T, C)), *(start(name, (UNITS,)) for name in names), start("m", (T,), "bool")]
    rows.append(layer("Bidirectional", "b", ["x"], {"layer": {"class_name": "LSTM", "config": config}}, named))
    both = stored(one, "b/forward_g/cell") | stored(two, "b/backward_g/cell")
    found = run(rows, {"b": both}, [X, *given, COUNTS], [("b", i) for i in range(5)])
    a = recurrent("LSTM", one, X, given[:2], COUNTS, {"go_backwards": turned})
    b = recurrent("LSTM", two, X, given[2:], COUNTS, {"go_backwards": not turned})
    for got, want in zip(found, [np.concatenate([a[1], b[1]], -1), *a[2], *b[2]], strict=True):
        assert_near(got, want, "float32 sums near zero")


def test_two_directions_of_images_have_their_states():
    x = normal(2, 3, 5, 4, 2)
    options = {"strides": [1, 1], "kernel_size": [3, 2], "padding": "same", "activation": "tanh", "filters": UNITS}
    one, two = (
        {"kernel": normal(3, 2, 2, 4 * UNITS), "recurrent_kernel": normal(3, 2, UNITS, 4 * UNITS)} for _ in range(2)
    )
    inner = {"class_name": "ConvLSTM2D", "config": options | {"name": "g", "return_state": True}}
    rows = [start("x", x.shape[1:]), layer("Bidirectional", "b", ["x"], {"layer": inner, "merge_mode": None})]
    both = stored(one, "b/forward_g/cell") | stored(two, "b/backward_g/cell")
    found = run(rows, {"b": both}, [np.moveaxis(x, -1, 1)], [("b", i) for i in range(6)])
    a, b = conv_lstm(one, x, options), conv_lstm(two, x, options | {"go_backwards": True})
    for got, want in zip(found, [a[1], b[1], *a[1:], *b[1:]], strict=True):
        assert_near(np.moveaxis(got, 1, -1), want, "float32 sums near zero")


@pytest.mark.parametrize("masked", ["e g g", "g e g", "g g e", "e f g", "g e f", "e g f", "e f h"])
def test_heads_see_keys_that_count_as_values_and_as_keys(masked):
    """Each of the three sequences may have a mask: `h` has another one than `e` and `f`."""
    w = heads(C, C, C, C)
    third = np.roll(IDS, 1, 0).copy()
    values = {"e": (E, COUNTS), "f": (F, OTHER != 0), "g": (F, None), "h": (TABLE[third], third != 0)}
    rows = [start("k", (T,), "int32"), layer("Embedding", "h", ["k"], {"mask_zero": True})]
    rows = masked_rows(*rows, layer("MultiHeadAttention", "a", masked.split(), HEADS))
    weights = WEIGHTS | {"a": w, "h": {"embeddings": TABLE}}
    (found,) = run(rows, weights, [IDS, OTHER, third], [("a", 0)])
    (q, qm), (v, vm), (k, km) = (values[name] for name in masked.split())
    seen = np.ones((N, T, T), bool)
    for mask, axis in ((qm, 2), (vm, 1), (km, 1)):
        seen = seen if mask is None else seen & np.expand_dims(mask, axis)
    rows_seen = seen.any(-1)
    assert_near(found[rows_seen], attend(w, q, v, k, seen[:, None])[rows_seen], "float32 sums near zero")


MORE_REFUSED = {
    "windows that slide": (
        [start("x", (T, C)), layer("MultiHeadAttention", "l", ["x", "x"], HEADS | {"sliding_window": 2})],
        "use_gate and sliding_window are not supported",
    ),
    "an image as the key of heads": (
        [
            start("x", (T, C)),
            layer("Reshape", "y", ["x"], {"target_shape": [T, C, 1]}),
            layer("MultiHeadAttention", "l", ["x", "x", "y"], HEADS),
        ],
        "Reshape its operands",
    ),
    "a product with an image": (
        [
            start("x", (T, C)),
            layer("Reshape", "y", ["x"], {"target_shape": [T, C, 1]}),
            layer("Dot", "l", ["x", "y"], {"axes": 1}),
        ],
        "a Dot of images is not supported",
    ),
    "an operator of other axes": (
        [
            start("x", (T, C)),
            layer("GlobalAveragePooling1D", "y", ["x"]),
            layer("TFOpLambda", "l", ["x"], {"function": "math.add"}, {"y": ["y", 0, 0]}),
        ],
        "math.add of 3 and 2 axes is not supported",
    ),
    "states of a convolutional layer that stay": (
        [start("x", (T, 4, C)), layer("ConvLSTM1D", "l", ["x"], {"stateful": True})],
        "stateful=True and masks are not supported",
    ),
    "a mask before a convolutional layer": (
        [
            start("x", (T, C)),
            layer("Masking", "m", ["x"]),
            layer("TimeDistributed", "t", ["m"], {
                "layer": {"class_name": "Reshape", "config": {"name": "r", "target_shape": [2, 2]}},
            }),
            layer("ConvLSTM1D", "l", ["t"], {}),
        ],
        "stateful=True and masks are not supported",
    ),
    "three states of two": (
        [start("x", (T, C)), start("s", (UNITS,)), layer("LSTM", "l", ["x", "s", "s", "s"], PLAIN)],
        "called with 3 states, and has 2",
    ),
    "an unknown inner activation": (
        [start("x", (T, C)), layer("LSTM", "l", ["x"], PLAIN | {"recurrent_activation": "squash"})],
        "activation 'squash' is not supported",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE_REFUSED)
def test_each_condition_of_a_layer_of_sequences_is_checked(name):
    rows, words = MORE_REFUSED[name]
    with pytest.raises(FormatError, match=words):
        graph_of_rows(rows)


def graph_of_rows(rows):
    weights = {"l": {f"l/{path}": x for path, x in stored(arrays("LSTM"), "cell").items()}}
    inputs = [[row["name"], 0, 0] for row in rows if row["class_name"] == "InputLayer"]
    config = {"layers": rows, "input_layers": inputs, "output_layers": [["l", 0, 0]]}
    return graph_of(KerasFile({"class_name": "Functional", "config": config}, weights), {"batch": 1})


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


@pytest.mark.parametrize(("one", "other"), [("LSTM", "GRU"), ("GRU", "LSTM"), ("SimpleRNN", "LSTM")])
def test_each_direction_has_the_states_of_its_kind(one, other):
    a, b = arrays(one), arrays(other)
    forward = {"class_name": one, "config": PLAIN | {"name": "forward_l", "return_state": True}}
    backward = {"class_name": other, "config": PLAIN | {"name": "g", "go_backwards": True, "return_state": True}}
    options = {"layer": forward, "backward_layer": backward, "merge_mode": None}
    rows = [start("x", (T, C)), layer("Bidirectional", "b", ["x"], options)]
    weights = {"b": stored(a, "b/forward_l/cell") | stored(b, "b/g/cell")}
    found = run(rows, weights, [X], [("b", i) for i in range(2 + STATES[one] + STATES[other])])
    first = recurrent(one, a, X)
    second = recurrent(other, b, X, None, None, {"go_backwards": True})
    for got, want in zip(found, [first[1], second[1], *first[2], *second[2]], strict=True):
        assert_near(got, want, "float32 sums near zero")


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


@pytest.mark.parametrize("every", [False, True])
def test_states_of_a_convolutional_lstm_may_follow_its_sequence(every):
    x, h, c = normal(2, 3, 5, 4, 2), normal(2, 5, 4, UNITS), normal(2, 5, 4, UNITS)
    options = {"strides": [1, 1], "kernel_size": [3, 2], "padding": "same", "activation": "tanh", "filters": UNITS}
    w = {"kernel": normal(3, 2, 2, 4 * UNITS), "recurrent_kernel": normal(3, 2, UNITS, 4 * UNITS)}
    rows = [start("x", x.shape[1:]), start("h", h.shape[1:]), start("c", c.shape[1:])]
    rows.append(layer("ConvLSTM2D", "l", ["x", "h", "c"], options | {"return_sequences": every}))
    (found,) = run(rows, {"l": stored(w, "cell")}, [np.moveaxis(v, -1, 1) for v in (x, h, c)], [("l", 0)])
    steps, last, _ = conv_lstm(w, x, options, [h, c])
    assert_near(np.moveaxis(found, 1, -1), steps if every else last, "float32 sums near zero")
    rows[-1] = layer("ConvLSTM2D", "l", ["x", "h"], options)
    with pytest.raises(FormatError, match="it is called with 1 states, and has 2. Pass each state"):
        run(rows, {"l": stored(w, "cell")}, [np.moveaxis(v, -1, 1) for v in (x, h, c)], [("l", 0)])


@pytest.mark.parametrize("kind", GATES)
def test_a_mask_that_has_a_name_comes_before_that_of_the_steps(kind):
    """States that follow the sequence have masks of their own, which nothing reads."""
    w, given = arrays(kind), [normal(N, UNITS) for _ in range(STATES[kind])]
    names = [f"s{i}" for i in range(STATES[kind])]
    mask = RNG.random((N, T)) > 0.4
    rows = [start("k", (T,), "bool"), *(start(name, (UNITS,)) for name in names)]
    rows = masked_rows(*rows, layer(kind, "l", ["e", *names], PLAIN, {"mask": ["k", 0, 0]}))
    rows.append(layer(kind, "m", ["g", *names], PLAIN))
    found = run(
        rows, WEIGHTS | dict.fromkeys("lm", stored(w, "cell")), [IDS, OTHER, mask, *given], [("l", 0), ("m", 0)]
    )
    assert_near(found[0], recurrent(kind, w, E, given, mask)[1], "float32 sums near zero")
    assert_near(found[1], recurrent(kind, w, F, given)[1], "float32 sums near zero")


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


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("states", [False, True])
def test_a_sequence_of_any_length_begins_with_its_own_first_step(steps, states):
    """Of one step, forward and backward are the same; so are all steps and the last one."""
    x = X[:, :steps]
    for kind in GATES:
        w, given = arrays(kind), [normal(N, UNITS) for _ in range(STATES[kind])]
        names = [f"s{i}" for i in range(STATES[kind])] if states else []
        rows = [start("x", (steps, C)), *(start(name, (UNITS,)) for name in names)]
        for name, options in (("f", {}), ("b", {"go_backwards": True})):
            rows.append(layer(kind, name, ["x", *names], PLAIN | options | {"return_sequences": True}))
        weights = dict.fromkeys("fb", stored(w, "cell"))
        found = run(rows, weights, [x, *(given if states else [])], [("f", 0), ("b", 0)])
        for got, options in zip(found, ({}, {"go_backwards": True}), strict=True):
            want = recurrent(kind, w, x, given if states else None, None, options)[0]
            assert_near(got, want, "float32 sums near zero")
        assert (steps == 1) == np.array_equal(found[0], found[1])
