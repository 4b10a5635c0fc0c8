"""Shapes and slices."""

import numpy as np

from tests.support.draws import Draws
from tests.support.onnx_draws.draws import Model, model, operator


@operator("Reshape")
def reshape(d: Draws) -> Model:
    x = d.drawn(*d.shape(1, 4))
    shape = list(x.shape)
    at = d.whole(0, len(shape) - 1)
    way = d.whole(0, 3)
    if way == 0:
        shape[at] = 0  # kept
    if way == 1:
        shape[at] = -1  # what is left
    if way == 2:
        shape[at : at + 2] = [int(np.prod(shape[at : at + 2]))]
    if way == 3:
        shape.append(-1)
    return model("Reshape", x, np.array(shape), constant=(1,))


@operator("Flatten")
def flatten(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 4))
    return model("Flatten", x, **d.maybe(axis=d.whole(-x.ndim, x.ndim)))


@operator("Transpose")
def transpose(d: Draws) -> Model:
    x = d.drawn(*d.shape(1, 4))
    return model("Transpose", x, **d.maybe(perm=d.rng.permutation(x.ndim).tolist()))


@operator("Squeeze", "Unsqueeze")
def squeeze(d: Draws, kind: str) -> Model:
    shape = list(d.shape(1, 4))
    rank = len(shape) if kind == "Squeeze" else len(shape) + 1
    axes = d.axes(rank) if kind == "Squeeze" else [d.axis(rank)]
    for a in axes if kind == "Squeeze" else ():
        shape[a] = 1
    if d.of(True, False):
        return model(kind, d.normal(*shape), opset=11, axes=axes)
    return model(kind, d.normal(*shape), np.array(axes), constant=(1,))


@operator("Concat")
def concat(d: Draws) -> Model:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    parts = []
    for _ in range(d.whole(1, 3)):
        own = list(shape)
        own[axis] = d.whole(1, 4)
        parts.append(d.normal(*own))
    return model("Concat", *parts, axis=axis)


@operator("Split")
def split(d: Draws) -> Model:
    shape = list(d.shape(1, 3))
    axis, lengths = d.axis(len(shape)), [d.whole(0, 3) for _ in range(d.whole(1, 3))]
    way = d.whole(0, 2)
    if way == 0:
        shape[axis] = d.whole(3, 7)
        parts = d.of(2, 3) if shape[axis] > 4 else 2
        return model("Split", d.normal(*shape), opset=18, results=parts, axis=axis, num_outputs=parts)
    shape[axis] = sum(lengths)
    if way == 1:
        return model("Split", d.normal(*shape), opset=11, results=len(lengths), axis=axis, split=lengths)
    return model("Split", d.normal(*shape), np.array(lengths), constant=(1,), results=len(lengths), axis=axis)


@operator("Slice")
def slices(d: Draws) -> Model:
    x = d.drawn(*d.shape(1, 4, 6))
    axes = d.axes(x.ndim)
    ends = [[d.whole(-9, 9) for _ in axes] for _ in range(2)]
    if d.of(True, False):
        if x.dtype.kind == "f" and d.of(True, False):
            return model("Slice", x, opset=9, starts=ends[0], ends=ends[1], axes=[a % x.ndim for a in axes])
        return model("Slice", x, *map(np.array, ends), np.array(axes), constant=(1, 2, 3))
    steps = np.array([d.of(-3, -2, -1, 1, 2) for _ in axes])
    return model("Slice", x, *map(np.array, ends), np.array(axes), steps, constant=(1, 2, 3, 4))


@operator("Expand")
def expand(d: Draws) -> Model:
    shape = d.shape(1, 4)
    own = [d.of(1, n) for n in shape][d.whole(0, len(shape) - 1) :]
    return model("Expand", d.drawn(*own), np.array([d.of(1, n) for n in shape]), constant=(1,))


@operator("Tile")
def tile(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 4, 3))
    return model("Tile", x, np.array([d.whole(0, 3) for _ in x.shape]), constant=(1,))


@operator("Shape")
def shape_of(d: Draws) -> Model:
    return model("Shape", d.normal(*d.shape(1, 4)), **d.maybe(start=d.whole(-5, 5), end=d.whole(-5, 5)))


@operator("EyeLike")
def eye(d: Draws) -> Model:
    return model("EyeLike", d.drawn(*d.shape(2, 2, 5)), **d.maybe(k=d.whole(-4, 4), dtype=d.of(1, 6, 7, 11)))


@operator("Range")
def range_of(d: Draws) -> Model:
    dtype = d.of("float32", "int32", "int64")
    step = d.of(-2, -1, 1, 3) * (0.5 if dtype == "float32" else 1)
    ends = (np.array(v, dtype) for v in (d.whole(-5, 5), d.whole(-5, 5), step))
    return model("Range", *ends, constant=(0, 1, 2))


@operator("Trilu")
def triangle(d: Draws) -> Model:
    x = d.drawn(*d.shape(2, 4, 5))
    k = [np.array(d.whole(-4, 4))] if d.of(True, False) else []
    return model("Trilu", x, *k, constant=(1,) if k else (), **d.maybe(upper=0))


@operator("DepthToSpace", "SpaceToDepth")
def depth(d: Draws, kind: str) -> Model:
    b, n, c, h, w = d.of(1, 2, 3), *(d.whole(1, 3) for _ in range(4))
    if kind == "DepthToSpace":
        return model(kind, d.normal(n, c * b * b, h, w), blocksize=b, **d.maybe(mode=d.of("DCR", "CRD")))
    return model(kind, d.normal(n, c, h * b, w * b), blocksize=b)


@operator("Pad")
def pad(d: Draws) -> Model:
    shape = [n + 2 for n in d.shape(1, 3)]
    mode = d.of("constant", "constant", "edge", "reflect", "wrap")
    low = -1 if mode == "constant" else 0
    axes = d.axes(len(shape))
    if d.of(True, False):
        pads = [d.whole(low, 2) for _ in range(2 * len(shape))]
        if mode != "wrap" and d.of(True, False):
            more = {"value": 1.5} if mode == "constant" and d.of(True, False) else {}
            return model("Pad", d.normal(*shape), opset=10, mode=mode, pads=pads, **more)
        value = [np.float32(2.5)] if mode == "constant" else []
        return model("Pad", d.normal(*shape), np.array(pads), *value, constant=(1, 2)[: 1 + len(value)], mode=mode)
    pads = [d.whole(low, 2) for _ in range(2 * len(axes))]
    value = np.float32(-0.5) if mode == "constant" else None
    return model("Pad", d.normal(*shape), np.array(pads), value, np.array(axes), constant=(1, 2, 3), mode=mode)


@operator("CenterCropPad")
def center(d: Draws) -> Model:
    x = d.normal(*d.shape(2, 3, 6))
    if d.of(True, False):
        return model("CenterCropPad", x, np.array([d.whole(1, 8) for _ in x.shape]), constant=(1,))
    axes = d.axes(x.ndim)
    return model("CenterCropPad", x, np.array([d.whole(1, 8) for _ in axes]), constant=(1,), axes=axes)


@operator("ReverseSequence")
def reverse(d: Draws) -> Model:
    x, time = d.normal(*d.shape(2, 4)), d.of(0, 1)
    lengths = d.numbers("int64", x.shape[1 - time], low=1, high=x.shape[time])
    axes = {"time_axis": 1, "batch_axis": 0} if time else d.maybe(time_axis=0, batch_axis=1)
    return model("ReverseSequence", x, lengths, **axes)
