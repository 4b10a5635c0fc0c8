"""Numbers of eight bits with a scale and a zero point, onnxruntime's operators among them."""

from typing import Any

import numpy as np

from tests.support.draws import Draws
from tests.support.onnx_draws.draws import Model, model, operator
from tests.support.onnx_draws.windows import windows

OWN = "com.microsoft."


def scaled(d: Draws, dtype: str, *shape: int) -> list[np.ndarray]:
    """Numbers, their scale and their zero point."""
    return [d.numbers(dtype, *shape, low=-128, high=255 if dtype[0] == "u" else 127), *scale(d, dtype)]


def weights(d: Draws, dtype: str, *shape: int) -> np.ndarray:
    """Second operands of products: seven bits with a sign, since onnxruntime's sums of pairs saturate without VNNI."""
    return d.numbers(dtype, *shape, low=-64, high=255 if dtype == "uint8" else 63)


def scale(d: Draws, dtype: str, *shape: int) -> list[np.ndarray]:
    zero = d.numbers(dtype, *shape, low=-20, high=20) + (100 if dtype[0] == "u" else 0)
    return [d.positive(*shape) / np.float32(37), zero.astype(dtype)]


@operator("QuantizeLinear", "DequantizeLinear")
def quantize(d: Draws, kind: str) -> Model:
    shape = d.shape(1, 4)
    axis, dtype = d.axis(len(shape)), d.of("int8", "uint8")
    count = () if d.of(True, False) else (shape[axis],)
    more = {"axis": axis} if count else {}
    factor, zero = scale(d, dtype, *count)
    x = d.normal(*shape) * 3 if kind[0] == "Q" else d.numbers(dtype, *shape, low=-128, high=127)
    return model(kind, x, factor, *d.of([], [zero]) if dtype == "uint8" else [zero], **more)


@operator("DynamicQuantizeLinear")
def dynamic(d: Draws) -> Model:
    return model("DynamicQuantizeLinear", d.normal(*d.shape(1, 3)) * 3 + d.of(0, 5, -5), opset=11, results=3)


@operator("MatMulInteger")
def matmul_integer(d: Draws) -> Model:
    m, k, n = (d.whole(1, 5) for _ in range(3))
    x, y = d.numbers("uint8", m, k, high=255), weights(d, d.of("int8", "uint8"), k, n)
    zeros = [np.uint8(7)], [np.uint8(7), np.array(3, y.dtype)]
    return model("MatMulInteger", x, y, *d.of([], *zeros), opset=10)


@operator("QLinearMatMul")
def matmul(d: Draws) -> Model:
    m, k, n = (d.whole(1, 5) for _ in range(3))
    x, kind = scaled(d, "uint8", *d.shape(0, 1), m, k), d.of("int8", "uint8")
    y = [weights(d, kind, k, n), *scale(d, kind)]
    ends = scale(d, "uint8")
    return model("QLinearMatMul", *x, *y, *ends, constant=d.of((), (1, 2, 3, 4, 5, 6, 7)))


@operator("ConvInteger")
def conv_integer(d: Draws) -> Model:
    how = windows(d, 2)
    x, f = d.numbers("uint8", 1, 2, 6, 7, high=255), d.numbers("uint8", 3, 2, *how["kernel_shape"], high=255)
    return model("ConvInteger", x, f, *d.of((), (np.uint8(9),), (np.uint8(9), np.uint8(5))), opset=10, **how)


@operator("QLinearConv")
def conv(d: Draws) -> Model:
    how, groups = windows(d, 2), d.of(1, 2)
    x, f = scaled(d, "uint8", 1, 2, 6, 7), weights(d, "int8", 4, 2 // groups, *how["kernel_shape"])
    filters = [f, d.positive(*d.of((), (4,))) / np.float32(37)]
    filters.append(np.zeros(filters[1].shape, "int8"))
    bias = d.of([], [d.numbers("int32", 4, low=-500, high=500)])
    constant = tuple(range(1, 8 + len(bias)))
    more = {"group": groups} if groups > 1 else {}
    return model("QLinearConv", *x, *filters, *scale(d, "uint8"), *bias, constant=d.of((), constant), **how, **more)


@operator(OWN + "QLinearAdd", OWN + "QLinearMul")
def pair(d: Draws, kind: str) -> Model:
    dtype, shape = d.of("int8", "uint8"), d.shape(1, 3)
    wide = [d.of(n, 1) for n in shape] if d.of(True, False) else shape
    return model(kind, *scaled(d, dtype, *shape), *scaled(d, dtype, *wide), *scale(d, dtype))


@operator(OWN + "QLinearConcat")
def concat(d: Draws) -> Model:
    shape = d.shape(1, 3)
    parts = [x for _ in range(d.whole(1, 3)) for x in scaled(d, "uint8", *shape)]
    constant = [i for i in range(2 + len(parts)) if i % 3 != 2]  # not the numbers
    return model(OWN + "QLinearConcat", *scale(d, "uint8"), *parts, constant=tuple(constant), axis=d.axis(len(shape)))


@operator(OWN + "QLinearGlobalAveragePool")
def mean(d: Draws) -> Model:
    how = {"channels_last": d.of(0, 1)}
    return model(OWN + "QLinearGlobalAveragePool", *scaled(d, "uint8", 2, 3, 4, 5), *scale(d, "uint8"), **how)


@operator(OWN + "QLinearLeakyRelu", OWN + "QLinearSigmoid")
def activation(d: Draws, kind: str) -> Model:
    dtype = d.of("int8", "uint8")
    more: dict[str, Any] = d.maybe(alpha=0.25) if kind.endswith("Relu") else {}
    operands = [*scaled(d, dtype, *d.shape(1, 3)), *scale(d, dtype)]
    return model(kind, *operands, constant=(1, 2, 3, 4), **more)


@operator(OWN + "QGemm")
def gemm(d: Draws) -> Model:
    m, k, n = (d.whole(1, 5) for _ in range(3))
    turned = d.maybe(transB=1)
    x, y = scaled(d, "uint8", m, k), weights(d, "int8", *((n, k) if turned else (k, n)))
    factors = [d.positive(*d.of((), (n,))) / np.float32(37)]
    factors.append(np.zeros(factors[0].shape, "int8"))
    bias = d.of(None, d.numbers("int32", n, low=-500, high=500))
    ends = d.of([], scale(d, "uint8"))
    return model(OWN + "QGemm", *x, y, *factors, *([bias] if ends or bias is not None else []), *ends, **turned)
