"""Operators of TFLite on quantised values: which compute, which only move them, and which refuse them."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.tflite import load, reader
from cgraph.formats.tflite.context import ON_BYTES, ON_WORDS, OPERATORS
from tests.support.tflite_models import Network, results_of

COMPUTE = set(
    "ADD ARG_MAX ARG_MIN ASSIGN_VARIABLE AVERAGE_POOL_2D BATCH_MATMUL CONV_2D DEPTHWISE_CONV_2D DEQUANTIZE "
    "EMBEDDING_LOOKUP EXP FULLY_CONNECTED GELU HARD_SWISH IF LEAKY_RELU LOGISTIC LSTM MAX_POOL_2D MEAN MUL "
    "PRELU QUANTIZE READ_VARIABLE RELU RELU6 RELU_N1_TO_1 RESIZE_BILINEAR SOFTMAX STABLEHLO_COMPOSITE SUB "
    "SVDF TANH TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM WHILE".split()
)
ON_16_BITS = set(
    "ADD ASSIGN_VARIABLE CONV_2D DEPTHWISE_CONV_2D DEQUANTIZE IF LEAKY_RELU LSTM QUANTIZE READ_VARIABLE "
    "SOFTMAX STABLEHLO_COMPOSITE SUB SVDF TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM WHILE".split()
)
IMAGE = (2, 4, 6, 3)


def whole(*numbers, shape=None):
    return np.array(numbers, "int32").reshape(shape or (len(numbers),))


MOVES = {  # shape of the operand, the others, the number of results, options
    "BATCH_TO_SPACE_ND": ((4, 2, 3, 2), [whole(2, 2), whole(0, 1, 1, 0, shape=(2, 2))], 1, {}),
    "BROADCAST_TO": ((3, 1), [whole(2, 3, 4)], 1, {}), "CONCATENATION": (IMAGE, "itself", 1, {"axis": 2}),
    "DEPTH_TO_SPACE": ((1, 2, 3, 8), [], 1, {"block": 2}), "EXPAND_DIMS": (IMAGE, [whole(1)], 1, {}),
    "GATHER": (IMAGE, [whole(2, 0, 1, 1)], 1, {"axis": 3}), "MATRIX_DIAG": ((3, 4), [], 1, {}),
    "GATHER_ND": ((3, 4), [whole(2, 1, 0, 3, shape=(2, 2))], 1, {}),
    "MAXIMUM": (IMAGE, "itself", 1, {}), "MINIMUM": (IMAGE, "itself", 1, {}),
    "MIRROR_PAD": ((3, 4), [whole(1, 2, 0, 3, shape=(2, 2))], 1, {}),
    "PACK": ((3, 4), "itself", 1, {"count": 2, "axis": 1}),
    "PAD": ((3, 4), [whole(1, 2, 0, 3, shape=(2, 2))], 1, {}),
    "REDUCE_MAX": (IMAGE, [whole(2, 0)], 1, {"keepdims": True}), "REDUCE_MIN": (IMAGE, [whole(3)], 1, {}),
    "RESHAPE": (IMAGE, [whole(8, -1)], 1, {}), "RESIZE_NEAREST_NEIGHBOR": (IMAGE, [whole(7, 5)], 1, {}),
    "REVERSE_V2": (IMAGE, [whole(2, 0)], 1, {}), "SLICE": (IMAGE, [whole(0, 1, 2, 0), whole(2, 2, -1, 3)], 1, {}),
    "SPACE_TO_BATCH_ND": (IMAGE, [whole(2, 3), whole(0, 0, 0, 0, shape=(2, 2))], 1, {}),
    "SPACE_TO_DEPTH": (IMAGE, [], 1, {"block": 2}), "SQUEEZE": ((1, 3, 1, 4), [], 1, {"axes": (0,)}),
    "SPLIT_V": (IMAGE, [whole(1, 5), whole(2)], 2, {"count": 2}),
    "STRIDED_SLICE": (IMAGE, [whole(0, 3, 1, 0), whole(2, 0, 6, 3), whole(1, -2, 3, 1)], 1, {}),
    "TILE": ((3, 4), [whole(2, 3)], 1, {}), "TRANSPOSE": (IMAGE, [whole(3, 0, 2, 1)], 1, {}),
    "UNPACK": ((3, 4), [], 4, {"count": 4, "axis": 1}),
}  # fmt: skip
OTHERS = set(
    "DENSIFY DILATE DYNAMIC_UPDATE_SLICE MATRIX_SET_DIAG PADV2 REVERSE_SEQUENCE SCATTER_ND SPARSE_TO_DENSE "
    "SPLIT TOPK_V2".split()
)  # of other operands: below, and in the tests of their own


def test_each_operator_computes_with_quantised_values_or_moves_them_or_refuses_them():
    assert {kind for kind, computes in ON_BYTES.items() if computes} == COMPUTE
    assert {kind for kind, computes in ON_BYTES.items() if not computes} == MOVES.keys() | OTHERS
    assert MOVES.keys() | OTHERS | ON_16_BITS == ON_WORDS
    assert ON_BYTES.keys() < OPERATORS.keys()


def moved(kind, value, dtype, scale):
    """The results of an operator for an operand, of floats or of numbers of one format."""
    shape, others, count, options = MOVES[kind]
    net = Network()
    form = {"dtype": dtype, **scale}
    operands = [net.input(shape, dtype, **scale) for _ in range(1 + (others == "itself"))]
    operands += [] if others == "itself" else [net.constant(x) for x in others]
    made = net.op(kind, operands, *[form] * count, **options)
    values = [value, value[::-1].copy()][: len(net.inputs)]
    return results_of(net, made if count > 1 else [made], *values)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("kind", MOVES)
def test_what_moves_numbers_moves_quantised_ones_as_it_moves_floats(kind, dtype):
    ends = np.iinfo(dtype)
    value = np.random.default_rng(1).integers(ends.min, ends.max + 1, MOVES[kind][0])
    want = moved(kind, value.astype("float32"), "float32", {})
    found = moved(kind, value.astype(dtype), dtype, {"scale": 0.5, "zero": 0})
    for got, numbers in zip(found, want, strict=True):
        np.testing.assert_array_equal(got, numbers.astype(dtype), strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_parts_and_the_largest_of_quantised_values(dtype):
    ends = np.iinfo(dtype)
    x = np.random.default_rng(2).permutation(np.linspace(ends.min, ends.max, 24).astype(dtype)).reshape(4, 6)
    net, form = Network(), {"scale": 0.5, "zero": 0}
    given = net.input((4, 6), dtype, **form)
    parts = net.op("SPLIT", [net.constant(whole(1)[0]), given], *[{"dtype": dtype, **form}] * 3, count=3)
    most = net.op("TOPK_V2", [given, net.constant(whole(2))], {"dtype": dtype, **form}, "int32")
    *found, values, places = results_of(net, [*parts, *most], x)
    np.testing.assert_array_equal(np.concatenate(found, 1), x, strict=True)
    np.testing.assert_array_equal(values, np.sort(x)[:, :-3:-1], strict=True)
    np.testing.assert_array_equal(places, np.argsort(x)[:, :-3:-1])


@pytest.mark.parametrize(("count", "more"), [(1, 0), (4, 0), (5, 1), (9, 5)])
@pytest.mark.parametrize("side", ["operands", "results"])
def test_operands_and_results_beyond_four_are_charged(count, more, side, monkeypatch):
    spent = []
    spend = Allowance.spend

    def note(self, what, nbytes=0, work=0, nodes=0):
        spent.append((what, nodes))
        spend(self, what, nbytes, work, nodes)

    net = Network()
    if side == "operands":
        made = [net.op("ADD_N", [net.input((2,)) for _ in range(count)])]
    else:
        made = net.op("UNPACK", [net.input((count, 2))], *["float32"] * count, count=count, axis=0)
        made = made if count > 1 else [made]
    monkeypatch.setattr(Allowance, "spend", note)
    load(net.bytes(*made))
    assert ("its operands and results", reader.NODES_OF_OPERAND * more) in spent


@pytest.mark.parametrize("kind", sorted(OPERATORS.keys() - ON_BYTES.keys()))
def test_an_operator_that_refuses_quantised_values_says_so(kind):
    net = Network()
    y = net.op(kind, [net.input((2, 3), "int8", scale=0.5, zero=0)], {"dtype": "int8", "scale": 0.5, "zero": 0})
    with pytest.raises(FormatError, match=f"{kind} does not support quantised values. Dequantise its operands"):
        load(net.bytes(y))
