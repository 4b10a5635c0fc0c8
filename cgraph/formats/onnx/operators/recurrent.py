"""Importers of LSTM, GRU and RNN, unrolled: the graph has the nodes of each step."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic.bounds import Length, Size
from cgraph.formats.onnx.dynamic.value import Array, counts_of, cut_to_common, lengths_of, node_in, with_lengths
from cgraph.formats.onnx.operators.quantised import product_of_numbers
from cgraph.formats.onnx.operators.quantize import quantize_dynamically
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.prefix import prefix
from cgraph.record import Record, replace

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULT = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
TAKE_ALPHA = ("leakyrelu", "thresholdedrelu", "hardsigmoid", "elu", "affine", "scaledtanh")
TAKE_BETA = ("hardsigmoid", "affine", "scaledtanh")
Function = Callable[[Node], Node]
NODES_PER_STEP, BYTE_NODES = 24, 24  # and those of a product of bytes
WRITTEN_OUT = 4  # steps of a dynamic length up to which the graph has the nodes of each


def function_named(name: str, alpha: float | None, beta: float | None) -> Function:
    """Return an activation by ONNX's name, ignoring case."""
    plain = {"relu": "relu", "tanh": "tanh", "sigmoid": "sigmoid", "softsign": "softsign", "softplus": "softplus"}
    numbered = {"leakyrelu": "leaky_relu", "thresholdedrelu": "thresholded_relu", "elu": "elu"}
    key = name.lower()
    if key in plain:
        return getattr(cg, plain[key])
    if key in numbered:
        return lambda x: getattr(cg, numbered[key])(x, *([] if alpha is None else [alpha]))
    if key == "hardsigmoid":
        return lambda x: cg.hard_sigmoid(x, 0.2 if alpha is None else alpha, 0.5 if beta is None else beta)
    if key == "affine":
        return lambda x: x * (1.0 if alpha is None else alpha) + (0.0 if beta is None else beta)
    if key == "scaledtanh":
        return lambda x: cg.tanh(x * (1.0 if beta is None else beta)) * (1.0 if alpha is None else alpha)
    raise FormatError(f"activation {name!r} is not supported")


class Direction(Record):
    """The weights of one direction: ``[gates * hidden, ...]``.

    Fields
        w, r: for the input and for the state; ``[..., gates * hidden]`` if they are bytes
        wb, rb: their biases ``[gates * hidden]``; except in a GRU, `wb` is the sum of both
        peep: peephole weights of LSTM for the gates i, o and f, ``[3 * hidden]``, or None
        functions: activations in ONNX's order
        clip: bound of the inputs of activations, or None
        options: `input_forget` of LSTM, `linear_before_reset` of GRU
        formats: scale and zero point of `w` and of `r`, if they are bytes
    """

    w: Node
    r: Node
    wb: Node
    rb: Node
    peep: Node | None
    functions: list[Function]
    clip: float | None
    options: dict[str, int]
    formats: tuple[tuple[Node, Node], ...] | None = None

    @property
    def size(self) -> int:
        """Numbers of all gates."""
        return self.wb.shape[0]

    @property
    def hidden(self) -> int:
        """Numbers of a state."""
        return self.r.shape[1 if self.formats is None else 0]

    def of_input(self, x: Node) -> Node:
        """Return the products of inputs ``[n, inputs]`` with their weights."""
        return cg.matmul(x, self.w.T) if self.formats is None else byte_product(x, self.w, self.formats[0])

    def of_state(self, h: Node) -> Node:
        """Return the products of states ``[batch, hidden]`` with all their weights."""
        return cg.matmul(h, self.r.T) if self.formats is None else byte_product(h, self.r, self.formats[1])

    def cut(self, x: Node) -> Node:
        return x if self.clip is None else cg.clip(x, -self.clip, self.clip)


def byte_product(x: Node, weights: Node, weights_format: tuple[Node, Node]) -> Node:
    """Return the product of floats, rounded to bytes by their range, with weights of bytes."""
    numbers, scale, zero = quantize_dynamically(x)
    weights_scale, weights_zero = weights_format
    return product_of_numbers(numbers, weights, (scale, weights_scale, zero, weights_zero), None)


def rnn_step(d: Direction, x: Node, state: tuple[Node, ...]) -> tuple[Node, ...]:
    return (d.functions[0](d.cut(x + d.of_state(state[0]))),)


def gru_step(d: Direction, x: Node, state: tuple[Node, ...]) -> tuple[Node, ...]:
    (h,) = state
    n = h.shape[1]
    f, g = d.functions
    zr = d.cut(x[:, : 2 * n] + cg.matmul(h, d.r[: 2 * n].T) + d.rb[: 2 * n])
    z, r = f(zr[:, :n]), f(zr[:, n:])
    if d.options["linear_before_reset"]:
        inner = r * (cg.matmul(h, d.r[2 * n :].T) + d.rb[2 * n :])
    else:
        inner = cg.matmul(r * h, d.r[2 * n :].T) + d.rb[2 * n :]
    return ((1.0 - z) * g(d.cut(x[:, 2 * n :] + inner)) + z * h,)


def lstm_step(d: Direction, x: Node, state: tuple[Node, ...]) -> tuple[Node, ...]:
    h, cell = state
    n = h.shape[1]
    f, g, last = d.functions
    all_gates = x + d.of_state(h)
    i, o, forget, c = (all_gates[:, k * n : (k + 1) * n] for k in range(4))
    if d.peep is not None:
        i, forget = i + d.peep[:n] * cell, forget + d.peep[2 * n :] * cell
    i = f(d.cut(i))
    forget = 1.0 - i if d.options["input_forget"] else f(d.cut(forget))
    cell = forget * cell + i * g(d.cut(c))
    if d.peep is not None:
        o = o + d.peep[n : 2 * n] * cell
    return f(d.cut(o)) * last(cell), cell


STEP = {"LSTM": lstm_step, "GRU": gru_step, "RNN": rnn_step}


@operator("LSTM", "GRU", "RNN")
def recurrent(c: Context) -> tuple[Array, ...]:
    """Import a recurrent layer: Y ``[length, directions, batch, hidden]`` and last states; layout 1 is batch-first.

    Length and batch may be dynamic: a state stays unchanged in the steps after the length.
    """
    layout = c.attribute("layout", 0)
    c, length, batch = with_common_batch(c, layout)
    x = cg.swapaxes(c[0], 0, 1) if layout else c[0]
    way = c.attribute("direction", "forward")
    turns = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(way)
    if turns is None:
        raise FormatError(f"direction {way!r} is not supported. Use forward, reverse or bidirectional")
    ends = None if c.value(4) is None else cg.expand_dims(cg.astype(c[4], "int64"), 1)
    directions = [one_direction(c, x, i, turned, length, ends) for i, turned in enumerate(turns)]
    y = cg.stack([steps for steps, _ in directions], 1)
    last = [cg.stack([state[k] for _, state in directions], 0) for k in range(2 if c.kind == "LSTM" else 1)]
    if layout:
        y, last = cg.transpose(y, (2, 0, 1, 3)), [cg.swapaxes(v, 0, 1) for v in last]
    lengths = {0: batch, 1: length} if layout else {0: length, 2: batch}
    return with_lengths(y, lengths), *(with_lengths(v, {0 if layout else 1: batch}) for v in last)


@operator("com.microsoft.DynamicQuantizeLSTM")
def quantised_lstm(c: Context) -> tuple[Array, ...]:
    """Import DynamicQuantizeLSTM: weights are bytes ``[directions, inputs, 4 * hidden]``, products are of bytes.

    Inputs are rounded to bytes once, states in each step.
    """
    return recurrent(replace(c, kind="LSTM"))


def with_common_batch(c: Context, layout: int) -> tuple[Context, Length, Length]:
    """Return the node with operands of one batch, and the lengths of sequences and batch."""
    axes = {i: 1 - layout if i != 4 else 0 for i in (0, 4, 5, 6) if c.value(i) is not None}
    values = {i: c.array(i) for i in axes}
    length = lengths_of(values[0])[layout]
    for i, x in values.items():
        fixed = sorted(counts_of(x).keys() - {axes[i], *([layout] if i == 0 else [])})
        if fixed:
            text = x.text  # type: ignore[union-attr]
            raise FormatError(
                f"the length of axis {fixed[0]} of operand {i}, {text}, is known only at run time. "
                "Give shapes= that fix it"
            )
    parts = [(node_in(x), axes[i], lengths_of(x)[axes[i]]) for i, x in values.items()]
    if not c.is_ragged:
        return c, length, parts[0][2]
    nodes, batch = cut_to_common(c.limits, parts, c.unequal)
    return c.reading(dict(zip(values, nodes))), length, batch


def one_direction(
    c: Context, x: Node, i: int, turned: bool, length: Length, ends: Node | None
) -> tuple[Node, tuple[Node, ...]]:
    """Run one direction over ``[length, batch, inputs]``; return ``[length, batch, hidden]`` and the last state."""
    steps, batch = x.shape[:2]
    d = direction_of(c, i, x)
    initial = [c.get(5 + k) for k in range(2 if c.kind == "LSTM" else 1)]
    if c.attribute("layout", 0):
        initial = [None if s is None else cg.swapaxes(s, 0, 1) for s in initial]
    state = tuple(cg.zeros((batch, d.hidden), x.dtype) if s is None else s[i] for s in initial)
    flat = d.of_input(cg.reshape(x, (steps * batch, x.shape[2]))) + d.wb
    run, nodes = Run(partial(STEP[c.kind], d), turned, ends), NODES_PER_STEP + BYTE_NODES * (d.formats is not None)
    if isinstance(length, Size) and steps > WRITTEN_OUT:
        c.spend(nodes=nodes)
        gates = cg.reshape(prefix(flat, length.node * batch), (steps, batch, d.size))
        return run.counted(gates, state, length.node)
    c.spend(nodes=nodes * steps)
    if isinstance(length, Size):
        whole = cg.reshape(length.node, (1, 1))
        run = replace(run, ends=whole if ends is None else cg.minimum(ends, whole))
    return run.written_out(cg.reshape(flat, (steps, batch, d.size)), state)


class Run(Record, eq=False):
    """The steps of one direction.

    Fields
        step: from the gates of one step ``[batch, gates * hidden]`` and the state to the next state
        turned: from the last step of each sample to the first
        ends: the length of each sample ``[batch, 1]``: afterwards its results are 0 and its state stays; None without
    """

    step: Callable[[Node, tuple[Node, ...]], tuple[Node, ...]]
    turned: bool
    ends: Node | None

    def at(self, t: Any, gates: Node, state: tuple[Node, ...], end: Node | None) -> tuple[Node, tuple[Node, ...]]:
        """Return the result and the state of step `t`; `end`: see `ends`."""
        new = self.step(gates, state)
        if end is None:
            return new[0], new
        alive = cg.greater(end, t)
        return cg.where(alive, new[0], cg.zeros_like(new[0])), tuple(cg.where(alive, a, b) for a, b in zip(new, state))

    def written_out(self, gates: Node, state: tuple[Node, ...]) -> tuple[Node, tuple[Node, ...]]:
        """Return results and last state of a graph with the nodes of each step.

        Steps after the end of a sample are computed, since no earlier one reads them, and their results are left out.
        """
        if not gates.shape[0]:
            return cg.zeros((0, *state[0].shape), gates.dtype), state
        places = [*range(gates.shape[0])]
        if self.ends is None:
            y, states = self.all_steps(gates, state, places[::-1] if self.turned else places)
            return y, states[-1]
        ends = cg.minimum(self.ends, len(places))
        order = turned_rows(gates.shape[:2], ends) if self.turned else None
        y, states = self.all_steps(rows_in(gates, order), state, places)
        steps = Const(np.array(places)[:, None, None])
        y = cg.where(cg.less(steps, ends), y, cg.zeros_like(y))
        last = tuple(last_of(cg.stack(values, 0), first, ends) for values, first in zip(zip(*states), state))
        return rows_in(y, order), last

    def all_steps(self, gates: Node, state: tuple[Node, ...], order: list[int]) -> tuple[Node, list[tuple[Node, ...]]]:
        """Return the results of steps by their place, and the states after them in order."""
        results: list[Any] = [None] * len(order)
        states = []
        for t in order:
            state = self.step(gates[t], state)
            results[t] = state[0]
            states.append(state)
        return cg.stack(results, 0), states

    def counted(self, gates: Node, state: tuple[Node, ...], count: Node) -> tuple[Node, tuple[Node, ...]]:
        """Return results and last state of a loop of `count` steps, which is at most that of the gates."""
        length = gates.shape[0]

        def one_step(values: tuple[Node, ...]) -> tuple[Node, ...]:
            n, y, *before = values
            t = count - 1 - n if self.turned else n
            row = cg.reshape(cg.take_rows(gates, t, 1), gates.shape[1:])
            result, after = self.at(t, row, tuple(before), self.ends)
            return n + 1, cg.set_rows(y, t, cg.expand_dims(result, 0)), *after

        zero = Const(np.zeros((), gates.dtype))
        start = (Const(np.array(0, np.int64)), cg.broadcast_to(zero, (length, *state[0].shape)), *state)
        _, y, *last = cg.while_loop(lambda values: cg.less(values[0], count), one_step, start, length)
        return y, tuple(last)


def last_of(values: Node, first: Node, ends: Node) -> Node:
    """Return each sample's value of its last step ``[batch, hidden]`` from all of them, or its first one."""
    last_steps = cg.reshape(cg.maximum(cg.broadcast_to(ends, (first.shape[0], 1)) - 1, 0), (1, -1))
    return cg.where(cg.greater(ends, 0), rows_in(values, last_steps)[0], first)


def turned_rows(shape: tuple[int, ...], ends: Node) -> Node:
    """Return, for each step and sample, the step that is there if each sample is read from its end on."""
    steps = Const(np.arange(shape[0])[:, None])
    ends = cg.reshape(cg.broadcast_to(ends, (shape[1], 1)), (1, -1))
    return cg.where(cg.less(steps, ends), ends - 1 - steps, steps)


def rows_in(x: Node, steps: Node | None) -> Node:
    """Return the values of ``[length, batch, n]`` at steps ``[k, batch]`` of each sample; all of them for None."""
    if steps is None:
        return x
    length, batch, n = x.shape
    places = steps * batch + Const(np.arange(batch))
    return cg.reshape(cg.take(cg.reshape(x, (length * batch, n)), cg.reshape(places, (-1,)), 0), (-1, batch, n))


def functions_of(c: Context, directions: int) -> list[Function]:
    """Return the activations of directions; each coefficient belongs to the next activation that takes one."""
    names = c.attribute("activations") or DEFAULT[c.kind] * directions
    alpha, beta = iter(c.attribute("activation_alpha") or []), iter(c.attribute("activation_beta") or [])
    return [
        function_named(
            name,
            next(alpha, None) if name.lower() in TAKE_ALPHA else None,
            next(beta, None) if name.lower() in TAKE_BETA else None,
        )
        for name in names
    ]


def item(x: Node, i: int) -> Node:
    """Return an item of the first axis; of a constant, as a constant."""
    return Const(x.op.array[i], copy=False) if isinstance(x.op, ConstOp) else x[i]


def direction_of(c: Context, i: int, x: Node) -> Direction:
    """Return the weights and activations of direction i."""
    gates = GATES[c.kind]
    w, r = item(c[1], i), item(c[2], i)
    formats = None if w.dtype.kind == "f" else tuple((item(c[k], i), item(c[k + 1], i)) for k in (8, 10))
    size, hidden = (w.shape[0], r.shape[1]) if formats is None else (w.shape[1], r.shape[0])
    if size != gates * hidden:
        raise FormatError(f"weights of {size} rows do not fit {gates} gates of {hidden}")
    bias = cg.zeros((2 * size,), x.dtype) if c.value(3) is None else c[3][i]
    count = len(DEFAULT[c.kind])
    functions = functions_of(c, i + 1)[i * count :][:count]
    peep = c[7][i] if c.kind == "LSTM" and c.value(7) is not None else None
    options = {name: c.attribute(name, 0) for name in ("input_forget", "linear_before_reset")}
    wb, rb = bias[:size], bias[size:]
    if c.kind != "GRU":
        wb = wb + rb
    return Direction(w, r, wb, rb, peep, functions, c.attribute("clip"), options, formats)
