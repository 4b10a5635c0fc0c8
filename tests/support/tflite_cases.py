"""Small TFLite networks, one or more for each operator on floats: what tests compute, and fuzzers begin with."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.tflite_models import Network

IMAGE = (2, 7, 6, 4)
CASES: dict[str, tuple[str, Callable]] = {}


def case(*kinds: str) -> Callable:
    """List a function that adds operators to a network and gives the results."""

    def register(build):
        for kind in kinds:
            CASES[f"{kind} {build.__name__}"] = (kind, build)
        return build

    return register


def values_of(net, rng):
    """Inputs: floats, whole numbers from 1, truth values."""
    found = []
    for i in net.inputs:
        shape, number = net.tensors[i][0], net.tensors[i][1][1]
        values = rng.standard_normal(shape)
        values = {0: values, 2: 1 + np.abs(values * 4) % 5, 4: 1 + np.abs(values * 4) % 5, 6: values > 0}[number]
        found.append(values.astype({0: "float32", 2: "int32", 4: "int64", 6: "bool"}[number]))
    return found


def constant(net, rng, *shape):
    return net.constant(rng.standard_normal(shape).astype("float32"))


def convolved(net, rng, x):
    """Images that have another order of axes here than in the file."""
    return net.op("CONV_2D", [x, constant(net, rng, 4, 1, 1, 4), constant(net, rng, 4)], stride_w=1, stride_h=1)


def whole(net, *numbers):
    return net.constant(np.array(numbers, "int32"))


@case("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
def two_images(net, kind, rng):
    options = {"activation": 1} if kind in ("ADD", "SUB", "MUL", "DIV") else {}
    return net.op(kind, [net.input(IMAGE), net.input(IMAGE)], **options)


@case("ADD", "MUL", "PRELU", "DIV")
def a_number_for_each_channel(net, kind, rng):
    x = convolved(net, rng, net.input(IMAGE))
    return net.op(kind, [x, constant(net, rng, 4)])


@case("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
def compared(net, kind, rng):
    return net.op(kind, [net.input((3, 4), "int32"), net.input((4,), "int32")], "bool")


@case("LOGICAL_AND", "LOGICAL_OR")
def logic(net, kind, rng):
    return net.op(kind, [net.input((3, 4), "bool"), net.input((3, 4), "bool")], "bool")


@case("FLOOR_DIV", "FLOOR_MOD", "DIV")
def of_whole_numbers(net, kind, rng):
    x = net.op("NEG", [net.input((3, 4), "int32")], "int32")
    return net.op(kind, [x, net.input((3, 4), "int32")], "int32")


@case(
    "ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOGISTIC", "NEG", "RELU", "RELU6", "RELU_N1_TO_1",
    "RELU_0_TO_1", "ROUND", "SIN", "SQUARE", "TANH", "ZEROS_LIKE", "GELU", "SIGN",
)  # fmt: skip
def one_operand(net, kind, rng):
    return net.op(kind, [net.input((5, 40))])


@case("LOG", "SQRT", "RSQRT")
def of_positive_numbers(net, kind, rng):
    return net.op(kind, [net.op("SQUARE", [net.input((5, 40))])])


@case("POW")
def powers(net, kind, rng):
    return net.op(kind, [net.op("SQUARE", [net.input((5, 40))]), net.input((5, 40))])


@case("GELU")
def approximate(net, kind, rng):
    return net.op(kind, [net.input((5, 40))], approximate=True)


@case("LEAKY_RELU")
def sloped(net, kind, rng):
    return net.op(kind, [net.input((5, 40))], alpha=0.3)


@case("LOGICAL_NOT")
def inverted(net, kind, rng):
    return net.op(kind, [net.input((5, 4), "bool")], "bool")


@case("ADD_N")
def three(net, kind, rng):
    return net.op(kind, [net.input((5, 4)) for _ in range(3)])


@case("CAST")
def casts(net, kind, rng):
    return net.op(kind, [net.input((5, 4))], "int32")


@case("SELECT", "SELECT_V2")
def chosen(net, kind, rng):
    return net.op(kind, [net.input((5, 4), "bool"), net.input((5, 4)), net.input((5, 4))])


@case("SELECT")
def chosen_by_row(net, kind, rng):
    return net.op(kind, [net.input((5,), "bool"), net.input((5, 4)), net.input((5, 4))])


@case("CONV_2D")
def same(net, kind, rng):
    weights = constant(net, rng, 5, 3, 2, 4), constant(net, rng, 5)
    return net.op(kind, [net.input(IMAGE), *weights], stride_w=2, stride_h=1, activation=3)


@case("CONV_2D")
def dilated(net, kind, rng):
    weights = constant(net, rng, 5, 3, 2, 4), constant(net, rng, 5)
    strides = {"stride_w": 1, "stride_h": 1, "dilation_w": 2, "dilation_h": 2}
    return net.op(kind, [net.input(IMAGE), *weights], padding=1, **strides)


@case("CONV_2D")
def grouped(net, kind, rng):
    weights = constant(net, rng, 6, 3, 3, 2), constant(net, rng, 6)
    return net.op(kind, [net.input(IMAGE), *weights], stride_w=1, stride_h=1)


@case("DEPTHWISE_CONV_2D")
def multiplied(net, kind, rng):
    weights = constant(net, rng, 1, 3, 3, 8), constant(net, rng, 8)
    return net.op(kind, [net.input(IMAGE), *weights], stride_w=2, stride_h=2, multiplier=2, activation=1)


def small_weights(net, rng, shape, axis, count):
    """Filters of int8 with a scale for each, or one."""
    values = rng.integers(-127, 128, shape).astype("int8")
    return net.constant(values, scale=rng.uniform(0.002, 0.004, count), zero=(0, axis))


@case("CONV_2D", "DEPTHWISE_CONV_2D")
def with_filters_of_bytes(net, kind, rng):
    """Dynamic range: the run quantises its floats."""
    x, bias, steps = net.input(IMAGE), constant(net, rng, 4), {"stride_w": 1, "stride_h": 1, "activation": 1}
    if kind == "DEPTHWISE_CONV_2D":
        return net.op(kind, [x, small_weights(net, rng, (1, 3, 3, 4), 3, 4), bias], multiplier=1, **steps)
    weights = [small_weights(net, rng, (4, 3, 3, 4), 0, count) for count in (1, 4)]
    return [net.op(kind, [x, w, bias], **steps) for w in weights]


@case("FULLY_CONNECTED")
def with_weights_of_bytes(net, kind, rng):
    """A row of zeros among others, which has no range."""
    x = net.op("MUL", [net.input((5, 24)), net.constant(np.float32([[1], [0], [2], [-3], [1e-3]]))])
    weights, bias = [small_weights(net, rng, (7, 24), 0, count) for count in (1, 7)], constant(net, rng, 7)
    return [net.op(kind, [x, w, bias], asymmetric=way) for w in weights for way in (False, True)]


@case("TRANSPOSE_CONV")
def enlarged(net, kind, rng):
    x, weights, bias = net.input((2, 3, 4, 4)), constant(net, rng, 5, 3, 3, 4), constant(net, rng, 5)
    options = {"stride_w": 2, "stride_h": 2}
    exact = net.op(kind, [whole(net, 2, 6, 8, 5), weights, x, bias], **options)
    return exact, net.op(kind, [whole(net, 2, 7, 9, 5), weights, x], padding=1, **options)


@case("AVERAGE_POOL_2D", "MAX_POOL_2D")
def windows(net, kind, rng):
    options = {"window_w": 3, "window_h": 2, "stride_w": 2, "stride_h": 2}
    return net.op(kind, [net.input(IMAGE)], **options), net.op(kind, [net.input(IMAGE)], padding=1, **options)


@case("FULLY_CONNECTED")
def rows(net, kind, rng):
    weights = constant(net, rng, 5, 24), constant(net, rng, 5)
    flat = net.op(kind, [net.input(IMAGE), *weights], activation=1)
    return flat, net.op(kind, [net.input((2, 3, 24)), *weights], keepdims=True)


@case("BATCH_MATMUL")
def products(net, kind, rng):
    straight = net.op(kind, [net.input((2, 3, 4)), net.input((2, 4, 5))])
    return straight, net.op(kind, [net.input((4, 3)), net.input((5, 4))], adjoint_x=True, adjoint_y=True)


@case("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
def along_axes(net, kind, rng):
    """Of images in both orders of axes, with every set of axes that leaves another order."""
    x = convolved(net, rng, net.input(IMAGE))
    sets = ((1, 2), (1,), (-1,), (0, 3), (0, 1, 2, 3))
    kept = [net.op(kind, [x, whole(net, *axes)], keepdims=True) for axes in sets]
    return *kept, *[net.op(kind, [x, whole(net, *axes)]) for axes in sets]


@case("MEAN", "REDUCE_MAX")
def of_a_value_in_the_files_order(net, kind, rng):
    return net.op(kind, [net.input(IMAGE), whole(net, 1)], keepdims=True)


@case("REDUCE_ANY", "REDUCE_ALL")
def of_truth_values(net, kind, rng):
    return net.op(kind, [net.input((3, 4), "bool"), whole(net, 1)], "bool")


@case("ARG_MAX", "ARG_MIN")
def places(net, kind, rng):
    return net.op(kind, [net.input((3, 4, 5)), whole(net, 1)], "int32", dtype=2)


@case("SOFTMAX")
def sharpened(net, kind, rng):
    return net.op(kind, [net.input((3, 40))], beta=2.0)


@case("LOG_SOFTMAX", "L2_NORMALIZATION")
def normalised(net, kind, rng):
    return net.op(kind, [net.input((3, 40))])


@case("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")
def over_channels(net, kind, rng):
    x = convolved(net, rng, net.input(IMAGE))
    return net.op(kind, [x], **({"beta": 1.0} if kind == "SOFTMAX" else {}))


@case("CUMSUM")
def running(net, kind, rng):
    x, axis = net.input((3, 4)), whole(net, 1)
    return [net.op(kind, [x, axis], exclusive=a, reverse=b) for a in (False, True) for b in (False, True)]


@case("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resized(net, kind, rng):
    x, size = net.input(IMAGE), whole(net, 13, 4)
    return [net.op(kind, [x, size], **how) for how in ({}, {"align_corners": True}, {"half_pixel": True})]


@case("RESHAPE")
def by_operand_and_by_option(net, kind, rng):
    x = net.input(IMAGE)
    return net.op(kind, [x, whole(net, 2, -1, 8)]), net.op(kind, [x], shape=(4, 7, 12))


@case("RESHAPE")
def by_a_computed_shape(net, kind, rng):
    x = net.input(IMAGE)
    sizes = net.op("SHAPE", [x], "int32", dtype=2)
    first = net.op("STRIDED_SLICE", [sizes, whole(net, 0), whole(net, 1), whole(net, 1)], "int32", shrink=1)
    return net.op(kind, [x, net.op("PACK", [first, net.constant(np.int32(-1))], "int32", count=2, axis=0)])


@case("SQUEEZE")
def dropped(net, kind, rng):
    x = net.input((2, 1, 3, 1))
    return net.op(kind, [x]), net.op(kind, [x], axes=(1,))


@case("EXPAND_DIMS")
def added(net, kind, rng):
    return net.op(kind, [net.input((2, 3)), whole(net, -1)])


@case("TRANSPOSE")
def turned(net, kind, rng):
    x = convolved(net, rng, net.input(IMAGE))
    return net.op(kind, [x, whole(net, 0, 2, 1, 3)])


@case("RANK")
def counted(net, kind, rng):
    return net.op("ADD", [net.op(kind, [net.input((2, 3))], "int32"), net.input((), "int32")], "int32")


@case("CONCATENATION")
def joined(net, kind, rng):
    x, y = net.input(IMAGE), net.input((2, 7, 6, 3))
    z = convolved(net, rng, x)
    return net.op(kind, [z, y], axis=3), net.op(kind, [z, x], axis=-3)


@case("SPLIT")
def halves(net, kind, rng):
    x = convolved(net, rng, net.input(IMAGE))
    return net.op(kind, [whole(net, 3), x], "float32", "float32", count=2)


@case("SPLIT_V")
def unequal(net, kind, rng):
    return net.op(kind, [net.input((6, 3)), whole(net, 1, -1, 2), whole(net, 0)], *["float32"] * 3, count=3)


@case("PACK")
def stacked(net, kind, rng):
    return net.op(kind, [net.input((2, 3)), net.input((2, 3))], count=2, axis=1)


@case("UNPACK")
def apart(net, kind, rng):
    return net.op(kind, [net.input((2, 3))], *["float32"] * 3, count=3, axis=1)


@case("SLICE")
def cut_out(net, kind, rng):
    x = convolved(net, rng, net.input(IMAGE))
    return net.op(kind, [x, whole(net, 0, 1, 2, 0), whole(net, 2, 3, -1, 2)])


@case("STRIDED_SLICE")
def masked(net, kind, rng):
    x = convolved(net, rng, net.input(IMAGE))
    limits = [whole(net, 0, 1, 5, -3), whole(net, 2, 6, 0, 4), whole(net, 1, 2, -2, 1)]
    plain = net.op(kind, [x, *limits], begin=1, end=4)
    return plain, net.op(kind, [x, *limits], shrink=2), net.op(kind, [x, *limits[:3]], new_axis=1, begin=2)


@case("PAD")
def framed(net, kind, rng):
    x = convolved(net, rng, net.input(IMAGE))
    return net.op(kind, [x, net.constant(np.array([[0, 0], [1, 2], [3, 0], [0, 1]], "int32"))])


@case("PADV2")
def framed_with_a_number(net, kind, rng):
    return net.op(kind, [net.input((2, 3)), net.constant(np.array([[0, 1], [2, 0]], "int32")), constant(net, rng)])


@case("MIRROR_PAD")
def mirrored(net, kind, rng):
    return net.op(kind, [net.input((4, 3)), net.constant(np.array([[2, 1], [0, 2]], "int32"))], mode=0)


@case("TILE")
def repeated(net, kind, rng):
    return net.op(kind, [net.input((4, 3)), whole(net, 2, 3)])


@case("BROADCAST_TO")
def widened(net, kind, rng):
    return net.op(kind, [net.input((4, 1)), whole(net, 2, 4, 3)])


@case("FILL")
def filled(net, kind, rng):
    return net.op("ADD", [net.op(kind, [whole(net, 2, 3), constant(net, rng)]), net.input((2, 3))])


@case("REVERSE_V2")
def backwards(net, kind, rng):
    return net.op(kind, [net.input((4, 3)), whole(net, 1)])


@case("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")
def blocks(net, kind, rng):
    return net.op(kind, [net.input((2, 4, 6, 8))], block=2)


@case("SPACE_TO_BATCH_ND")
def blocks_apart(net, kind, rng):
    return net.op(kind, [net.input((2, 5, 4, 3)), whole(net, 3, 2), net.constant(np.array([[1, 0], [0, 2]], "int32"))])


@case("BATCH_TO_SPACE_ND")
def blocks_together(net, kind, rng):
    crops = net.constant(np.array([[1, 0], [0, 2]], "int32"))
    return net.op(kind, [net.input((12, 5, 4, 3)), whole(net, 3, 2), crops])


@case("GATHER")
def taken(net, kind, rng):
    return net.op(kind, [net.input((4, 3, 2)), whole(net, 2, 0, 1, 1)], axis=1)


@case("GATHER")
def taken_from_batches(net, kind, rng):
    """One or two axes of a batch, counted from either end, the elements' axis next to them or not."""
    x, places = net.input((2, 3, 4, 5)), rng.integers(0, 4, (2, 3, 2, 6)).astype("int32")
    ways = ((places, 2, 2), (places[:, 0], 1, 2), (places[:, 0, 0], -1, -2), (places[:, 0, 0, 0], 1, 3))
    return [net.op(kind, [x, net.constant(i)], batch_axes=batch, axis=axis) for i, batch, axis in ways]


@case("GATHER_ND")
def taken_at(net, kind, rng):
    return net.op(kind, [net.input((4, 3, 2)), net.constant(np.array([[1, 2], [3, 0]], "int32"))])


@case("ONE_HOT")
def hot(net, kind, rng):
    numbers = net.constant(np.int32(6)), net.constant(np.float32(2)), net.constant(np.float32(-1))
    return net.op(kind, [net.input((3,), "int32"), *numbers], axis=-1)


@case("RANGE")
def ranged(net, kind, rng):
    numbers = [net.constant(np.int32(n)) for n in (1, 8, 3)]
    return net.op("ADD", [net.op(kind, numbers, "int32"), net.input((3,), "int32")], "int32")


@case("TOPK_V2")
def largest(net, kind, rng):
    return net.op(kind, [net.input((3, 9)), net.constant(np.int32(4))], "float32", "int32")


@case("DEQUANTIZE")
def weights_of_half_precision(net, kind, rng):
    half = net.constant(rng.standard_normal((5, 3, 3, 4)).astype("float16"))
    return net.op("CONV_2D", [net.input(IMAGE), net.op(kind, [half]), constant(net, rng, 5)], stride_w=1, stride_h=1)


@case("DENSIFY")
def sparse_weights(net, kind, rng):
    """Rows of which some are empty, and of half precision."""
    rows = rng.standard_normal((6, 4)).astype("float16") * (rng.random((6, 4)) < 0.4)
    dense = net.op(kind, [net.sparse(rows)], "float16")
    return net.op("FULLY_CONNECTED", [net.input((3, 4)), net.op("DEQUANTIZE", [dense]), constant(net, rng, 6)])


@case("RFFT2D", "REAL", "IMAG", "COMPLEX_ABS")
def spectra(net, kind, rng):
    """Of rows, which are cut, and of images of more pixels than there are."""
    rows = net.op("RFFT2D", [net.input((3, 2, 1, 20)), whole(net, 1, 16)], "complex64")
    images = net.op("RFFT2D", [net.input((2, 4, 6)), whole(net, 8, 8)], "complex64")
    return [rows, images] if kind == "RFFT2D" else [net.op(kind, [x]) for x in (rows, images)]


@case("CAST")
def real_parts(net, kind, rng):
    return net.op(kind, [net.op("RFFT2D", [net.input((3, 1, 16)), whole(net, 1, 16)], "complex64")])


@case("CUSTOM 'Convolution2DTransposeBias'")
def enlarged_with_a_bias(net, kind, rng):
    """Padding 1 is SAME and 2 is VALID; strides of rows and columns differ."""
    x, weights, bias = net.input((2, 3, 5, 4)), constant(net, rng, 6, 3, 2, 4), constant(net, rng, 6)
    ways = ((1, 2, 1, 3, 9), (2, 2, 1, 5, 10), (1, 1, 2, 5, 5), (2, 1, 2, 7, 6))
    return [
        net.op(kind, [x, weights, bias], floats(2, *pixels, 6), padding=padding, stride_w=w, stride_h=h)
        for padding, w, h, *pixels in ways
    ]


def floats(*shape):
    return {"shape": shape, "dtype": "float32"}


@case("CUSTOM 'MaxPoolingWithArgmax2D'", "CUSTOM 'MaxUnpooling2D'")
def pooled_and_back(net, kind, rng):
    options = {"padding": 2, "stride_w": 2, "stride_h": 3, "window_w": 2, "window_h": 3}
    results = [floats(1, 2, 2, 3)] * 2
    x = net.op("CUSTOM 'MaxPoolingWithArgmax2D'", [net.input((1, 6, 4, 3))], *results, **options)
    return net.op("CUSTOM 'MaxUnpooling2D'", x, floats(1, 6, 4, 3), **options)


@case("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE")
def accumulated(net, kind, rng):
    """What was there is read, what is assigned is read after that."""
    net.act("CALL_ONCE", [], graph=net.subgraph(lambda inner: initialised(inner, np.arange(6.0).reshape(2, 3))))
    handle, x = net.handle("sum"), net.input((2, 3))
    before = net.op("READ_VARIABLE", [handle], floats(2, 3))
    net.act("ASSIGN_VARIABLE", [handle, net.op("ADD", [before, x])])
    return before, net.op("READ_VARIABLE", [handle], floats(2, 3))


def initialised(inner, value, name="sum"):
    """A graph that gives a variable its initial value."""
    inner.act("ASSIGN_VARIABLE", [inner.handle(name), inner.constant(value.astype("float32"))])
    return []


@case("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")
def gated(net, kind, rng):
    """Of one step, of few and of many, clipped or not; the sequence may come first or the samples."""
    ways: tuple[dict, ...] = ({"activation": 4},)
    if kind != "LSTM":
        ways = ({"activation": 4}, {"activation": 4, "time_major": True, "clip": 0.3})
    shapes = {"LSTM": ((2, 3),)}.get(kind, ((2, 5, 3), (40, 2, 3)))
    return [lstm(net, rng, kind, shape, 4, how) for shape, how in zip(shapes, ways, strict=True)]


def lstm(net, rng, kind, shape, count, how):
    def weights(*shape):
        return [net.constant(rng.uniform(-1, 1, shape).astype("float32")) for _ in range(4)]

    state = [net.variable((2, count)) for _ in range(2)]
    operands = [*weights(count, shape[-1]), *weights(count, count), *[-1] * 3, *weights(count), -1, -1, *state]
    return net.op(kind, [net.input(shape), *operands, *[-1] * 4], **how)


@case("SVDF")
def remembered(net, kind, rng):
    weights = constant(net, rng, 6, 5), constant(net, rng, 6, 3), constant(net, rng, 3)
    state = net.variable((2, 18))
    return net.op(kind, [net.input((2, 5)), *weights, state], rank=2, activation=1)


@case("ATAN2")
def angles(net, kind, rng):
    """In all quadrants, and of both zeros."""
    x = net.input((5, 40))
    signs = net.constant(np.float32([[1], [-1], [0], [-0.0], [2]]))
    return net.op(kind, [x, net.input((5, 40))]), net.op(kind, [net.op("MUL", [x, signs]), x])


@case("BITWISE_XOR", "RIGHT_SHIFT", "STABLEHLO_SHIFT_LEFT", "STABLEHLO_AND")
def bits(net, kind, rng):
    x = net.op("NEG", [net.input((3, 4), "int32")], "int32")
    return net.op(kind, [x, net.input((3, 4), "int32")], "int32")


@case("RIGHT_SHIFT")
def far_shifts(net, kind, rng):
    """By more places than there are, and by a negative number."""
    x = net.op("NEG", [net.input((5,), "int32")], "int32")
    return net.op(kind, [x, whole(net, 31, 32, 40, -1, 0)], "int32")


@case("STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM")
def two_of_one_shape(net, kind, rng):
    return net.op(kind, [net.input((3, 4)), net.input((3, 4))])


@case("BITCAST")
def of_the_same_size(net, kind, rng):
    return net.op(kind, [net.input((3, 4))], "int32"), net.op(kind, [net.input((3, 4), "int32")])


@case("FAKE_QUANT")
def rounded(net, kind, rng):
    """Limits of which both are moved, or one is 0; with few bits and with many."""
    x = net.input((5, 40))
    ways = ({"min": -1.3, "max": 0.7, "bits": 8}, {"min": 0.0, "max": 1.0, "bits": 3},
            {"min": -2.0, "max": 0.0, "bits": 16}, {"min": -1.0, "max": 1.0, "bits": 2})  # fmt: skip
    return [net.op(kind, [x], **way) for way in ways]


@case("BUCKETIZE")
def among_boundaries(net, kind, rng):
    """Of floats, and of whole numbers that equal boundaries."""
    bounds = np.float32([-1.0, 0.0, 0.5, 0.5, 2.0])
    counts = net.op(kind, [net.input((2, 9), "int32")], "int32", boundaries=np.float32([1, 3, 4]))
    return net.op(kind, [net.input((5, 40))], "int32", boundaries=bounds), counts


@case("LOCAL_RESPONSE_NORMALIZATION")
def by_near_channels(net, kind, rng):
    """Windows within the channels and wider than all of them."""
    x = net.input((2, 3, 4, 7))
    return [net.op(kind, [x], radius=n, bias=1.5, alpha=0.3, beta=b) for n, b in ((0, 0.5), (2, 0.75), (9, 1.2))]


@case("L2_POOL_2D")
def root_mean_squares(net, kind, rng):
    options = {"window_w": 3, "window_h": 2, "stride_w": 2, "stride_h": 1, "activation": 3}
    return net.op(kind, [net.input(IMAGE)], **options), net.op(kind, [net.input(IMAGE)], padding=1, **options)


VOLUME = (2, 5, 6, 7, 3)


@case("CONV_3D")
def of_volumes(net, kind, rng):
    """Windows, steps and gaps differ between the axes."""
    x, weights = net.input(VOLUME), constant(net, rng, 2, 3, 1, 3, 4)
    steps = {"stride_d": 2, "stride_h": 1, "stride_w": 3, "activation": 1}
    gaps = {"stride_d": 1, "stride_h": 1, "stride_w": 1, "dilation_d": 3, "dilation_h": 2, "padding": 1}
    return net.op(kind, [x, weights, constant(net, rng, 4)], **steps), net.op(kind, [x, weights], **gaps)


@case("CONV_3D_TRANSPOSE")
def to_volumes(net, kind, rng):
    x, weights = net.input((2, 2, 3, 4, 3)), constant(net, rng, 2, 3, 2, 5, 3)
    steps = {"stride_d": 2, "stride_h": 1, "stride_w": 3}
    bias = constant(net, rng, 5)
    same = net.op(kind, [whole(net, 2, 4, 3, 12, 5), weights, x, bias], **steps)
    return same, net.op(kind, [whole(net, 2, 4, 5, 11, 5), weights, x], padding=1, **steps)


@case("EMBEDDING_LOOKUP")
def rows_of_a_table(net, kind, rng):
    table, scales = rng.integers(-127, 128, (6, 3, 2)).astype("int8"), rng.uniform(0.01, 0.1, 6)
    numbers = whole(net, 5, 0, 5, 2)
    bytes_of_one_scale = net.op(kind, [numbers, net.constant(table, scale=0.03)])
    bytes_of_scales = net.op(kind, [numbers, net.constant(table[:, :, 0], scale=scales, zero=(0, 0))])
    return net.op(kind, [net.input((4,), "int32"), constant(net, rng, 6, 3, 2)]), bytes_of_one_scale, bytes_of_scales


@case("HASHTABLE_LOOKUP")
def values_of_keys(net, kind, rng):
    """Keys that are there, and below, between and above those."""
    wanted = [whole(net, *numbers) for numbers in ((3, 7, 3), (0, 4, 9))]
    table = [whole(net, 1, 3, 7), net.input((3, 2))]
    return [x for keys in wanted for x in net.op(kind, [keys, *table], floats(3, 2), "uint8")]


@case("SCATTER_ND")
def added_at_positions(net, kind, rng):
    """Rows and elements, some more than once."""
    rows = net.op(kind, [whole_rows(net, [[2], [0], [2]]), net.input((3, 4)), whole(net, 5, 4)])
    numbers = net.op(kind, [whole_rows(net, [[[0, 1], [2, 3]]]), net.input((1, 2), "int32"), whole(net, 3, 5)], "int32")
    return rows, numbers


def whole_rows(net, numbers):
    return net.constant(np.array(numbers, "int32"))


@case("SPARSE_TO_DENSE")
def written_at_positions(net, kind, rng):
    """Positions as a number, a row, or rows; a value for each or one."""
    fill, x = net.constant(np.float32(-1)), net.input((3,))
    rows = net.op(kind, [whole_rows(net, [[0, 1], [2, 0], [2, 3]]), whole(net, 3, 4), x, fill])
    row = net.op(kind, [whole(net, 1, 4, 5), whole(net, 7), net.input(()), fill])
    return rows, row, net.op(kind, [net.constant(np.int32(2)), whole(net, 4), net.input(()), fill])


@case("SEGMENT_SUM")
def of_ascending_segments(net, kind, rng):
    segments = whole(net, 0, 0, 1, 2, 2)
    return net.op(kind, [net.input((5, 4)), segments]), net.op(kind, [net.input((5,), "int32"), segments], "int32")


@case("UNSORTED_SEGMENT_SUM", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN")
def of_segments(net, kind, rng):
    """Some have no rows, some rows have none; of rows and of several axes; floats and whole numbers."""
    segments, count = whole(net, 4, 0, -1, 4, 2), net.constant(np.int32(6))
    pairs = whole_rows(net, [[1, 0], [1, -2]])
    return (
        net.op(kind, [net.input((5, 3)), segments, count]),
        net.op(kind, [net.input((5, 3), "int32"), segments, count], "int32"),
        net.op(kind, [net.input((2, 2, 3)), pairs, count]),
    )


@case("DYNAMIC_UPDATE_SLICE")
def written_from_a_position(net, kind, rng):
    """Along one axis, several and none, from positions of which some lie too far on, or before the first."""
    x = net.input((4, 5, 6))
    ways = (((4, 2, 6), (0, 2, 0)), ((2, 5, 3), (9, 0, 1)), ((4, 5, 6), (1, 1, 1)), ((1, 2, 3), (3, -1, 2)))
    return [net.op(kind, [x, net.input(shape), whole(net, *start)]) for shape, start in ways]


@case("DYNAMIC_UPDATE_SLICE")
def written_from_an_input(net, kind, rng):
    return net.op(kind, [net.input((9, 5)), net.input((2, 3)), net.input((2,), "int32")])


@case("REVERSE_SEQUENCE")
def reversed_beginnings(net, kind, rng):
    x, lengths = net.input((4, 5, 6)), whole(net, 3, 0, 5, 1)
    return net.op(kind, [x, lengths], time=1, batch=0), net.op(kind, [x, whole(net, 4, 1, 0, 2, 3, 4)], time=0, batch=2)


@case("MATRIX_DIAG")
def diagonals(net, kind, rng):
    return net.op(kind, [net.input((2, 3))]), net.op(kind, [net.input((4,), "int32")], "int32")


@case("MATRIX_SET_DIAG")
def other_diagonals(net, kind, rng):
    """Of wide and of high matrices."""
    shapes = ((2, 3, 5), (5, 3))
    return [net.op(kind, [net.input(x), net.input((*x[:-2], 3))]) for x in shapes]


@case("MIRROR_PAD")
def mirrored_with_the_edge(net, kind, rng):
    x = convolved(net, rng, net.input(IMAGE))
    return net.op(kind, [x, net.constant(np.array([[0, 0], [2, 7], [0, 1], [3, 4]], "int32"))], mode=1)


@case("BROADCAST_ARGS")
def broadcast_shapes(net, kind, rng):
    sizes = net.op(kind, [whole(net, 3, 1), whole(net, 2, 1, 4)], "int32")
    return net.op("BROADCAST_TO", [net.input((3, 1)), sizes])


@case("DILATE")
def spread(net, kind, rng):
    return net.op(kind, [net.input((2, 3, 4)), whole(net, 3, 1, 2), net.constant(np.float32(0.5))])


@case("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def best_boxes(net, kind, rng):
    """Fewer and more than there are, with corners in any order, and with scores that fall."""
    centres, halves = rng.uniform(0, 3, (20, 2)), rng.uniform(-0.8, 0.8, (20, 2))
    boxes = net.constant(np.concatenate([centres - halves, centres + halves], 1).astype("float32"))
    ways = ((5, 0.3, 0.1, 0.0), (25, 0.6, -9.0, 0.0), (9, 1.0, -9.0, 0.0))
    ways = (*ways, (25, 0.8, 0.2, 0.4), (6, 1.0, 0.0, 0.2)) if kind.endswith("5") else ways
    results = [{"shape": (), "dtype": "int32"}, *["float32"] * kind.endswith("5"), "int32"]
    scores, found = net.input((20,)), []
    for size, *limits in ways:
        limits = limits if kind.endswith("5") else limits[:2]
        numbers = [net.constant(np.int32(size)), *(net.constant(np.float32(x)) for x in limits)]
        found += net.op(kind, [boxes, scores, *numbers], *results)
    return found


@case("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN")
def simple(net, kind, rng):
    """One step, or few and many, in both orders of axes."""
    ways = [((2, 3), {"activation": 4})]
    if kind != "RNN":
        ways = [((2, 5, 3), {"activation": 4}), ((40, 2, 3), {"activation": 1, "time_major": True})]
    return [net.op(kind, [net.input(shape), *simple_cell(net, rng)], **way) for shape, way in ways]


def simple_cell(net, rng):
    """Weights of four units over three inputs, and a state of two samples."""
    return [*(constant(net, rng, *shape) for shape in ((4, 3), (4, 4), (4,))), net.variable((2, 4))]


@case("BIDIRECTIONAL_SEQUENCE_RNN")
def simple_in_both_directions(net, kind, rng):
    cells = [*simple_cell(net, rng), *simple_cell(net, rng), *[-1] * 3]
    apart = net.op(kind, [net.input((2, 5, 3)), *cells], "float32", "float32", activation=4)
    cells = [*simple_cell(net, rng), *simple_cell(net, rng), *[-1] * 3]
    return *apart, net.op(kind, [net.input((40, 2, 3)), *cells], activation=4, merge=True, time_major=True)


PARTS = {
    "peepholes": {"peepholes": True},
    "a_projection": {"projection": 3, "projection_clip": 0.2, "clip": 0.4},
    "norms": {"norms": True},
    "coupled_gates": {"coupled": True},
    "all_parts": {"peepholes": True, "projection": 5, "norms": True, "coupled": True},
}


@case("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")
def gated_with_more_parts(net, kind, rng):
    found = []
    for parts in PARTS.values():
        shape = (2, 3) if kind == "LSTM" else (2, 5, 3)
        options = {"activation": 4, **{x: n for x, n in parts.items() if x.endswith("clip")}}
        cell, norms = gates(net, rng, parts), net_norms(net, rng, parts)
        state = [net.variable((2, parts.get("projection", 4))), net.variable((2, 4))]
        found.append(net.op(kind, [net.input(shape), *cell, *state, *norms], **options))
    return found


def gates(net, rng, parts):
    """Weights of four units over three inputs: of each gate, of a cell, of a projection; -1 for what is absent."""

    def some(shape, which=range(4)):
        return [net.constant(rng.uniform(-1, 1, shape).astype("float32")) if i in which else -1 for i in range(4)]

    count = parts.get("projection", 4)
    which = range(1, 4) if parts.get("coupled") else range(4)
    peepholes = [some((4,), which)[i] for i in (0, 1, 3)] if parts.get("peepholes") else [-1] * 3
    projection = [some((count, 4))[0], some((count,))[0]] if "projection" in parts else [-1] * 2
    return [*some((4, 3), which), *some((4, count), which), *peepholes, *some((4,), which), *projection]


def net_norms(net, rng, parts):
    if not parts.get("norms"):
        return [-1] * 4
    return [-1 if parts.get("coupled") and not i else constant(net, rng, 4) for i in range(4)]


@case("BIDIRECTIONAL_SEQUENCE_LSTM")
def gated_in_both_directions(net, kind, rng):
    """LiteRT joins the results only of steps that come first: of samples, it reads memory that nothing has written."""
    apart = [
        y for shape, parts in (((2, 5, 3), {}), ((2, 4, 3), PARTS["a_projection"] | {"peepholes": True}))
        for y in both_ways(net, rng, shape, parts, ("float32",) * 2, time_major=False)
    ]  # fmt: skip
    return *apart, both_ways(net, rng, (40, 2, 3), {}, ("float32",), merge=True)


def both_ways(net, rng, shape, parts, results, **options):
    """LSTMs over a sequence of two samples, in both directions."""
    cells = [x for _ in range(2) for x in gates(net, rng, parts)]
    states = [net.variable((2, n)) for _ in range(2) for n in (parts.get("projection", 4), 4)]
    options |= {"activation": 4, **{x: n for x, n in parts.items() if x.endswith("clip")}}
    operands = [net.input(shape), *cells, *states, *[-1] * 9]
    return net.op("BIDIRECTIONAL_SEQUENCE_LSTM", operands, *results, **options)


@case("IF")
def one_of_two_branches(net, kind, rng):
    """Of images, which each branch computes in its own order of axes."""
    x = net.input(IMAGE)
    condition = net.op("GREATER", [net.op("SUM", [x, whole(net, 0, 1, 2, 3)]), net.constant(np.float32(0))], "bool")

    def then(inner):
        inner.input(IMAGE)
        return [convolved(inner, np.random.default_rng(3), inner.inputs[0]), inner.op("ABS", inner.inputs)]

    def orelse(inner):
        inner.input(IMAGE)
        return [inner.op("NEG", inner.inputs), inner.inputs[0]]

    operands, floats = [condition, x], ("float32", "float32")
    return net.op("IF", operands, *floats, then=net.subgraph(then), orelse=net.subgraph(orelse))


def below(inner, most):
    """A condition: the first of a state of two values is below a number."""
    inner.input((), "int32"), inner.input(IMAGE)
    return [inner.op("LESS", [inner.inputs[0], inner.constant(np.int32(most))], "bool")]


def halved(inner):
    """A body: count, and halve the images of every round."""
    inner.input((), "int32"), inner.input(IMAGE)
    count = inner.op("ADD", [inner.inputs[0], inner.constant(np.int32(1))], "int32")
    return [count, inner.op("MUL", [inner.inputs[1], inner.constant(np.float32(0.5))])]


EMPTY_MAP = np.array([0, 0, 1, 0, 0, 36, 1], "uint8")  # in FlexBuffers


@case("STABLEHLO_COMPOSITE")
def named_graphs(net, kind, rng):
    """Of images in both orders of axes, and of a constant; one graph is used twice."""

    def build(inner):
        inner.input(IMAGE), inner.input((4,))
        return [convolved(inner, np.random.default_rng(3), inner.inputs[0]), inner.op("ADD", inner.inputs)]

    graph, x = net.subgraph(build), net.input(IMAGE)
    both = floats(*IMAGE), floats(*IMAGE)
    image, total = net.op(kind, [x, constant(net, rng, 4)], *both, name="twice", graph=graph)
    found = total, *net.op(kind, [image, constant(net, rng, 4)], *both, name="twice", graph=graph)
    for operator in net.operators:
        operator[12][2] = EMPTY_MAP
    return found


@case("WHILE")
def rounds_that_an_input_counts(net, kind, rng):
    condition, body = net.subgraph(lambda inner: below(inner, 4)), net.subgraph(halved)
    state = [net.input((), "int32"), net.input(IMAGE)]
    return net.op("WHILE", state, "int32", "float32", condition=condition, body=body)


@case("WHILE")
def a_loop_in_a_loop(net, kind, rng):
    condition = net.subgraph(lambda inner: below(inner, 3))

    def body(inner):
        inner.input((), "int32"), inner.input(IMAGE)
        within = {"condition": inner.subgraph(lambda x: below(x, 2)), "body": inner.subgraph(halved)}
        _, x = inner.op("WHILE", [inner.constant(np.int32(0)), inner.inputs[1]], "int32", "float32", **within)
        return [inner.op("ADD", [inner.inputs[0], inner.constant(np.int32(1))], "int32"), x]

    state = [net.constant(np.int32(0)), net.input(IMAGE)]
    return net.op("WHILE", state, "int32", "float32", condition=condition, body=net.subgraph(body))


def model_of(name: str) -> tuple[Network, list[int], list[np.ndarray]]:
    """The network of a case, its results, and values for its inputs."""
    kind, build = CASES[name]
    rng, net = np.random.default_rng(1), Network()
    made: Any = build(net, kind, rng)
    return net, list(made) if isinstance(made, list | tuple) else [made], values_of(net, rng)
