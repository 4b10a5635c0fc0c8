"""Layers over time, signals, losses, and operators of older opsets."""

import numpy as np

from tests.support.draws import Draws
from tests.support.onnx_draws.draws import Model, model, operator


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


@operator("Upsample")
def upsample(d: Draws) -> Model:
    x, mode = d.normal(1, 2, 3, 4), d.of("nearest", "linear")
    scales = [1.0, 1.0, d.of(1.0, 2.0, 1.5), d.of(1.0, 3.0, 2.5)]
    if d.of(True, False):
        return model("Upsample", x, opset=7, mode=mode, scales=scales)
    return model("Upsample", x, np.array(scales, "f4"), opset=9, constant=(1,), mode=mode)


@operator("Dropout")
def dropout(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 3))
    if d.of(True, False):
        return model("Dropout", x, opset=10, **d.maybe(ratio=0.25))
    rest = d.of((), (np.float32(0.25),), (np.float32(0.25), np.bool_(False)))
    return model("Dropout", x, *rest, constant=(1, 2)[: len(rest)])
