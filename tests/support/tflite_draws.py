"""TFLite operators with drawn shapes, axes and options, on floats and on bytes.

A case takes a network, the operator's kind and a generator, and returns the results. Images have either order of axes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.tflite_models import Network

CASES: dict[str, tuple[str, Callable]] = {}


def case(*kinds: str) -> Callable:
    """List a function that adds an operator with drawn operands to a network."""

    def register(build):
        for kind in kinds:
            CASES[f"{kind} {build.__name__}"] = (kind, build)
        return build

    return register


ONE_SCALE = [
    "MAXIMUM compared", "MINIMUM compared", "REDUCE_MAX along_axes", "REDUCE_MIN along_axes", "ARG_MAX places",
    "ARG_MIN places", "AVERAGE_POOL_2D windows", "MAX_POOL_2D windows", "RESIZE_BILINEAR resized",
    "RESIZE_NEAREST_NEIGHBOR resized", "RESHAPE reshaped", "EXPAND_DIMS widened", "TRANSPOSE turned",
    "CONCATENATION joined", "SPLIT equal_parts", "PACK stacked", "UNPACK apart", "SLICE cut_out",
    "STRIDED_SLICE masked", "PAD framed", "MIRROR_PAD framed", "TILE repeated", "REVERSE_V2 backwards",
    "DEPTH_TO_SPACE blocks", "SPACE_TO_DEPTH blocks", "SPACE_TO_BATCH_ND blocks_apart",
    "BATCH_TO_SPACE_ND blocks_apart", "GATHER taken", "TOPK_V2 largest",
]  # fmt: skip
"""Cases whose results have the scale of their operands."""
MANY_OPTIONS = (
    "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "AVERAGE_POOL_2D", "MAX_POOL_2D", "SELECT_V2", "STRIDED_SLICE",
    "MEAN", "SUM", "BATCH_MATMUL", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_BATCH_ND",
    "BATCH_TO_SPACE_ND", "CUMSUM", "ADD", "PAD",
)  # fmt: skip
"""Operators whose options and shapes need more draws than those of others."""
OWN_SCALES = [
    "ADD combined",
    "SUB combined",
    "MUL combined",
    "LEAKY_RELU sloped",
    "MEAN along_axes",
    "BATCH_MATMUL products",
    "CONV_2D convolved",
    "DEPTHWISE_CONV_2D convolved",
    "TRANSPOSE_CONV enlarged",
    "FULLY_CONNECTED rows",
]


class Bytes(Network):
    """A network that has int8 with scales where a case says float32; `one`: all of them have one scale."""

    def __init__(self, rng: np.random.Generator, one: bool) -> None:
        super().__init__()
        self.rng, self.one = rng, self.scale(rng) if one else None

    def scale(self, rng: np.random.Generator) -> dict[str, Any]:
        return {"scale": rng.uniform(0.01, 0.05), "zero": int(rng.integers(-100, 100))}

    def input(self, shape, dtype="float32", **how):
        if dtype != "float32":
            return super().input(shape, dtype, **how)
        return super().input(shape, "int8", **(how or self.one or self.scale(self.rng)))

    def op(self, kind, operands, *results, **options):
        results = [
            {"dtype": "int8", **(self.one or self.scale(self.rng))} if x == "float32" else x
            for x in results or ("float32",)
        ]
        return super().op(kind, operands, *results, **options)


def drawn_model(name: str, seed: int, on_bytes: bool = False) -> tuple[Network, list[int], list[np.ndarray]]:
    """The network of a case, its results, and values for its inputs."""
    kind, build = CASES[name]
    rng = np.random.default_rng(seed)
    net = Bytes(rng, name in ONE_SCALE) if on_bytes else Network()
    results: Any = build(net, kind, rng)
    results = list(results) if isinstance(results, list | tuple) else [results]
    values = [array_of(rng, net.tensors[i][0], net.tensors[i][1][1]) for i in net.inputs]
    return net, results, values


def array_of(rng, shape, number):
    """Floats, bytes, whole numbers without 0, or truth values, by TFLite's number of the dtype."""
    if number == 9:
        return rng.integers(-128, 128, shape).astype("i1")
    if number == 6:
        return rng.random(shape) > 0.5
    if number == 0:
        return rng.uniform(-3, 3, shape).astype("f4")
    return (rng.integers(1, 9, shape) * rng.choice((-1, 1), shape)).astype("i4" if number == 2 else "i8")


def sizes(rng, rank, low=1, high=6):
    return tuple(int(n) for n in rng.integers(low, high, rank))


def whole(net, *numbers):
    return net.constant(np.array(numbers, "int32"))


def value(net, rng, shape, dtype="float32"):
    """An input; every second image of floats has the order of axes of a convolution."""
    x = net.input(shape, dtype)
    if len(shape) != 4 or dtype != "float32" or rng.random() < 0.5:
        return x
    if isinstance(net, Bytes):  # of which a pool of one pixel turns the axes
        return net.op("MAX_POOL_2D", [x], scale_of(net, x), window_w=1, window_h=1, stride_w=1, stride_h=1)
    ones, none = (net.constant(np.full(n, fill, "f4")) for n, fill in (((1, 1, 1, shape[3]), 1), (shape[3], 0)))
    return net.op("DEPTHWISE_CONV_2D", [x, ones, none], multiplier=1, stride_w=1, stride_h=1)


def scale_of(net, x):
    facts = net.tensors[x][4]
    return {"dtype": "int8", "scale": facts[2], "zero": (facts[3], 0)}


def part(rng, shape):
    """A shape that is broadcast to another one: some axes of 1, leading ones left out."""
    kept = [n if rng.random() < 0.7 else 1 for n in shape]
    return tuple(kept[rng.integers(0, len(kept)) :])


def pair(net, rng, dtype="float32", most=4):
    """Two operands that are broadcast to each other, one of them complete."""
    shape = sizes(rng, rng.integers(1, most + 1))
    shapes = [shape, part(rng, shape)]
    rng.shuffle(order := [0, 1])
    return [value(net, rng, shapes[i], dtype) for i in order]


def axis_of(rng, rank):
    return int(rng.integers(-rank, rank))


@case("ADD", "SUB", "MUL", "DIV")
def combined(net, kind, rng):
    if kind == "DIV":
        x, y = pair(net, rng)
        return net.op(kind, [x, net.op("EXP", [y])], activation=int(rng.integers(0, 4)))
    return net.op(kind, pair(net, rng), activation=int(rng.integers(0, 4)))


@case("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
def compared(net, kind, rng):
    return net.op(kind, pair(net, rng))


@case("FLOOR_DIV", "FLOOR_MOD", "SUB", "DIV", "MAXIMUM", "MINIMUM")
def of_whole_numbers(net, kind, rng):
    return net.op(kind, pair(net, rng, "int32"), "int32")


@case("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
def truths(net, kind, rng):
    return net.op(kind, pair(net, rng, str(rng.choice(["int32", "float32", "int64"]))), "bool")


@case("LOGICAL_AND", "LOGICAL_OR")
def logic(net, kind, rng):
    return net.op(kind, pair(net, rng, "bool"), "bool")


@case("SELECT_V2")
def chosen(net, kind, rng):
    n = int(rng.integers(2, 5))
    shape = (n,) * int(rng.integers(1, 5))  # equal axes: a condition for the wrong axis has a shape that fits, too
    return net.op(
        kind, [net.input(part(rng, shape), "bool"), value(net, rng, shape), value(net, rng, part(rng, shape))]
    )


@case("SELECT")
def chosen_by_row(net, kind, rng):
    n = int(rng.integers(2, 5))
    shape = (n,) * int(rng.integers(2, 4))
    return net.op(kind, [net.input((n,), "bool"), value(net, rng, shape), value(net, rng, shape)])


@case("CAST")
def casts(net, kind, rng):
    dtype = str(rng.choice(["int32", "int64", "bool", "float32"]))
    return net.op(kind, [value(net, rng, sizes(rng, 4))], dtype)


@case("LEAKY_RELU")
def sloped(net, kind, rng):
    return net.op(kind, [value(net, rng, sizes(rng, rng.integers(1, 5)))], alpha=float(rng.uniform(0, 2)))


def steps(rng, most=3):
    return {"stride_w": int(rng.integers(1, most)), "stride_h": int(rng.integers(1, most))}


def weights_of(net, rng, shape, axis):
    """Filters and a bias; filters of bytes have a scale each."""
    count = shape[axis]
    if not isinstance(net, Bytes):
        return [net.constant(rng.standard_normal(s).astype("f4")) for s in (shape, (count,))]
    scales = {"scale": rng.uniform(0.001, 0.02, count), "zero": (0, axis)}
    filters = net.constant(rng.integers(-127, 128, shape).astype("i1"), **scales)
    return [filters, net.constant(rng.integers(-3000, 3000, count).astype("i4"), scale=0.0001)]


@case("CONV_2D", "DEPTHWISE_CONV_2D")
def convolved(net, kind, rng):
    n, channels, multiplier = (int(rng.integers(1, 4)) for _ in range(3))
    window = sizes(rng, 2, 1, 4)
    x = value(net, rng, (n, *sizes(rng, 2, 7, 10), channels))
    count = channels * multiplier if kind.startswith("DEPTH") else int(rng.integers(1, 4))
    shape = (1, *window, count) if kind.startswith("DEPTH") else (count, *window, channels)
    weights = weights_of(net, rng, shape, 3 if kind.startswith("DEPTH") else 0)
    options = {"padding": int(rng.integers(0, 2)), "activation": int(rng.integers(0, 4)), **steps(rng)}
    options |= {"multiplier": multiplier} if kind.startswith("DEPTH") else {}
    options |= (
        {"dilation_w": int(rng.integers(1, 3)), "dilation_h": int(rng.integers(1, 3))} if rng.random() < 0.5 else {}
    )
    return net.op(kind, [x, *weights], **options)


@case("TRANSPOSE_CONV")
def enlarged(net, kind, rng):
    """A result of any size from which a convolution of these strides gives the operand's."""
    pixels, window, stride = sizes(rng, 2, 2, 5), sizes(rng, 2, 1, 6), steps(rng, 4)
    padding, strides = int(rng.integers(0, 2)), (stride["stride_h"], stride["stride_w"])
    least = [(n - 1) * s + (1 if padding == 0 else w) for n, s, w in zip(pixels, strides, window)]
    size = [n + int(rng.integers(0, s)) for n, s in zip(least, strides)]
    n, channels, count = sizes(rng, 3, 1, 4)
    filters, bias = weights_of(net, rng, (count, *window, channels), 0)
    operands = [whole(net, n, *size, count), filters, value(net, rng, (n, *pixels, channels))]
    operands += [bias] if rng.random() < 0.5 else []
    return net.op(kind, operands, padding=padding, activation=int(rng.integers(0, 4)), **stride)


@case("AVERAGE_POOL_2D", "MAX_POOL_2D")
def windows(net, kind, rng):
    window = {"window_w": int(rng.integers(1, 4)), "window_h": int(rng.integers(1, 4))}
    options = {"padding": int(rng.integers(0, 2)), "activation": int(rng.integers(0, 4)), **steps(rng, 4)}
    return net.op(kind, [value(net, rng, (2, *sizes(rng, 2, 5, 9), 3))], **window, **options)


@case("FULLY_CONNECTED")
def rows(net, kind, rng):
    k, n = sizes(rng, 2)
    x = value(net, rng, (*sizes(rng, rng.integers(1, 4)), k))
    weights = weights_of(net, rng, (n, k), 0)
    options = {"keepdims": bool(rng.integers(0, 2)), "activation": int(rng.integers(0, 4))}
    return net.op(kind, [x, *weights[: rng.integers(1, 3)]], **options)


@case("BATCH_MATMUL")
def products(net, kind, rng):
    n, k, m = sizes(rng, 3)
    batch = sizes(rng, rng.integers(0, 3))
    turns = {"adjoint_x": bool(rng.integers(0, 2)), "adjoint_y": bool(rng.integers(0, 2))}
    x = (*batch, *((k, n) if turns["adjoint_x"] else (n, k)))
    y = (*(part(rng, batch) if batch else ()), *((m, k) if turns["adjoint_y"] else (k, m)))
    return net.op(kind, [value(net, rng, x), value(net, rng, y)], **turns)


@case("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
def along_axes(net, kind, rng):
    rank = int(rng.integers(1, 5))
    axes = [axis_of(rng, rank) for _ in range(rng.integers(1, rank + 1))]
    return net.op(kind, [value(net, rng, sizes(rng, rank)), whole(net, *axes)], keepdims=bool(rng.integers(0, 2)))


@case("ARG_MAX", "ARG_MIN")
def places(net, kind, rng):
    rank, number = int(rng.integers(1, 5)), int(rng.choice([2, 4]))
    dtype = {2: "int32", 4: "int64"}[number]
    return net.op(kind, [value(net, rng, sizes(rng, rank)), whole(net, axis_of(rng, rank))], dtype, dtype=number)


@case("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")
def normalised(net, kind, rng):
    options = {"beta": float(rng.uniform(0.3, 2))} if kind == "SOFTMAX" else {}
    return net.op(kind, [value(net, rng, sizes(rng, rng.integers(2, 5)))], **options)


@case("CUMSUM")
def running(net, kind, rng):
    rank = int(rng.integers(1, 5))
    options = {"exclusive": bool(rng.integers(0, 2)), "reverse": bool(rng.integers(0, 2))}
    return net.op(kind, [value(net, rng, sizes(rng, rank)), whole(net, axis_of(rng, rank))], **options)


@case("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resized(net, kind, rng):
    how = [{}, {"align_corners": True}, {"half_pixel": True}][rng.integers(0, 3)]
    return net.op(kind, [value(net, rng, (2, *sizes(rng, 2, 1, 8), 3)), whole(net, *sizes(rng, 2, 1, 12))], **how)


@case("RESHAPE")
def reshaped(net, kind, rng):
    """By an operand beside an option that says something else, as a converter leaves it behind."""
    shape = sizes(rng, 4)
    x = value(net, rng, shape)
    if rng.random() < 0.5:
        return net.op(kind, [x], shape=(shape[0] * shape[1], -1, shape[3]))
    return net.op(kind, [x, whole(net, -1, shape[2], shape[0])], shape=(-1,))


@case("EXPAND_DIMS")
def widened(net, kind, rng):
    rank = int(rng.integers(1, 5))
    return net.op(kind, [value(net, rng, sizes(rng, rank)), whole(net, int(rng.integers(-rank - 1, rank + 1)))])


@case("TRANSPOSE")
def turned(net, kind, rng):
    rank = int(rng.integers(2, 5))
    return net.op(kind, [value(net, rng, sizes(rng, rank)), whole(net, *rng.permutation(rank))])


@case("CONCATENATION")
def joined(net, kind, rng):
    rank = int(rng.integers(2, 5))
    axis, shape = axis_of(rng, rank), list(sizes(rng, rank))
    operands = []
    for _ in range(rng.integers(1, 4)):
        shape[axis] = int(rng.integers(1, 4))
        operands.append(value(net, rng, tuple(shape)))
    return net.op(kind, operands, axis=axis)


@case("SPLIT")
def equal_parts(net, kind, rng):
    rank, count = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    axis, shape = axis_of(rng, rank), list(sizes(rng, rank))
    shape[axis] = count * int(rng.integers(1, 3))
    return net.op(kind, [whole(net, axis), value(net, rng, tuple(shape))], *["float32"] * count, count=count)


@case("PACK")
def stacked(net, kind, rng):
    shape, count = sizes(rng, rng.integers(1, 4)), int(rng.integers(1, 4))
    axis = int(rng.integers(-len(shape) - 1, len(shape) + 1))
    return net.op(kind, [value(net, rng, shape) for _ in range(count)], count=count, axis=axis)


@case("UNPACK")
def apart(net, kind, rng):
    rank, count = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    axis, shape = axis_of(rng, rank), list(sizes(rng, rank))
    shape[axis] = count
    return net.op(kind, [value(net, rng, tuple(shape))], *["float32"] * count, count=count, axis=axis)


@case("SLICE")
def cut_out(net, kind, rng):
    shape = sizes(rng, rng.integers(1, 5))
    begin = [int(rng.integers(0, n)) for n in shape]
    size = [-1 if rng.random() < 0.4 else int(rng.integers(1, n - b + 1)) for n, b in zip(shape, begin)]
    return net.op(kind, [value(net, rng, shape), whole(net, *begin), whole(net, *size)])


@case("STRIDED_SLICE")
def masked(net, kind, rng):
    shape = sizes(rng, rng.integers(1, 5), 3, 7)
    bits = 1 << len(shape)
    step = [int(rng.choice([-2, -1, 1, 2])) for _ in shape]
    ends = [sorted((int(rng.integers(0, n)), int(rng.integers(-n, n + 2)) % (n + 1))) for n in shape]
    begin, end = zip(*[(b, a) if s < 0 else (a, b) for (a, b), s in zip(ends, step)])
    masks = {"begin": int(rng.integers(0, bits)), "end": int(rng.integers(0, bits))}
    return net.op(kind, [value(net, rng, shape), *(whole(net, *x) for x in (begin, end, step))], **masks)


def widths(net, rng, shape, mirrored=False):
    most = [n - 1 if mirrored else 3 for n in shape]
    return net.constant(np.array([[rng.integers(0, n + 1) for _ in range(2)] for n in most], "int32"))


@case("PAD", "PADV2", "MIRROR_PAD")
def framed(net, kind, rng):
    shape = sizes(rng, rng.integers(1, 5))
    more = [net.constant(np.float32(rng.uniform(-5, 5)))] if kind == "PADV2" else []
    options = {"mode": 0} if kind == "MIRROR_PAD" else {}
    return net.op(kind, [value(net, rng, shape), widths(net, rng, shape, kind == "MIRROR_PAD"), *more], **options)


@case("TILE")
def repeated(net, kind, rng):
    shape = sizes(rng, rng.integers(1, 5))
    return net.op(kind, [value(net, rng, shape), whole(net, *sizes(rng, len(shape), 1, 4))])


@case("REVERSE_V2")
def backwards(net, kind, rng):
    rank = int(rng.integers(1, 5))
    return net.op(kind, [value(net, rng, sizes(rng, rank)), whole(net, int(rng.integers(0, rank)))])


@case("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")
def blocks(net, kind, rng):
    b, (n, h, w, d) = int(rng.integers(1, 4)), sizes(rng, 4, 1, 4)
    shape = (n, h, w, d * b * b) if kind.startswith("DEPTH") else (n, h * b, w * b, d)
    return net.op(kind, [value(net, rng, shape)], block=b)


@case("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def blocks_apart(net, kind, rng):
    block, (n, h, w, d), frame = sizes(rng, 2, 1, 4), sizes(rng, 4, 2, 4), rng.integers(0, 2, (2, 2))
    if kind.startswith("BATCH"):
        shape = (n * block[0] * block[1], h, w, d)
    else:
        shape = (n, *(max(k * b - int(f.sum()), b) for k, b, f in zip((h, w), block, frame)), d)
        frame[:, 1] = [-(size + f[0]) % b for size, b, f in zip(shape[1:3], block, frame)]
    return net.op(kind, [value(net, rng, shape), whole(net, *block), net.constant(frame.astype("int32"))])


@case("GATHER")
def taken(net, kind, rng):
    shape = sizes(rng, rng.integers(1, 5))
    axis = axis_of(rng, len(shape))
    places = rng.integers(0, shape[axis], sizes(rng, rng.integers(1, 3), 1, 4)).astype("int32")
    return net.op(kind, [value(net, rng, shape), net.constant(places)], axis=axis)


@case("ONE_HOT")
def hot(net, kind, rng):
    shape = sizes(rng, rng.integers(1, 3))
    numbers = [net.constant(np.array(n, t)) for n, t in ((rng.integers(1, 7), "i4"), (2.5, "f4"), (-1, "f4"))]
    return net.op(kind, [net.input(shape, "int32"), *numbers], axis=int(rng.integers(-1, len(shape) + 1)))


@case("TOPK_V2")
def largest(net, kind, rng):
    shape = sizes(rng, rng.integers(1, 4))
    return net.op(
        kind, [value(net, rng, shape), net.constant(np.int32(rng.integers(1, shape[-1] + 1)))], "float32", "int32"
    )
