"""Reductions and norms along axes."""

import numpy as np

from tests.support.draws import Draws
from tests.support.onnx_draws.draws import Model, model, operator

REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")


@operator(*(f"Reduce{way}" for way in REDUCTIONS))
def reduce(d: Draws, kind: str) -> Model:
    x = d.positive(*d.shape(1, 4)) if "Log" in kind else d.normal(*d.shape(1, 4))
    axes, keep = d.axes(x.ndim), d.maybe(keepdims=d.of(0, 1))
    way = d.whole(0, 3)
    if way == 0:
        return model(kind, x, **keep)
    if way == 1:
        return model(kind, x, opset=11, axes=axes, **keep)
    if way == 2:
        return model(kind, x, np.array([], "int64"), constant=(1,), **keep, **d.maybe(noop_with_empty_axes=1))
    return model(kind, x, np.array(axes), opset=18, constant=(1,), **keep)


@operator("ArgMax", "ArgMin")
def arg(d: Draws, kind: str) -> Model:
    x = d.numbers("float32", *d.shape(1, 3, 6), low=0, high=2)  # ties
    return model(kind, x, **d.maybe(axis=d.axis(x.ndim), keepdims=0, select_last_index=1))


@operator("Softmax", "LogSoftmax", "Hardmax")
def shares(d: Draws, kind: str) -> Model:
    x = d.normal(*d.shape(1, 4))
    old = d.of(True, False)
    return model(kind, x, opset=11 if old else 21, axis=d.whole(0, x.ndim - 1) if old else d.axis(x.ndim))


@operator("BatchNormalization")
def batch_norm(d: Draws) -> Model:
    x = d.normal(*d.shape(2, 4))
    c = x.shape[1]
    four = d.normal(c), d.normal(c), d.normal(c), d.positive(c)
    return model("BatchNormalization", x, *four, **d.maybe(epsilon=0.25))


@operator("InstanceNormalization", "GroupNormalization")
def group_norm(d: Draws, kind: str) -> Model:
    groups, each = d.whole(1, 3), d.whole(1, 3)
    x = d.normal(d.whole(1, 3), groups * each, *d.shape(1, 2, 5))
    c = x.shape[1]
    more = {"num_groups": groups} if kind[0] == "G" else {}
    return model(kind, x, d.normal(c), d.normal(c), **more, **d.maybe(epsilon=0.25))


@operator("LayerNormalization", "RMSNormalization")
def layer_norm(d: Draws, kind: str) -> Model:
    x = d.normal(*d.shape(1, 4))
    axis = d.axis(x.ndim)
    own = x.shape[axis:]
    more = {"axis": axis} if axis not in (-1, x.ndim - 1) else d.maybe(axis=axis)
    if kind[0] == "R":
        return model(kind, x, d.normal(*own), opset=23, **more, **d.maybe(epsilon=0.25))
    shift = [d.normal(*own)] if d.of(True, False) else []
    return model(kind, x, d.normal(*own), *shift, results=d.of(1, 3), **more, **d.maybe(epsilon=0.25))


@operator("LRN")
def local_norm(d: Draws) -> Model:
    x = d.normal(1, d.whole(3, 7), 2, 3)
    return model("LRN", x, size=d.of(1, 3, 5), **d.maybe(alpha=0.5, beta=0.5, bias=2.0))


@operator("LpNormalization")
def unit(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 4))
    return model("LpNormalization", x, **d.maybe(p=d.of(1, 2), axis=d.axis(x.ndim)))


@operator("MeanVarianceNormalization")
def standard(d: Draws) -> Model:
    x = d.normal(*(d.whole(2, 4) for _ in range(4)))
    return model("MeanVarianceNormalization", x, **d.maybe(axes=sorted({d.whole(0, 3), d.whole(0, 3)})))
