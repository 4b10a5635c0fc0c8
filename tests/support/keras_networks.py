"""Networks of Keras layers of sequences as configurations, and the formulas of recurrent layers in NumPy."""

import numpy as np

import cgraph as cg
from cgraph.formats.keras_graph import graph_of
from cgraph.formats.keras_h5 import KerasFile

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


def masked_rows(*more):
    return [start("i", (T,), "int32"), start("j", (T,), "int32"), *(
        layer("Embedding", name, [of], {"mask_zero": zero})
        for name, of, zero in (("e", "i", True), ("f", "j", True), ("g", "j", False))
    ), *more]  # fmt: skip


OTHER = IDS[::-1].copy()
WEIGHTS = {name: {"embeddings": TABLE} for name in "efg"}
E, F = TABLE[IDS], TABLE[OTHER]


def heads(q, k, v, out):
    return {
        "query/kernel": normal(q, 2, 3), "query/bias": normal(2, 3), "key/kernel": normal(k, 2, 3),
        "key/bias": normal(2, 3), "value/kernel": normal(v, 2, 5), "value/bias": normal(2, 5),
        "attention_output/kernel": normal(2, 5, out), "attention_output/bias": normal(out),
    }  # fmt: skip


HEADS = {"num_heads": 2, "key_dim": 3, "value_dim": 5}
