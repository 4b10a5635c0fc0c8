"""Element by element, and products."""

import numpy as np

from tests.support.draws import Draws
from tests.support.onnx_draws.draws import Model, model, operator


def pair(d: Draws, dtype: str | None = None) -> list[np.ndarray]:
    """Two operands that fit one another, with axes of one element and axes that one of them lacks."""
    shape = d.shape(1, 3)
    shapes = [[d.of(n, n, 1) for n in shape][d.whole(0, len(shape)) :] for _ in range(2)]
    return [d.normal(*s) if dtype is None else d.numbers(dtype, *s) for s in shapes]


@operator("Div", "Mod")
def divide(d: Draws, kind: str) -> Model:
    dtype = d.of("float32", "int32", "int64", "uint8")
    x, y = pair(d, dtype)
    y = np.where(y == 0, y.dtype.type(3), y)
    whole = dtype != "float32"
    more = d.maybe(fmod=1) if whole else {"fmod": 1}
    return model(kind, x, y, **(more if kind == "Mod" else {}))


@operator("Pow")
def power(d: Draws) -> Model:
    x, y = pair(d)
    if d.of(True, False):
        return model("Pow", np.abs(x) + np.float32(0.1), y)
    return model("Pow", d.numbers("float32", *x.shape), d.numbers("int32", *y.shape, low=0, high=3))


@operator("Sum", "Mean", "Max", "Min")
def several(d: Draws, kind: str) -> Model:
    return model(kind, *[x for _ in range(d.whole(1, 2)) for x in pair_of(d)])


def pair_of(d: Draws) -> list[np.ndarray]:
    return [d.normal(*(d.of(1, n) for n in (2, 3))) for _ in range(d.whole(1, 2))]


@operator("Clip")
def clip(d: Draws) -> Model:
    x = d.drawn(*d.shape(1, 3, 6))
    low, high = np.array(-1, x.dtype), np.array(1, x.dtype)
    if x.dtype.kind == "f" and d.of(True, False):
        return model("Clip", x, opset=6, **d.maybe(min=-0.5, max=0.5))
    return model("Clip", x, *d.of((), (low,), (low, high), (None, high)))


@operator("BitShift")
def shift(d: Draws) -> Model:
    x = d.numbers(d.of("uint8", "uint32", "uint64"), *d.shape(1, 2), high=200)
    return model("BitShift", x, d.numbers(str(x.dtype), *x.shape, high=5), direction=d.of("LEFT", "RIGHT"))


@operator("IsInf")
def is_inf(d: Draws) -> Model:
    x = np.array([np.inf, -np.inf, np.nan, 0, 1], "f4")
    return model("IsInf", x, **d.maybe(detect_positive=0, detect_negative=0))


@operator("Where")
def where(d: Draws) -> Model:
    x, y = pair(d)
    return model("Where", d.rng.random(x.shape) < 0.5, x, d.normal(*x.shape[-1:]))


@operator("Cast")
def cast(d: Draws) -> Model:
    x = d.of(d.normal(7) * 9, d.numbers("int64", 7, low=-300, high=300), d.rng.random(5) < 0.5, d.numbers("uint8", 4))
    wanted = (1, 3, 5, 6, 7, 9, 11) if x.dtype.kind != "f" else (1, 6, 7, 9, 11)
    return model("Cast", x, to=d.of(*wanted))


SLOPES = {
    "LeakyRelu": {"alpha": 0.25}, "Elu": {"alpha": 0.5}, "Celu": {"alpha": 2.0}, "Selu": {"alpha": 1.5, "gamma": 2.0},
    "ThresholdedRelu": {"alpha": 0.5}, "HardSigmoid": {"alpha": 0.25, "beta": 0.375}, "HardSwish": {}, "Mish": {},
    "Softplus": {}, "Softsign": {}, "Shrink": {"lambd": 0.25, "bias": 0.125}, "Gelu": {"approximate": "tanh"},
    "Sign": {}, "Round": {}, "Ceil": {}, "Floor": {}, "Erf": {}, "Sigmoid": {}, "Reciprocal": {}, "Neg": {}, "Abs": {},
}  # fmt: skip


@operator(*SLOPES)
def activation(d: Draws, kind: str) -> Model:
    return model(kind, d.numbers("float32", *d.shape(1, 3, 6), low=-9) / np.float32(4), **d.maybe(**SLOPES[kind]))


@operator("PRelu")
def slope(d: Draws) -> Model:
    x = d.normal(*d.shape(2, 4))
    return model("PRelu", x, d.normal(*(d.of(1, n) for n in x.shape[d.whole(0, x.ndim - 1) :])))


@operator("MatMul")
def matmul(d: Draws) -> Model:
    m, k, n = (d.whole(1, 5) for _ in range(3))
    batch = d.shape(0, 2, 3)
    left, right = ([d.of(1, b) for b in batch][d.whole(0, len(batch)) :] for _ in range(2))
    x = d.of(d.normal(k), d.normal(*left, m, k), d.normal(*left, m, k))
    return model("MatMul", x, d.of(d.normal(k), d.normal(*right, k, n), d.normal(*right, k, n)))


@operator("Gemm")
def gemm(d: Draws) -> Model:
    m, k, n = (d.whole(1, 5) for _ in range(3))
    turned = d.maybe(transA=1), d.maybe(transB=1)
    x, y = d.normal(m, k), d.normal(k, n)
    shift = d.of(None, d.normal(m, n), d.normal(n), d.normal(m, 1), d.normal(1))
    operands = [x.T.copy() if turned[0] else x, y.T.copy() if turned[1] else y]
    more = [] if shift is None else [shift]
    return model("Gemm", *operands, *more, **turned[0], **turned[1], **d.maybe(alpha=0.5, beta=0.25))
