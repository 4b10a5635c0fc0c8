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
