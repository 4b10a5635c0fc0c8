"""Layers of Keras over sequences: embeddings, recurrent layers, attention, and the steps that count (masks).

Source: Keras 3's layers of these names, for the order of gates, masks and results.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.keras_config import FOLD, MERGE, UNFOLD
from cgraph.formats.keras_rules import (
    KerasRule,
    LayerResults,
    LayerRule,
    LayerUse,
    Options,
    SequenceRule,
    Weights,
    activate,
    activation_of,
    axis_of,
    channels_last,
    constant,
    from_channels_last,
    merged_mask,
    unit_length,
)
from cgraph.formats.keras_windows import (
    channels_second,
    convolved,
    each_axis,
    filters_of,
    from_channels_second,
)
from cgraph.ir.graph import OPS, Node
from cgraph.ops.arithmetic import add, multiply, subtract, true_divide
from cgraph.ops.attention import scaled_dot_product_attention
from cgraph.ops.control import scan
from cgraph.ops.elementary import tanh
from cgraph.ops.join import concat
from cgraph.ops.leaf import Const
from cgraph.ops.shape import broadcast_to
from cgraph.ops.slicing import flip
from cgraph.ops.softmax import softmax

HIDDEN = np.float32(np.finfo(np.float32).min * 0.7)  # what Keras adds to scores of keys that do not count
FAR = np.float32(1e9)  # what its layers Attention and AdditiveAttention subtract from them

Step = Callable[[Options, Weights, Node, list[Node]], tuple[Node, list[Node]]]
"""Returns a step's output and new states from a step's input times the kernel, and its states."""


def embedding(use: LayerUse) -> LayerResults:
    ids = use.xs[0].astype("int32")
    table = constant(use.weights["embeddings"])
    mask = ids != 0 if use.options.get("mask_zero") else None
    return LayerResults((table.take(ids, axis=0),), mask)


def masking(use: LayerUse) -> LayerResults:
    counts = (use.xs[0] != np.float32(use.options.get("mask_value", 0.0))).any(axis=-1)
    x = OPS["where"](counts.reshape((*counts.shape, 1)), use.xs[0], np.float32(0))
    return LayerResults((x,), counts)


def repeat_vector(use: LayerUse) -> LayerResults:
    n, c = use.xs[0].shape
    return LayerResults((broadcast_to(use.xs[0].reshape((n, 1, c)), (n, use.options["n"], c)),))


def mean_of_steps(use: LayerUse) -> LayerResults:
    x, keeps, mask = use.xs[0], use.options.get("keepdims", False), use.masks[0]
    if mask is None:
        return LayerResults((x.mean(1, keepdims=keeps),))
    counts = mask.reshape((*mask.shape, 1))
    total = OPS["where"](counts, x, np.float32(0)).sum(1, keepdims=keeps)
    return LayerResults((total / counts.astype(x.dtype).sum(1, keepdims=keeps),))


def concatenate(use: LayerUse) -> LayerResults:
    axis = use.options["axis"]
    y = concat(use.xs, axis=axis_of(axis, use.xs[0]))
    if axis % y.ndim != 1 or y.ndim != 3 or all(x is None for x in use.masks):
        return LayerResults((y,), merged_mask(use.masks, use.options))
    masks = [Const(np.ones(x.shape[:2], bool)) if m is None else m for x, m in zip(use.xs, use.masks)]
    return LayerResults((y,), concat(masks, axis=1))


# -- recurrent layers -------------------------------------------------------------------------------------------------


def recurrent(step: Step, states: int) -> SequenceRule:
    def run(use: LayerUse) -> LayerResults:
        return run_steps(use, step, states)

    return SequenceRule(run, CELL, names=("initial_state", "mask"), inner="cell")


def run_steps(use: LayerUse, step: Step, count: int) -> LayerResults:
    """Return outputs ``[n, t, units]`` or the last one, then the last states if they are asked for."""
    options, weights = use.options, {name.rpartition("/")[2]: x for name, x in use.weights.items()}
    if options.get("stateful"):
        raise FormatError("stateful=True is not supported. Build the layer with stateful=False, and pass its states")
    x, units, whole_mask = use.xs[0], options["units"], use.named.get("mask", use.masks[0])
    mask = whole_mask
    zeros = Const(np.zeros((x.shape[0], units), np.float32))
    states = initial_states(use, count) or [zeros] * count
    if options.get("go_backwards"):
        x = x[:, ::-1]
        mask = None if mask is None else mask[:, ::-1]
    inputs = x @ constant(weights["kernel"])
    if options.get("use_bias", True):
        inputs = inputs + Const(weights["bias"].reshape(-1, inputs.shape[-1])[0])
    each = (inputs.transpose((1, 0, 2)),) if mask is None else (inputs.transpose((1, 0, 2)), mask.transpose((1, 0)))

    def body(carry: tuple[Node, ...], each: tuple[Node, ...]) -> tuple[tuple[Node, ...], Node]:
        new, after = step(options, weights, each[0], list(carry[1:]))
        if len(each) == 1:
            return (new, *after), new
        counts = each[1].reshape((x.shape[0], 1))
        new, *after = [OPS["where"](counts, a, b) for a, b in zip((new, *after), carry)]
        return (new, *after), new

    (last, *ends), outputs = scan(body, (zeros, *states), each)
    outputs = outputs.transpose((1, 0, 2))
    if mask is not None and options.get("zero_output_for_mask"):
        outputs = OPS["where"](mask.reshape((*mask.shape, 1)), outputs, np.float32(0))
        last = outputs[:, -1]
    every = bool(options.get("return_sequences"))
    values = (outputs if every else last, *(ends if options.get("return_state") else ()))
    return LayerResults(values, whole_mask if every else None)  # as Keras: not turned around with the steps


def initial_states(use: LayerUse, count: int) -> list[Node]:
    """Return the states that are passed to the layer; none if it starts at zero."""
    start = use.named.get("initial_state", tuple(use.xs[1:]))
    states = list(start) if isinstance(start, tuple) else [start]
    if len(states) not in (0, count):
        raise FormatError(f"it is called with {len(states)} states, and has {count}. Pass each state")
    return states


def gates(x: Node, count: int) -> list[Node]:
    units = x.shape[1] // count
    return [x[:, i * units : (i + 1) * units] for i in range(count)]


def lstm_step(options: Options, weights: Weights, x: Node, states: list[Node]) -> tuple[Node, list[Node]]:
    h, cell = states
    i, f, c, o = gates(x + h @ constant(weights["recurrent_kernel"]), 4)
    inner = activation_of(options, "recurrent_activation", "sigmoid")
    cell = activate(f, inner) * cell + activate(i, inner) * activate(c, activation_of(options))
    h = activate(o, inner) * activate(cell, activation_of(options))
    return h, [h, cell]


def gru_step(options: Options, weights: Weights, x: Node, states: list[Node]) -> tuple[Node, list[Node]]:
    (h,) = states
    kernel, units = weights["recurrent_kernel"], h.shape[1]
    inner = activation_of(options, "recurrent_activation", "sigmoid")
    of_z, of_r, of_h = gates(x, 3)
    if options.get("reset_after", True):
        product = h @ constant(kernel)
        if options.get("use_bias", True):
            product = product + Const(weights["bias"][1])
        z, r, new = gates(product, 3)
        z, r = activate(of_z + z, inner), activate(of_r + r, inner)
        new = of_h + r * new
    else:
        z, r = gates(h @ constant(kernel[:, : 2 * units]), 2)
        z, r = activate(of_z + z, inner), activate(of_r + r, inner)
        new = of_h + (r * h) @ constant(kernel[:, 2 * units :])
    h = z * h + (1 - z) * activate(new, activation_of(options))
    return h, [h]


def plain_step(options: Options, weights: Weights, x: Node, states: list[Node]) -> tuple[Node, list[Node]]:
    h = activate(x + states[0] @ constant(weights["recurrent_kernel"]), activation_of(options))
    return h, [h]


def convolved_steps(use: LayerUse) -> LayerResults:
    """A ConvLSTM over ``[n, t, *axes, c]``: gates are convolutions of a step and of the state before it."""
    options, weights = use.options, {name.rpartition("/")[2]: x for name, x in use.weights.items()}
    if options.get("stateful") or use.masks[0] is not None:
        raise FormatError("stateful=True and masks are not supported. Build the layer without them, or export as ONNX")
    x = use.xs[0].transpose((2, 0, 1, *range(3, use.xs[0].ndim)))  # [t, n, c, *axes]
    x = x[::-1] if options.get("go_backwards") else x
    steps, n = x.shape[:2]
    samples = x.reshape((steps * n, *x.shape[2:]))
    window = each_axis(options["kernel_size"], samples)
    inputs = convolved(options, samples, filters_of(weights["kernel"]), window, 1)
    if "bias" in weights:
        inputs = inputs + Const(weights["bias"].reshape(-1, *[1] * len(window)))
    inputs = inputs.reshape((steps, n, *inputs.shape[1:]))
    zeros = Const(np.zeros((n, options["filters"], *inputs.shape[3:]), np.float32))
    filters, inner = filters_of(weights["recurrent_kernel"]), activation_of(options, "recurrent_activation", "sigmoid")

    def body(carry: tuple[Node, Node], x: Node) -> tuple[tuple[Node, Node], Node]:
        h, cell = carry
        i, f, c, o = gates(x + convolved({"padding": "same", "strides": 1}, h, filters, window, 1), 4)
        cell = activate(f, inner) * cell + activate(i, inner) * activate(c, activation_of(options))
        h = activate(o, inner) * activate(cell, activation_of(options))
        return (h, cell), h

    states = [channels_second(x) for x in initial_states(use, 2)] or [zeros, zeros]
    ends, outputs = scan(body, (states[0], states[1]), inputs)
    outputs = outputs.transpose((1, 2, 0, *range(3, outputs.ndim)))
    last = [from_channels_second(x) for x in ends]
    values = outputs if options.get("return_sequences") else last[0], *(last if options.get("return_state") else ())
    return LayerResults(values)


# -- layers around layers (`keras_config`) ----------------------------------------------------------------------------


def steps_as_samples(use: LayerUse) -> LayerResults:
    x = channels_last(use.xs[0])
    return LayerResults((from_channels_last(x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))),))


def samples_as_steps(use: LayerUse) -> LayerResults:
    """The second operand is what the steps were taken from."""
    y, (n, steps) = channels_last(use.xs[0]), channels_last(use.xs[1]).shape[:2]
    return LayerResults((from_channels_last(y.reshape((n, steps, *y.shape[1:]))),), use.masks[1])


def two_directions(use: LayerUse) -> LayerResults:
    """The operands are the outputs of both directions, then their states."""
    forward, backward, *states = use.xs
    mode = use.options["merge_mode"]
    if use.options["return_sequences"]:
        backward = flip(backward, axis_of(1, backward))
    merges = {"sum": add, "mul": multiply, "ave": lambda a, b: (a + b) / 2, "concat": concat_channels}
    if mode is not None and mode not in merges:
        raise FormatError(f"merge_mode {mode!r:.40} is not supported. Use {', '.join(merges)} or None")
    outputs = (forward, backward) if mode is None else (merges[mode](forward, backward),)
    return LayerResults((*outputs, *states), use.masks[0])


def concat_channels(a: Node, b: Node) -> Node:
    return concat([a, b], axis_of(-1, a))


# -- attention --------------------------------------------------------------------------------------------------------


def hidden_keys(masks: list[Node | None], causal: bool, shape: Sequence[int]) -> Node | None:
    """Return where queries see keys: all masks that are there, and only keys up to a query's own position."""
    visible = Const(np.tri(*shape, dtype=bool)) if causal else None
    for mask in masks:
        if mask is not None:
            visible = mask if visible is None else OPS["logical_and"](visible, mask)
    return visible


def row(mask: Node | None) -> Node | None:
    """Return a mask of keys ``[n, t]`` for all queries."""
    return None if mask is None else mask.reshape((mask.shape[0], 1, mask.shape[1]))


def column(mask: Node | None) -> Node | None:
    """Return a mask of queries ``[n, t]`` for all keys."""
    return None if mask is None else mask.reshape((*mask.shape, 1))


def multi_head_attention(use: LayerUse) -> LayerResults:
    options, weights = use.options, use.weights
    if options.get("use_gate") or options.get("sliding_window"):
        raise FormatError("use_gate and sliding_window are not supported. Export the network as ONNX")
    roles = ("query", "value", "key")
    sides: dict[str, Node] = dict(zip(roles, use.xs)) | {x: use.named[x] for x in roles if x in use.named}
    query, value = sides["query"], sides["value"]
    key = sides.get("key", value)
    if any(x.ndim != 3 for x in (query, value, key)):
        raise FormatError("attention of more than one axis is not supported. Reshape its operands to [n, t, c]")
    masks_of: dict[str, Node | None] = {**dict(zip(roles, use.masks)), **use.named_masks}
    query_mask = masks_of.get("query")
    mask = use.named.get("attention_mask")
    masks = [
        column(query_mask),
        row(masks_of.get("value")),
        row(masks_of.get("key")),
        None if mask is None else mask.astype("bool"),
    ]
    visible = hidden_keys(masks, "use_causal_mask" in use.named, (query.shape[1], key.shape[1]))
    if visible is not None:
        visible = visible.reshape((*visible.shape[:-2], 1, *visible.shape[-2:])) if visible.ndim == 3 else visible
        visible = OPS["where"](visible, np.float32(0), HIDDEN)
    heads = by_heads(query, weights, "query"), by_heads(key, weights, "key"), by_heads(value, weights, "value")
    y = scaled_dot_product_attention(*heads, visible, scale=1 / float(np.sqrt(options["key_dim"])))
    kernel = weights["output_dense/kernel"]  # [heads, value_dim, c]
    y = y.transpose((0, 2, 1, 3)).reshape((*query.shape[:2], -1)) @ constant(kernel.reshape(-1, kernel.shape[-1]))
    bias = weights.get("output_dense/bias")
    return LayerResults((y if bias is None else y + Const(bias),), query_mask)


def by_heads(x: Node, weights: Weights, role: str) -> Node:
    """Return the projection of a sequence as ``[n, heads, t, d]``."""
    kernel, bias = weights[f"{role}_dense/kernel"], weights.get(f"{role}_dense/bias")
    c, heads, d = kernel.shape
    y = x @ constant(kernel.reshape(c, heads * d))
    y = y if bias is None else y + Const(bias.reshape(-1))
    return y.reshape((*x.shape[:2], heads, d)).transpose((0, 2, 1, 3))


def attention(scores: Callable[[LayerUse, Node, Node], Node]) -> Callable[[LayerUse], LayerResults]:
    def run(use: LayerUse) -> LayerResults:
        query, value = use.xs[:2]
        key = use.xs[2] if len(use.xs) > 2 else value
        products = scores(use, query, key)
        visible = hidden_keys([row(use.masks[1])], "use_causal_mask" in use.named, products.shape[1:])
        if visible is not None:
            products = products - OPS["where"](visible, np.float32(0), FAR)
        y = softmax(products, axis=-1) @ value
        if use.masks[0] is not None:
            y = OPS["where"](column(use.masks[0]), y, np.float32(0))
        return LayerResults((y,), use.masks[0])

    return run


def dot_scores(use: LayerUse, query: Node, key: Node) -> Node:
    if use.options.get("score_mode", "dot") != "dot":
        raise FormatError(f"score_mode {use.options['score_mode']!r:.40} is not supported. Use 'dot'")
    scores = query @ key.transpose((0, 2, 1))
    return scores * Const(use.weights["scale"]) if use.options.get("use_scale") else scores


def additive_scores(use: LayerUse, query: Node, key: Node) -> Node:
    n, t, c = query.shape
    sides = tanh(query.reshape((n, t, 1, c)) + key.reshape((n, 1, *key.shape[1:])))
    return (sides * Const(use.weights["scale"]) if use.options.get("use_scale", True) else sides).sum(-1)


def dot(use: LayerUse) -> LayerResults:
    x, y = use.xs
    if any(v.ndim not in (2, 3) for v in use.xs):
        raise FormatError("a Dot of images is not supported. Reshape them to [n, t, c]")
    axes = use.options["axes"]
    axes = [a % v.ndim for a, v in zip(axes if isinstance(axes, list) else [axes, axes], use.xs)]
    if use.options.get("normalize"):
        x, y = (unit_length(v, (a,)) for v, a in zip(use.xs, axes))
    left = x.reshape((x.shape[0], 1, x.shape[1])) if x.ndim == 2 else x if axes[0] == 2 else x.transpose((0, 2, 1))
    right = y.reshape((*y.shape, 1)) if y.ndim == 2 else y if axes[1] == 1 else y.transpose((0, 2, 1))
    products = left @ right
    n, rows, columns = products.shape
    shape = [n, *([rows] if x.ndim == 3 else []), *([columns] if y.ndim == 3 else [])]
    return LayerResults((products.reshape(tuple(shape) if len(shape) > 1 else (n, 1)),))


# -- functions of tensors that compute masks --------------------------------------------------------------------------


def function(build: Callable[[Options, list[Any]], Node]) -> LayerRule:
    def of_layer(options: Options, weights: Weights, xs: list[Node]) -> Node:
        return build(options, xs)

    return LayerRule(of_layer, takes_numbers=True)


def expand_dims(options: Options, xs: list[Any]) -> Node:
    x = channels_last(xs[0])
    axis = options["axis"] % (x.ndim + 1)
    return from_channels_last(x.reshape((*x.shape[:axis], 1, *x.shape[axis:])))


def any_of(options: Options, xs: list[Any]) -> Node:
    return from_channels_last(
        OPS["any"](channels_last(xs[0]), options["axis"], keepdims=options.get("keepdims", False))
    )


def tensorflow_function(use: LayerUse) -> LayerResults:
    """A function of TensorFlow of two operands, as Keras 2 writes ``x + y``."""
    name = use.options.get("function")
    if name not in FUNCTIONS:
        raise FormatError(f"the function {name!r:.60} is not supported. Use {', '.join(FUNCTIONS)}, or export as ONNX")
    x, y = (*use.xs, use.named["y"])[:2]
    if isinstance(y, Node) and y.ndim != x.ndim:
        raise FormatError(f"{name} of {x.ndim} and {y.ndim} axes is not supported. Use a layer of Keras")
    return LayerResults((FUNCTIONS[name](x, y),))


FUNCTIONS: dict[str, Callable[[Any, Any], Node]] = {
    **dict.fromkeys(("__operators__.add", "math.add"), add),
    **dict.fromkeys(("math.multiply", "__operators__.mul"), multiply),
    **dict.fromkeys(("math.subtract", "__operators__.sub"), subtract),
    **dict.fromkeys(("math.truediv", "math.divide", "__operators__.truediv"), true_divide),
}
HEADS = {"query": "query_dense", "key": "key_dense", "value": "value_dense", "attention_output": "output_dense"}
ATTENTION_ARRAYS = tuple(f"{x}/{array}" for x in HEADS.values() for array in ("kernel", "bias"))
CELL = ("cell/kernel", "cell/recurrent_kernel", "cell/bias")
RULES: dict[str, KerasRule] = {
    "AdditiveAttention": SequenceRule(attention(additive_scores), ("scale",), ("use_causal_mask",)),
    "Any": function(any_of),
    "Attention": SequenceRule(attention(dot_scores), ("scale",), ("use_causal_mask",)),
    "Concatenate": SequenceRule(concatenate),
    **{f"ConvLSTM{i}D": SequenceRule(convolved_steps, CELL, ("initial_state",), "cell") for i in (1, 2, 3)},
    "Dot": SequenceRule(dot),
    "Embedding": SequenceRule(embedding, ("embeddings",)),
    "ExpandDims": function(expand_dims),
    "GRU": recurrent(gru_step, 1),
    "GlobalAveragePooling1D": SequenceRule(mean_of_steps),
    "LSTM": recurrent(lstm_step, 2),
    "LogicalAnd": function(lambda o, xs: OPS["logical_and"](*xs)),
    "LogicalOr": function(lambda o, xs: OPS["logical_or"](*xs)),
    "Masking": SequenceRule(masking),
    "MultiHeadAttention": SequenceRule(
        multi_head_attention,
        ATTENTION_ARRAYS,
        names=("query", "value", "key", "attention_mask", "use_causal_mask"),
        groups=HEADS,
    ),
    "NotEqual": function(lambda o, xs: OPS["not_equal"](*xs)),
    "RepeatVector": SequenceRule(repeat_vector),
    "SimpleRNN": recurrent(plain_step, 1),
    "ZerosLike": function(lambda o, xs: Const(np.zeros(xs[0].shape, o.get("dtype") or xs[0].dtype))),
    "TFOpLambda": SequenceRule(tensorflow_function, names=("y",)),
    FOLD: SequenceRule(steps_as_samples),
    MERGE: SequenceRule(two_directions),
    UNFOLD: SequenceRule(samples_as_steps, names=("mask",)),
}
