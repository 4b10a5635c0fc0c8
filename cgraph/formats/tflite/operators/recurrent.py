"""Importers of recurrent operators. Their states are variable tensors, which persist between runs.

Source: lstm_eval.cc and svdf.cc of tensorflow/lite/kernels.
"""

from collections.abc import Sequence

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import ACTIVATIONS, TfliteContext, operator
from cgraph.formats.tflite.fixed import as_bytes, parts_of, scale_factor
from cgraph.formats.tflite.fixed_functions import logistic_table, tanh_table
from cgraph.formats.tflite.operators.conv import bias_of
from cgraph.formats.tflite.value import QuantisedFormat
from cgraph.ir.graph import Node, apply
from cgraph.kernels.conv8.calls import Result
from cgraph.ops.leaf import Const
from cgraph.ops.physical.integer import IntegerMatmul
from cgraph.record import Record

GATES = 4  # in the order input, forget, cell, output
WEIGHTS, RECURRENT, BIASES, STATE, CELL = 1, 5, 12, 18, 19  # numbers of operands
UNUSED = {
    "peephole weights": (9, 10, 11),
    "projections": (16, 17),
    "layer norms": (20, 21, 22, 23),
}
GATE_BITS = 3  # integer bits of a gate's argument
NODES = 120
WORDS = 1 << 15


@operator("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", on_bytes=True, on_words=True)
def lstm(c: TfliteContext) -> Node:
    """Import LSTM, one step ``[n, inputs]``, and UNIDIRECTIONAL_SEQUENCE_LSTM, steps ``[n, steps, inputs]``."""
    check_parts(c)
    c.allowance.spend("an LSTM", nodes=NODES)
    x, is_sequence = c[0].plain, c.kind != "LSTM"
    is_batch_first = is_sequence and not c.option("time_major")
    steps = (x.transpose((1, 0, 2)) if is_batch_first else x) if is_sequence else x.reshape((1, *x.shape))
    if steps.ndim != 3:
        raise FormatError(f"{x.spec} is not a sequence of steps")
    state = [c[i].plain.reshape((steps.shape[1], -1)) for i in (STATE, CELL)]
    (h, cell), rows = (lstm_of_bytes if c.is_quantised else lstm_of_floats)(c, steps, state)
    for i, value in ((STATE, h), (CELL, cell)):
        c.assign(i, value.reshape(c[i].shape))
    if not is_sequence:
        return rows[0]
    return rows.transpose((1, 0, 2)) if is_batch_first else rows


def check_parts(c: TfliteContext) -> None:
    """Raise FormatError unless an LSTM has the weights of four gates, and no others."""
    for name, numbers in UNUSED.items():
        if any(c.get(i) is not None for i in numbers):
            raise FormatError(f"{name} are not supported. Use an LSTM of four gates without them")
    if c.get(WEIGHTS) is None:
        raise FormatError("coupled input and forget gates are not supported. Use an LSTM of four gates")
    if c.kind == "LSTM" and c.option("kernel") != 0:
        raise FormatError(f"kernel_type {c.option('kernel')} is not supported. Convert with the full kernel")


def joined(c: TfliteContext, first: int) -> Node:
    """Return the weights of all gates, ``[inputs, gates * n]``."""
    return cg.concat([c.filters(first + i, (1, 0)) for i in range(GATES)], axis=1)


def lstm_of_floats(c: TfliteContext, steps: Node, state: Sequence[Node]) -> tuple[list[Node], Node]:
    if any(c[WEIGHTS + i].quantised is not None for i in range(2 * GATES)):
        raise FormatError("an LSTM of floats with weights of bytes is not supported. Quantise all of it, or nothing")
    bias = cg.concat([c[BIASES + i].node for i in range(GATES)], axis=0)
    w, u, clip = joined(c, WEIGHTS), joined(c, RECURRENT), c.option("clip")
    activate = activation_of(c)

    def step(carry: list[Node], x: Node) -> tuple[list[Node], Node]:
        h, cell = carry
        i, f, g, o = cg.split(x + cg.matmul(h, u), GATES, -1)
        cell = cg.sigmoid(f) * cell + cg.sigmoid(i) * activate(g)
        cell = cg.clip(cell, -clip, clip) if clip > 0 else cell
        h = cg.sigmoid(o) * activate(cell)
        return [h, cell], h

    return cg.scan(step, list(state), cg.matmul(steps, w) + bias)


def activation_of(c: TfliteContext):
    """Return the activation of the cell and of the result."""
    number = c.option("activation")
    if number not in ACTIVATIONS:
        raise FormatError(f"the activation {number} is not supported")
    return ACTIVATIONS[number]


class Gates(Record, eq=False):
    """The sums of all gates of one operand: bytes times weights, scaled to int16.

    Fields
        zero: zero point of the bytes
        weights: int8 ``[inputs, gates * n]``
        bias: int32 ``[gates * n]``
        factor, shift: for each column
    """

    zero: int
    weights: np.ndarray
    bias: np.ndarray
    factor: np.ndarray
    shift: np.ndarray

    def sums(self, x: Node) -> Node:
        """Return int32 ``[n, gates * n]`` of bytes ``[n, inputs]``."""
        scales = np.ones(self.bias.size, "float32")
        constants = (Const(y, copy=False) for y in (self.weights, self.bias, scales))
        total = apply(IntegerMatmul(self.zero, Result("i4")), x, *constants)
        return cg.fixed_product(total, self.factor, self.shift)


def gates_of(c: TfliteContext, form: QuantisedFormat, first: int, count: int, has_bias: bool) -> Gates:
    """Return the gates of one operand, whose format is given. FormatError if the weights are not symmetric int8."""
    values = [c[first + i] for i in range(GATES)]
    arrays = [x.array for x in values if x.array is not None and x.bytes.is_signed and not x.bytes.zeros.any()]
    if len(arrays) < GATES:
        raise FormatError("quantised weights of an LSTM must be constant int8 without zero points")
    c.spend(nbytes=2 * sum(x.nbytes for x in arrays))
    weights = np.ascontiguousarray(np.concatenate(arrays).T)
    if weights.shape[1] != GATES * count:
        raise FormatError(f"weights {list(weights.shape)} do not fit a state of {count}")
    bias = np.zeros(GATES * count, "int32")
    if has_bias:
        bias = np.concatenate([bias_of(c, BIASES + i, count) for i in range(GATES)])
    scales = [np.float64(x.bytes.scale * form.scale / np.float32(2.0 ** (GATE_BITS - 15))) for x in values]
    return Gates(form.zero, weights, bias, *np.repeat(parts_of(scales), count, axis=1))


def lstm_of_bytes(c: TfliteContext, steps: Node, state: Sequence[Node]) -> tuple[list[Node], Node]:
    """Compute with bytes, gates and cells of int16; both functions are tables."""
    form, count = c[STATE].bytes, state[0].shape[1]
    exponent = int(np.round(np.log2(c[CELL].bytes.scale)))
    if not c[CELL].bytes.is_wide or c[CELL].bytes.scale != np.float32(2.0) ** exponent or not -15 <= exponent <= -9:
        raise FormatError("the cell of a quantised LSTM must be int16, and its scale a power of 2 from 2**-15 to 2**-9")
    if not form.equals(c.result) or c.option("activation") != 4:
        raise FormatError("a quantised LSTM must have results in the format of its state, and the activation tanh")
    x, h = gates_of(c, c[0].bytes, WEIGHTS, count, True), gates_of(c, form, RECURRENT, count, False)
    most = c.option("clip") / c[CELL].bytes.scale if c.option("clip") > 0 else WORDS - 1
    clip = int(min(most, WORDS - 1))
    inputs = words(x.sums(steps.reshape((-1, steps.shape[2])))).reshape((*steps.shape[:2], GATES * count))
    out = np.float64(np.float32(2.0**-15) / form.scale * np.float32(2.0**-15))

    def step(carry: list[Node], row: Node) -> tuple[list[Node], Node]:
        i, f, g, o = cg.split(words(h.sums(carry[0]) + row), GATES, -1)
        i, f, o = (looked_up(logistic_table(GATE_BITS), y) for y in (i, f, o))
        past = halves_away(f * cg.astype(carry[1], "int32"), 15)
        cell = words(past + halves_away(i * looked_up(tanh_table(GATE_BITS), g), 30 + exponent))
        cell = cg.clip(cell, -clip, clip)
        after = scale_factor(o * looked_up(tanh_table(15 + exponent), cell), out)
        result = as_bytes(after, form)
        return [result, cg.astype(cell, "int16")], result

    return cg.scan(step, list(state), inputs)


def words(x: Node) -> Node:
    """Clip int32 to 16 bits."""
    return cg.clip(x, np.int32(-WORDS), np.int32(WORDS - 1))


def looked_up(table: np.ndarray, x: Node) -> Node:
    """Return the entries of a table of int16, as int32."""
    return cg.astype(cg.take(table, x + np.int32(WORDS)), "int32")


def halves_away(x: Node, places: int) -> Node:
    """Return ``x / 2**places``, halves rounded away from zero."""
    magnitude = cg.right_shift(cg.abs(x) + np.int32(1 << places >> 1), np.int32(places))
    return cg.where(cg.less(x, 0), -magnitude, magnitude)


@operator("SVDF", on_bytes=True, on_words=True)
def svdf(c: TfliteContext) -> Node:
    """Import SVDF; operands: input ``[n, inputs]``, filters of features and of time, a bias, the state.

    Each filter's result is remembered; the result is a sum of the last ones, weighted by time, and over `rank` filters.
    """
    x, state, rank = c[0].plain, c[4].plain, c.option("rank")
    filters, memory = c[2].shape
    if rank < 1 or filters % rank or x.ndim != 2 or state.size != x.shape[0] * filters * memory:
        raise FormatError(f"{filters} filters of {memory} steps and rank {rank} do not fit {x.spec} and {state.spec}")
    past = state.reshape((x.shape[0], filters, memory))
    (kept, total) = (svdf_of_bytes if c.is_quantised else svdf_of_floats)(c, x, past[:, :, 1:])
    c.assign(4, kept.reshape(state.shape))
    return total


def svdf_of_floats(c: TfliteContext, x: Node, past: Node) -> tuple[Node, Node]:
    if c[1].quantised is not None or c[2].quantised is not None:
        raise FormatError("SVDF of floats with weights of bytes is not supported. Quantise all of it, or nothing")
    features = cg.matmul(x, c.filters(1, (1, 0)))
    kept = cg.concat([past, cg.expand_dims(features, 2)], axis=2)
    total = summed(c, cg.sum(kept * c[2].node, axis=2))
    return kept, c.activated(total if c.get(3) is None else total + c[3].node)


def summed(c: TfliteContext, x: Node) -> Node:
    """Add the filters of a unit."""
    rank = c.option("rank")
    return cg.sum(x.reshape((x.shape[0], x.shape[1] // rank, rank)), axis=2)


def svdf_of_bytes(c: TfliteContext, x: Node, past: Node) -> tuple[Node, Node]:
    """Compute with bytes, a state and weights of time of int16, and sums of int32."""
    form, slow = c[4].bytes, c[2].bytes
    if not form.is_wide or not slow.is_wide or c[1].array is None or not c[1].bytes.is_signed or form.zero or slow.zero:
        raise FormatError(
            "a quantised SVDF must have int8 filters of features, int16 filters of time and an int16 state, without "
            "zero points"
        )
    weights = c.filters(1, (1, 0)).op.array  # type: ignore[attr-defined]
    unused = np.zeros(weights.shape[1], "int32"), np.ones(weights.shape[1], "float32")
    constants = (Const(y, copy=False) for y in (weights, *unused))
    total = apply(IntegerMatmul(c[0].bytes.zero, Result("i4")), x, *constants)
    features = as_bytes(scale_factor(total, np.float64(c[0].bytes.scale * c[1].bytes.scale / form.scale)), form)
    kept = cg.concat([past, cg.expand_dims(features, 2)], axis=2)
    products = cg.astype(kept, "int32") * cg.astype(c[2].node, "int32")
    units = cg.astype(summed(c, cg.sum(products, axis=2)), "int32")
    bias = bias_of(c, 3, units.shape[1])
    scale = np.float64(form.scale * slow.scale / c.result.scale)
    return kept, as_bytes(scale_factor(units + bias, scale), c.result)
