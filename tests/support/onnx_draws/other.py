"""Layers over time, bytes, signals and losses."""

import numpy as np

from tests.support.draws import Draws
from tests.support.onnx_draws.draws import Model, model, operator
from tests.support.onnx_draws.windows import windows


@operator("RNN", "GRU", "LSTM")
def layer(d: Draws, kind: str) -> Model:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    length, batch, width, hidden = d.whole(1, 4), d.whole(1, 3), d.whole(1, 3), d.whole(1, 3)
    direction = d.of("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    more = {"hidden_size": hidden} | ({"direction": direction} if direction != "forward" else {})
    operands = [d.normal(length, batch, width), d.normal(ways, gates * hidden, width)]
    operands += [d.normal(ways, gates * hidden, hidden), d.of(None, d.normal(ways, 2 * gates * hidden))]
    operands += [d.of(None, d.numbers("int32", batch, low=1, high=length)), d.of(None, d.normal(ways, batch, hidden))]
    if kind == "LSTM":
        operands += [d.of(None, d.normal(ways, batch, hidden)), d.of(None, d.normal(ways, 3 * hidden))]
    more |= d.maybe(clip=0.5) | (d.maybe(linear_before_reset=1) if kind == "GRU" else {})
    while operands[-1] is None:
        operands.pop()
    return model(kind, *operands, results=3 if kind == "LSTM" else 2, **more)


@operator("Einsum")
def einsum(d: Draws) -> Model:
    rule, *shapes = d.of(
        ("ij,jk->ik", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 4)),
        ("ij,ij->i", (2, 3), (2, 3)),
        ("...ij,...jk", (2, 2, 3), (2, 3, 2)), ("ii->i", (3, 3)), ("i,j->ij", (2,), (3,)),
    )  # fmt: skip
    return model("Einsum", *(d.normal(*s) for s in shapes), equation=rule)


@operator("QuantizeLinear", "DequantizeLinear")
def quantize(d: Draws, kind: str) -> Model:
    shape = d.shape(1, 4)
    axis, dtype = d.axis(len(shape)), d.of("int8", "uint8")
    count = () if d.of(True, False) else (shape[axis],)
    more = {"axis": axis} if count else {}
    scale, zero = d.positive(*count) / np.float32(20), d.numbers(dtype, *count, low=-20, high=20)
    x = d.normal(*shape) * 3 if kind[0] == "Q" else d.numbers(dtype, *shape, low=-128, high=127)
    return model(kind, x, scale, zero, **more)


@operator("MatMulInteger")
def matmul_integer(d: Draws) -> Model:
    m, k, n = (d.whole(1, 5) for _ in range(3))
    x, y = d.numbers("uint8", m, k, high=255), d.numbers(d.of("int8", "uint8"), k, n, low=-99, high=99)
    zeros = [np.uint8(7)], [np.uint8(7), np.array(3, y.dtype)]
    return model("MatMulInteger", x, y, *d.of([], *zeros), opset=10)


@operator("QLinearMatMul")
def matmul_bytes(d: Draws) -> Model:
    m, k, n = (d.whole(1, 5) for _ in range(3))
    ends = [(np.float32(v), np.uint8(z)) for v, z in ((0.02, 120), (0.03, 99), (0.05, 130))]
    x, y = d.numbers("uint8", m, k, high=255), d.numbers("uint8", k, n, high=255)
    return model("QLinearMatMul", x, *ends[0], y, *ends[1], *ends[2])


@operator("ConvInteger")
def conv_integer(d: Draws) -> Model:
    how = windows(d, 2)
    x, f = d.numbers("uint8", 1, 2, 6, 7, high=255), d.numbers("uint8", 3, 2, *how["kernel_shape"], high=255)
    return model("ConvInteger", x, f, *d.of((), (np.uint8(9),), (np.uint8(9), np.uint8(5))), opset=10, **how)


@operator("HannWindow", "HammingWindow", "BlackmanWindow")
def window(d: Draws, kind: str) -> Model:
    return model(kind, np.int64(d.whole(2, 9)), opset=17, constant=(0,), **d.maybe(periodic=0))


@operator("MelWeightMatrix")
def mel(d: Draws) -> Model:
    given = np.int64(d.whole(1, 6)), np.int64(d.of(16, 32)), np.int64(8000), np.float32(d.of(0, 100)), np.float32(3000)
    return model("MelWeightMatrix", *given, opset=17, constant=(0, 1, 2, 3, 4))


@operator("STFT")
def frames(d: Draws) -> Model:
    x, length = d.normal(2, d.whole(12, 20), 1), d.of(4, 8)
    step = np.int64(d.whole(1, 4))
    return model("STFT", x, step, d.positive(length), opset=17, constant=(1, 2), **d.maybe(onesided=0))


@operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(d: Draws, kind: str) -> Model:
    x = d.normal(d.whole(1, 3), d.whole(2, 4), *d.shape(0, 2, 3))
    wanted = d.numbers("int64", x.shape[0], *x.shape[2:], low=0, high=x.shape[1] - 1)
    weights = [d.positive(x.shape[1])] if d.of(True, False) else []
    more = d.maybe(reduction=d.of("none", "sum", "mean"), ignore_index=0)
    return model(kind, x, wanted, *weights, results=d.of(1, 2) if kind[0] == "S" else 1, **more)
