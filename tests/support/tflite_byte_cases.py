"""Small TFLite networks of quantised values, one or more for each operator that has arithmetic for them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.tflite_models import Network

CASES: dict[str, tuple[str, Callable, str]] = {}
IMAGE = (2, 7, 6, 5)
BOTH, SIGNED, ALL = ("int8", "uint8"), ("int8",), ("int8", "uint8", "int16")
SIGNS = {"int8": 0, "uint8": 128, "int16": 0}


def case(*kinds: str, dtypes: tuple[str, ...] = BOTH) -> Callable:
    """List a function that adds operators to a network and gives the results."""

    def register(build: Callable) -> Callable:
        for kind in kinds:
            for dtype in dtypes:
                CASES[f"{kind} {build.__name__} {dtype}"] = (kind, build, dtype)
        return build

    return register


class Quantised(Network):
    """A network of one dtype of 8 or 16 bits, with filters of 8. Changes: as it is written.

    Parameters
        rng: for scales, zero points, weights
    """

    def __init__(self, dtype: str, rng: np.random.Generator) -> None:
        super().__init__()
        self.dtype, self.rng = dtype, rng

    def zero(self) -> int:
        return int(self.rng.integers(-100, 100)) * (self.dtype != "int16") + SIGNS[self.dtype]

    def scaled(self, size: float = 1.0, zero: int | None = None) -> dict[str, Any]:
        """How a value stands for floats of about a size."""
        most = 2**15 if self.dtype == "int16" else 128
        return {"scale": size * self.rng.uniform(0.5, 1.5) / most, "zero": self.zero() if zero is None else zero}

    def bytes_in(self, shape: tuple[int, ...], size: float = 1.0, **how: Any) -> int:
        return self.input(shape, self.dtype, **(how or self.scaled(size)))

    def made(self, size: float = 1.0, **how: Any) -> dict[str, Any]:
        """A result's dtype and scale."""
        return {"dtype": self.dtype, **(how or self.scaled(size))}

    def filters(self, shape: tuple[int, ...], axis: int, count: int) -> int:
        """Weights around 0, with a scale for each of some filters, or one; of uint8 around 128 or another number."""
        low = 0 if self.dtype == "uint8" else -127
        values = self.rng.integers(low, low + 255, shape).astype("uint8" if self.dtype == "uint8" else "int8")
        if self.dtype == "uint8" or count == 1:
            around = SIGNS[self.dtype] + int(self.dtype == "uint8" and self.rng.choice((0, -31, 17)))
            return self.constant(values, scale=0.01, zero=around)
        return self.constant(values, scale=self.rng.uniform(0.001, 0.02, count), zero=(0, axis))

    def bias(self, count: int) -> int:
        dtype = "int64" if self.dtype == "int16" else "int32"
        return self.constant(self.rng.integers(-3000, 3000, count).astype(dtype), scale=0.0001)

    def whole(self, *numbers: int) -> int:
        return self.constant(np.array(numbers, "int32"))


def values_of(net: Network, rng: np.random.Generator) -> list[np.ndarray]:
    """Inputs: every byte or int16, or floats."""
    found: list[np.ndarray] = []
    for i in net.inputs:
        shape, number = net.tensors[i][0], net.tensors[i][1][1]
        bounds = {0: (-2, 2, "float32"), 3: (0, 256, "uint8"), 7: (-(2**15), 2**15, "int16"), 9: (-128, 128, "int8")}
        low, high, dtype = bounds[number]
        drawn = rng.uniform(low, high, shape) if number == 0 else rng.integers(low, high, shape)
        found.append(drawn.astype(dtype))
    return found


def model_of(name: str, seed: int = 1) -> tuple[Network, list[int], list[np.ndarray]]:
    """The network of a case, its results, and values for its inputs."""
    kind, build, dtype = CASES[name]
    rng = np.random.default_rng(seed)
    net = Quantised(dtype, rng)
    made: Any = build(net, kind)
    return net, list(made) if isinstance(made, list | tuple) else [made], values_of(net, rng)


@case("CONV_2D", dtypes=ALL)
def same(net, kind):
    x, weights = net.bytes_in((1, 9, 8, 21)), net.filters((19, 3, 3, 21), 0, 19)
    options = {"stride_w": 2, "stride_h": 1, "activation": int(net.rng.integers(0, 4))}
    return net.op(kind, [x, weights, net.bias(19)], net.made(4.0), **options)


@case("CONV_2D", "DEPTHWISE_CONV_2D", dtypes=ALL)
def with_gaps(net, kind):
    """Gaps, strides and windows of columns are not those of rows."""
    deep = kind.startswith("DEPTH")
    shape, axis, count = ((1, 2, 3, 4), 3, 4) if deep else ((6, 2, 3, 4), 0, 6)
    weights, options = net.filters(shape, axis, count), {"multiplier": 1} if deep else {}
    x, bias = net.bytes_in((2, 9, 8, 4)), net.bias(count)
    rows = {"stride_w": 1, "stride_h": 1, "dilation_w": 1, "dilation_h": 3, **options}
    columns = {"stride_w": 1, "stride_h": 1, "dilation_w": 2, "dilation_h": 1, "padding": 1, **options}
    return [net.op(kind, [x, weights, bias], net.made(3.0), **way) for way in (rows, columns)]


@case("CONV_2D", dtypes=ALL)
def points(net, kind):
    x, weights = net.bytes_in((2, 5, 4, 3)), net.filters((40, 1, 1, 3), 0, 1)
    return net.op(kind, [x, weights, net.bias(40)], net.made(), stride_w=1, stride_h=1, padding=1)


@case("DEPTHWISE_CONV_2D", dtypes=ALL)
def each_channel(net, kind):
    options = {"stride_w": 1, "stride_h": 1, "multiplier": 1, "activation": 1}
    y = net.op(kind, [net.bytes_in(IMAGE), net.filters((1, 3, 3, 5), 3, 5), net.bias(5)], net.made(), **options)
    options |= {"stride_w": 2, "stride_h": 2, "multiplier": 2, "activation": 0}
    return y, net.op(kind, [y, net.filters((1, 3, 3, 10), 3, 10), net.bias(10)], net.made(), **options)


@case("FULLY_CONNECTED")
def rows(net, kind):
    x, weights = net.bytes_in((6, 24)), net.filters((17, 24), 0, 1)
    return net.op(kind, [x, weights, net.bias(17)], net.made(4.0), activation=int(net.rng.integers(0, 4)))


@case("FULLY_CONNECTED", dtypes=SIGNED)
def rows_with_a_scale_each(net, kind):
    x, weights = net.bytes_in((6, 24)), net.filters((17, 24), 0, 17)
    return net.op(kind, [x, weights, net.bias(17)], net.made(4.0))


@case("TRANSPOSE_CONV", dtypes=ALL)
def enlarged(net, kind):
    x, weights = net.bytes_in((1, 4, 5, 3)), net.filters((7, 3, 3, 3), 0, 7)
    return net.op(kind, [net.whole(1, 8, 10, 7), weights, x, net.bias(7)], net.made(2.0), stride_w=2, stride_h=2)


@case("TRANSPOSE_CONV", dtypes=ALL)
def enlarged_within_bounds(net, kind):
    """Of other strides along rows than along columns, and with an activation."""
    x, weights = net.bytes_in((2, 3, 4, 3)), net.filters((5, 2, 3, 3), 0, 5)
    options = {"stride_w": 1, "stride_h": 3, "padding": 1, "activation": int(net.rng.integers(1, 4))}
    return net.op(kind, [net.whole(2, 8, 6, 5), weights, x], net.made(2.0), **options)


@case("BATCH_MATMUL", dtypes=SIGNED)
def products(net, kind):
    x, y = net.bytes_in((2, 6, 8)), net.bytes_in((2, 8, 5))
    return net.op(kind, [x, y], net.made(2.0))


@case("MUL")
@case("ADD", "SUB", dtypes=ALL)
def two_images(net, kind):
    x, y, small = net.bytes_in(IMAGE), net.bytes_in(IMAGE, 3.0), net.bytes_in((5,), 0.2)
    first = net.op(kind, [x, y], net.made(3.0), activation=int(net.rng.integers(0, 4)))
    return first, net.op(kind, [x, small], net.made(0.7))


@case("MUL")
@case("ADD", "SUB", dtypes=ALL)
def far_scales(net, kind):
    """One operand in far larger steps than the other, on either side."""
    fine, coarse = net.bytes_in((16, 32), 0.01), net.bytes_in((16, 32), 5.0)
    return net.op(kind, [fine, coarse], net.made(5.0)), net.op(kind, [coarse, fine], net.made(5.0))


@case("MAXIMUM", "MINIMUM")
def larger(net, kind):
    how = net.scaled()
    return net.op(kind, [net.bytes_in(IMAGE, **how), net.bytes_in(IMAGE, **how)], net.made(**how))


@case("PRELU")
def sloped(net, kind):
    slopes = net.constant(net.rng.integers(0, 100, (1, 1, 5)).astype(net.dtype), **net.scaled(0.5))
    return net.op(kind, [net.bytes_in(IMAGE), slopes], net.made())


@case("LEAKY_RELU", dtypes=ALL)
def leaky(net, kind):
    return net.op(kind, [net.bytes_in((16, 32))], net.made(), alpha=float(net.rng.uniform(0.01, 0.6)))


@case("RELU", "RELU6", "RELU_N1_TO_1")
def bounded(net, kind):
    return net.op(kind, [net.bytes_in((16, 32), 8.0)], net.made(7.0))


@case("HARD_SWISH")
def swished(net, kind):
    return net.op(kind, [net.bytes_in((16, 32), float(net.rng.uniform(1, 12)))], net.made(6.0))


@case("TANH", "EXP", "GELU", dtypes=SIGNED)
def curved(net, kind):
    return net.op(kind, [net.bytes_in((16, 32), 2.0)], net.made())


@case("GELU", dtypes=SIGNED)
def approximate(net, kind):
    return net.op(kind, [net.bytes_in((16, 32), 2.0)], net.made(), approximate=True)


@case("WHILE")
def a_state_of_bytes(net, kind):
    how, one = net.scaled(), np.int32(1)

    def below(inner):
        count, _ = inner.input((), "int32"), inner.input(IMAGE, net.dtype, **how)
        return [inner.op("LESS", [count, inner.constant(np.int32(3))], "bool")]

    def body(inner):
        count, x = inner.input((), "int32"), inner.input(IMAGE, net.dtype, **how)
        return [inner.op("ADD", [count, inner.constant(one)], "int32"), inner.op("ADD", [x, x], net.made(**how))]

    state = [net.constant(np.int32(0)), net.input(IMAGE, net.dtype, **how)]
    numbers = {"condition": net.subgraph(below), "body": net.subgraph(body)}
    return net.op(kind, state, "int32", net.made(**how), **numbers)


@case("LOGISTIC")
def shares(net, kind):
    made = net.made(scale=1 / 256, zero=-128 + SIGNS[net.dtype])
    return net.op(kind, [net.bytes_in((16, 32), 6.0)], made)


@case("SOFTMAX")
def shares_of_one(net, kind):
    made = net.made(scale=1 / 256, zero=-128 + SIGNS[net.dtype])
    return net.op(kind, [net.bytes_in((40, 33), float(net.rng.uniform(0.5, 16)))], made, beta=1.0)


@case("SOFTMAX")
def sharpened(net, kind):
    made = net.made(scale=1 / 256, zero=-128 + SIGNS[net.dtype])
    x = net.bytes_in((20, 9), 4.0)
    return [net.op(kind, [x], made, beta=beta) for beta in (0.3, 2.5)]


@case("SOFTMAX", dtypes=SIGNED)
def shares_of_16_bits(net, kind):
    made = {"dtype": "int16", "scale": 2.0**-16, "zero": -(2**15)}
    size = float(net.rng.uniform(0.5, 30))
    return net.op(kind, [net.bytes_in((40, 33), size)], made, beta=1.0), net.op(
        kind, [net.bytes_in((3, 2), size)], made, beta=0.7
    )


@case("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", dtypes=SIGNED)
def gated(net, kind):
    """Of few steps and of many. The format of what the output gate multiplies is that of an intermediate tensor."""
    shapes = [(2, 3)] if kind == "LSTM" else [(2, 5, 3), (2, 40, 3)]
    return [lstm(net, kind, shape) for shape in shapes]


def lstm(net, kind, shape):
    count, how = 4, net.scaled(1.0)

    def weights(*shape):
        return [
            net.constant(net.rng.integers(-127, 128, shape).astype("int8"), scale=net.rng.uniform(0.002, 0.02))
            for _ in range(4)
        ]

    x, biases = net.bytes_in(shape, 3.0), [net.bias(count) for _ in range(4)]
    state = [net.variable((2, count), "int8", **how), net.variable((2, count), "int16", scale=2.0**-11)]
    operands = [*weights(count, 3), *weights(count, count), *[-1] * 3, *biases, -1, -1, *state, *[-1] * 4]
    y = net.op(kind, [x, *operands], net.made(**how), activation=4, clip=float(net.rng.choice((0, 0.2))))
    between = [net.tensor((), "int16", scale=2.0**-12) for _ in range(4)]
    net.operators[-1][8] = np.array([*between, net.tensor((), "int8", **how)], "int32")
    return y


@case("SVDF", dtypes=SIGNED)
def remembered(net, kind):
    slow = net.constant(net.rng.integers(-(2**15), 2**15, (6, 3)).astype("int16"), scale=2.0**-15)
    operands = [net.bytes_in((2, 5)), net.filters((6, 5), 0, 1), slow, net.bias(3)]
    state = net.variable((2, 18), "int16", scale=2.0**-13)
    return net.op(kind, [*operands, state], net.made(3.0), rank=2, activation=1)


@case("AVERAGE_POOL_2D", "MAX_POOL_2D")
def windows(net, kind):
    how = net.scaled()
    x, options = net.bytes_in(IMAGE, **how), {"window_w": 3, "window_h": 2, "stride_w": 2, "stride_h": 2}
    inside = net.op(kind, [x], net.made(**how), padding=1, **options)
    whole = net.op(kind, [x], net.made(**how), padding=1, window_w=6, window_h=7, stride_w=1, stride_h=1)
    return inside, whole, net.op(kind, [x], net.made(**how), activation=3, **options)


@case("MEAN")
def along_axes(net, kind):
    x = net.bytes_in((2, 4, 3, 5))
    pixels = [net.op(kind, [x, net.whole(1, 2)], net.made(), keepdims=keep) for keep in (False, True)]
    return *pixels, net.op(kind, [x, net.whole(3)], net.made()), net.op(kind, [x, net.whole(0, 1)], net.made())


@case("REDUCE_MAX", "REDUCE_MIN")
def extremes(net, kind):
    how = net.scaled()
    return net.op(kind, [net.bytes_in(IMAGE, **how), net.whole(1)], net.made(**how))


@case("ARG_MAX", "ARG_MIN")
def places(net, kind):
    return net.op(kind, [net.bytes_in((4, 30)), net.whole(1)], "int32", dtype=2)


@case("RESIZE_BILINEAR", dtypes=SIGNED)
def resized(net, kind):
    how = net.scaled()
    x, made = net.bytes_in(IMAGE, **how), net.made(**how)
    sizes = (net.whole(13, 4), net.whole(5, 11))
    ways: tuple[dict, ...] = ({}, {"align_corners": True}, {"half_pixel": True})
    return [net.op(kind, [x, size], made, **way) for size in sizes for way in ways]


@case("RESIZE_NEAREST_NEIGHBOR")
def repeated(net, kind):
    how = net.scaled()
    return net.op(kind, [net.bytes_in(IMAGE, **how), net.whole(13, 4)], net.made(**how))


@case("RESHAPE", "CONCATENATION", "PAD", "PADV2", "TRANSPOSE", "STRIDED_SLICE", "SPLIT", "GATHER", "PACK", dtypes=ALL)
def moved(net, kind):
    how = net.scaled()
    x, made = net.bytes_in((1, 4, 6, 8), **how), net.made(**how)
    widths = net.constant(np.array([[0, 0], [1, 2], [0, 3], [0, 0]], "int32"))
    if kind == "PADV2":
        return net.op(kind, [x, widths, net.constant(np.array(7, net.dtype), **how)], made)
    rest, options = {
        "RESHAPE": ([net.whole(6, 32)], {}), "CONCATENATION": ([x], {"axis": 3}), "PAD": ([widths], {}),
        "TRANSPOSE": ([net.whole(0, 2, 3, 1)], {}), "GATHER": ([net.whole(2, 0)], {"axis": 3}),
        "STRIDED_SLICE": ([net.whole(0, 1, 2, 7), net.whole(1, 4, 5, 0), net.whole(1, 2, 1, -2)], {}),
        "PACK": ([x], {"count": 2, "axis": 1}), "SPLIT": ([], {"count": 2}),
    }[kind]  # fmt: skip
    if kind == "SPLIT":
        return net.op(kind, [net.whole(3), x], made, made, **options)
    return net.op(kind, [x, *rest], made, **options)


@case("QUANTIZE", dtypes=ALL)
def from_floats(net, kind):
    ties = net.constant(np.arange(-9, 9, dtype="float32") / 2)
    return net.op(kind, [net.input((8, 9, 5))], net.made()), net.op(kind, [ties], net.made(scale=1.0, zero=net.zero()))


@case("QUANTIZE", dtypes=ALL)
def with_another_scale(net, kind):
    return net.op(kind, [net.bytes_in((16, 32))], net.made(1.3))


@case("QUANTIZE", dtypes=("int16",))
def with_other_bits(net, kind):
    x = net.bytes_in((16, 32))
    long = net.op(kind, [x], {"dtype": "int32", "scale": 2.0**-20})
    return net.op(kind, [x], {"dtype": "int8", **net.scaled(300, 5)}), net.op(kind, [long], net.made()), long


@case("DEQUANTIZE", dtypes=ALL)
def to_floats(net, kind):
    weights = net.constant(net.rng.integers(0, 100, (5,)).astype(net.dtype), **net.scaled())
    return net.op("ADD", [net.op(kind, [net.bytes_in((4, 5))]), net.op(kind, [weights])])


@case("REVERSE_SEQUENCE", dtypes=("uint8",))
@case("EMBEDDING_LOOKUP", "SCATTER_ND", "SPARSE_TO_DENSE", "MATRIX_DIAG", "MATRIX_SET_DIAG", "DILATE")
@case("DYNAMIC_UPDATE_SLICE")
def moved_by_numbers(net, kind):
    """What fills the rest is the integer 0, or a number of the file."""
    how = net.scaled()
    made, x, fill = net.made(**how), net.bytes_in((3, 4), **how), net.constant(np.array(7, net.dtype), **how)
    operands = {
        "EMBEDDING_LOOKUP": lambda: [net.whole(2, 0, 2), x],
        "SCATTER_ND": lambda: [net.constant(np.array([[4], [0], [4]], "int32")), x, net.whole(5, 4)],
        "SPARSE_TO_DENSE": lambda: [net.whole(5, 0, 2), net.whole(7), net.bytes_in((3,), **how), fill],
        "MATRIX_DIAG": lambda: [x],
        "MATRIX_SET_DIAG": lambda: [x, net.bytes_in((3,), **how)],
        "DILATE": lambda: [x, net.whole(2, 3), fill],
        "DYNAMIC_UPDATE_SLICE": lambda: [x, net.bytes_in((2, 3), **how), net.whole(1, 9)],
        "REVERSE_SEQUENCE": lambda: [x, net.whole(2, 4, 3)],
    }[kind]()
    return net.op(kind, operands, made, **({"time": 1, "batch": 0} if kind == "REVERSE_SEQUENCE" else {}))
