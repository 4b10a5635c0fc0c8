"""Importers of recurrent operators. Their states are variable tensors, which persist between runs.

Source: lstm_eval.cc and svdf.cc of tensorflow/lite/kernels.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.tflite.context import TfliteContext, operator
from cgraph.formats.tflite.fixed import as_bytes, parts_of, scale_factor
from cgraph.formats.tflite.fixed_functions import logistic_table, tanh_table
from cgraph.formats.tflite.operators.conv import bias_of
from cgraph.formats.tflite.operators.pointwise import divide
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
NODES, SVDF_NODES = 320, 60  # of an LSTM of four steps, which is unrolled, and of SVDF
TANH = 4  # the number of the activation
WORDS = 1 << 15


@operator("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", on_bytes=True, on_words=True)
def lstm(c: TfliteContext) -> Node:
    """Import LSTM, one step ``[n, inputs]``, and UNIDIRECTIONAL_SEQUENCE_LSTM, steps ``[n, steps, inputs]``."""
    check_parts(c)
    c.allowance.spend("an LSTM", nodes=NODES)
    x, is_sequence = c[0].plain, c.kind != "LSTM"
    if x.ndim != 2 + is_sequence:
        raise FormatError(f"{x.spec} does not have {2 + is_sequence} axes: samples, steps of a sequence, and inputs")
    is_batch_first = is_sequence and not c.option("time_major")
    steps = (x.transpose((1, 0, 2)) if is_batch_first else x) if is_sequence else x.reshape((1, *x.shape))
    state = [c[i].plain.reshape((steps.shape[1], -1)) for i in (STATE, CELL)]
    (h, cell), rows = (lstm_of_bytes if c.is_quantised else lstm_of_floats)(c, steps, state)
    c.assign(STATE, h.reshape(c[STATE].shape))
    c.assign(CELL, cell.reshape(c[CELL].shape))
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


def weights_of(c: TfliteContext, first: int) -> Node:
    """Return the weights of all gates, ``[inputs, gates * n]``."""
    return cg.concat([c.filters(first + i, (1, 0)) for i in range(GATES)], axis=1)


def lstm_of_floats(c: TfliteContext, steps: Node, state: Sequence[Node]) -> tuple[list[Node], Node]:
    if any(c[WEIGHTS + i].quantised is not None for i in range(2 * GATES)):
        raise FormatError("an LSTM of floats with weights of bytes is not supported. Quantise all of it, or nothing")
    bias = cg.concat([c[BIASES + i].node for i in range(GATES)], axis=0)
    w, u, clip = weights_of(c, WEIGHTS), weights_of(c, RECURRENT), c.option("clip")

    def step(carry: list[Node], x: Node) -> tuple[list[Node], Node]:
        h, cell = carry
        i, f, g, o = cg.split(x + cg.matmul(h, u), GATES, -1)
        cell = cg.sigmoid(f) * cell + cg.sigmoid(i) * c.activated(g)
        cell = cg.clip(cell, -clip, clip) if clip > 0 else cell
        h = cg.sigmoid(o) * c.activated(cell)
        return [h, cell], h

    return cg.scan(step, list(state), cg.matmul(steps, w) + bias)


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
    if not form.equals(c.result) or form.is_wide or c[0].bytes.is_wide or c.option("activation") != TANH:
        raise FormatError(
            "a quantised LSTM must have bytes, results in the format of its state, and the activation tanh"
        )
    x, h = gates_of(c, c[0].bytes, WEIGHTS, count, True), gates_of(c, form, RECURRENT, count, False)
    clip = int(min(c.option("clip") / c[CELL].bytes.scale, WORDS - 1))
    inputs = words(x.sums(steps.reshape((-1, steps.shape[2])))).reshape((*steps.shape[:2], GATES * count))
    out = np.float64(np.float32(2.0**-15) / form.scale * np.float32(2.0**-15))

    def step(carry: list[Node], row: Node) -> tuple[list[Node], Node]:
        i, f, g, o = cg.split(words(h.sums(carry[0]) + row), GATES, -1)
        i, f, o = (look_up(logistic_table(GATE_BITS), y) for y in (i, f, o))
        past = divide(f * cg.astype(carry[1], "int32"), 15)
        cell = words(past + divide(i * look_up(tanh_table(GATE_BITS), g), 30 + exponent))
        cell = cg.clip(cell, -clip, clip) if clip > 0 else cell
        after = scale_factor(o * look_up(tanh_table(15 + exponent), cell), out)
        result = as_bytes(after, form)
        return [result, cg.astype(cell, "int16")], result

    return cg.scan(step, list(state), inputs)


def words(x: Node) -> Node:
    """Clip int32 to 16 bits."""
    return cg.clip(x, np.int32(-WORDS), np.int32(WORDS - 1))


def look_up(table: np.ndarray, x: Node) -> Node:
    """Return the entries of a table of int16, as int32."""
    return cg.astype(cg.take(table, x + np.int32(WORDS)), "int32")


@operator("SVDF", on_bytes=True, on_words=True)
def svdf(c: TfliteContext) -> Node:
    """Import SVDF; operands: input ``[n, inputs]``, filters of features and of time, a bias, the state.

    Each filter's result is remembered; the result is a sum of the last ones, weighted by time, and over `rank` filters.
    """
    x, past, rank = c[0].plain, c[4].plain, c.option("rank")
    if c[2].ndim != 2 or rank < 1 or c[2].shape[0] % rank or x.ndim != 2 or past.size != x.shape[0] * prod(c[2].shape):
        raise FormatError(f"filters {list(c[2].shape)} of rank {rank} do not fit {x.spec} and {past.spec}")
    c.allowance.spend("SVDF", nodes=SVDF_NODES)
    older = past.reshape((x.shape[0], *c[2].shape))[:, :, 1:]
    state, total = (svdf_of_bytes if c.is_quantised else svdf_of_floats)(c, x, older)
    c.assign(4, state.reshape(past.shape))
    return total


def svdf_of_floats(c: TfliteContext, x: Node, older: Node) -> tuple[Node, Node]:
    if c[1].quantised is not None or c[2].quantised is not None:
        raise FormatError("SVDF of floats with weights of bytes is not supported. Quantise all of it, or nothing")
    features = cg.matmul(x, c.filters(1, (1, 0)))
    state = cg.concat([older, cg.expand_dims(features, 2)], axis=2)
    total = sum_units(c, cg.sum(state * c[2].node, axis=2))
    return state, c.activated(total if c.get(3) is None else total + c[3].node)


def sum_units(c: TfliteContext, x: Node) -> Node:
    """Add the filters of a unit."""
    rank = c.option("rank")
    return cg.sum(x.reshape((x.shape[0], x.shape[1] // rank, rank)), axis=2)


def svdf_of_bytes(c: TfliteContext, x: Node, older: Node) -> tuple[Node, Node]:
    """Compute with bytes, a state and weights of time of int16, and sums of int32."""
    form, slow = c[4].bytes, c[2].bytes
    words, others = (form, slow), (c[0].bytes, c.result, c[1].bytes)
    if any(not x.is_wide or x.zero for x in words) or any(x.is_wide for x in others) or not c[1].bytes.is_signed:
        raise FormatError(
            "a quantised SVDF must have int8 filters of features, int16 filters of time and an int16 state, without "
            "zero points"
        )
    weights = c.filters(1, (1, 0)).op.array  # type: ignore[attr-defined]
    unused = np.zeros(weights.shape[1], "int32"), np.ones(weights.shape[1], "float32")
    constants = (Const(y, copy=False) for y in (weights, *unused))
    total = apply(IntegerMatmul(c[0].bytes.zero, Result("i4")), x, *constants)
    features = as_bytes(scale_factor(total, np.float64(c[0].bytes.scale * c[1].bytes.scale / form.scale)), form)
    state = cg.concat([older, cg.expand_dims(features, 2)], axis=2)
    products = cg.astype(state, "int32") * cg.astype(c[2].node, "int32")
    units = cg.astype(sum_units(c, cg.sum(products, axis=2)), "int32")
    bias = bias_of(c, 3, units.shape[1])
    scale = np.float64(form.scale * slow.scale / c.result.scale)
    return state, as_bytes(scale_factor(units + bias, scale), c.result)
