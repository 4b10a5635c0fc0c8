"""Comparisons and arithmetic, attention, transforms, boxes, deformed windows, and sorted values."""

import numpy as np

from tests.support.draws import Draws
from tests.support.onnx_draws.draws import Model, model, operator
from tests.support.onnx_draws.own import without_end

COMPARED = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")


@operator("Add", "Sub", "Mul", *COMPARED)
def binary(d: Draws, kind: str) -> Model:
    shape, dtype = d.shape(1, 4), d.of("float32", "float32", "int32", "int64", "float64")
    x = d.numbers(dtype, *shape, low=-3, high=3)
    y = d.numbers(dtype, *(d.of(n, 1) for n in shape[d.whole(0, len(shape)) :]), low=-3, high=3)
    pair = d.of((x, y), (y, x))
    return model(kind, *pair)


@operator("And", "Or", "Xor")
def logic(d: Draws, kind: str) -> Model:
    shape = d.shape(1, 3)
    return model(kind, d.rng.random(shape) < 0.5, d.rng.random([d.of(n, 1) for n in shape]) < 0.5)


@operator("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bits(d: Draws, kind: str) -> Model:
    shape, dtype = d.shape(1, 3), d.of("uint8", "int32", "int64")
    return model(kind, d.numbers(dtype, *shape, high=99), d.numbers(dtype, *(d.of(n, 1) for n in shape), high=99))


@operator("CastLike")
def cast_like(d: Draws) -> Model:
    x = d.of(d.normal(7) * 9, d.numbers("int64", 2, 3, low=0, high=99), d.rng.random(5) < 0.5)
    return model("CastLike", x, np.zeros(d.of((), (2,)), d.of("float32", "int32", "int64", "float64", "uint8")))


@operator("Attention")
def attention(d: Draws) -> Model:
    batch, groups, each, size = d.whole(1, 3), d.whole(1, 2), d.whole(1, 2), d.whole(1, 4)
    queries, keys, width, past = d.whole(1, 4), d.whole(1, 4), d.whole(1, 4), d.of(0, 0, 2)
    heads, causal = groups * each, d.maybe(is_causal=1) if queries == keys else {}
    shapes = [(heads, queries, size), (groups, keys, size), (groups, keys, width)]
    packed = d.of(True, False)
    if packed:
        operands = [d.normal(batch, n, h * m) for h, n, m in shapes]
    else:
        operands = [d.normal(batch, *s) for s in shapes]
    shown = d.rng.random((queries, keys + past)) < 0.7
    shown[:, 0] = True
    kinds = None, shown, d.normal(queries, keys + past), d.normal(batch, 1, queries, keys + past)
    operands.append(None if causal else d.of(*kinds))
    operands += [d.normal(batch, groups, past, m) for m in (size, width)] if past else []
    more = causal | d.maybe(scale=0.3, softcap=0.5)
    more |= {"q_num_heads": heads, "kv_num_heads": groups} if packed else {}
    return model("Attention", *without_end(operands), opset=23, results=3 if past else 1, **more)


@operator("RotaryEmbedding")
def rotated(d: Draws) -> Model:
    batch, length, heads, half, rest = d.whole(1, 3), d.whole(1, 3), d.whole(1, 3), d.whole(1, 4), d.of(0, 0, 2)
    size = 2 * half + rest
    packed = d.of(True, False)
    x = d.normal(*((batch, length, heads * size) if packed else (batch, heads, length, size)))
    more = d.maybe(interleaved=1) | ({"num_heads": heads} if packed else {})
    more |= {"rotary_embedding_dim": 2 * half} if rest else {}
    if d.of(True, False):
        tables = [d.normal(batch, length, half) for _ in range(2)]
        return model("RotaryEmbedding", x, *tables, opset=23, **more)
    tables = [d.normal(6, half) for _ in range(2)]
    places = d.numbers("int64", batch, length, low=0, high=5)
    return model("RotaryEmbedding", x, *tables, places, opset=23, **more)


@operator("Unique")
def unique(d: Draws) -> Model:
    x = d.numbers(d.of("float32", "int64"), *d.shape(1, 3), low=0, high=2)
    return model("Unique", x, results=4, **d.maybe(axis=d.axis(x.ndim), sorted=0))


@operator("NonZero")
def nonzero(d: Draws) -> Model:
    return model("NonZero", d.numbers(d.of("float32", "int64", "int32"), *d.shape(1, 4), low=0, high=1))


@operator("NonMaxSuppression")
def suppressed(d: Draws) -> Model:
    batch, kinds, count = d.whole(1, 2), d.whole(1, 3), d.whole(2, 7)
    first, size = d.rng.uniform(0, 4, (batch, count, 2)), d.rng.uniform(0.5, 4, (batch, count, 2))
    centre = d.maybe(center_point_box=1)
    boxes = np.concatenate([first, size if centre else first + size], -1).astype("f4")
    if not centre and d.of(True, False):
        boxes = boxes[..., [2, 3, 0, 1]]
    scores = d.rng.permutation(batch * kinds * count).reshape(batch, kinds, count).astype("f4")
    rest = [np.array([d.whole(1, 4)]), d.of(None, np.array([0.3], "f4")), d.of(None, np.array([4.5], "f4"))]
    held = tuple(i for i, v in enumerate(rest, 2) if v is not None)
    return model("NonMaxSuppression", boxes, scores, *without_end(rest), constant=held, **centre)


@operator("DeformConv")
def deformed(d: Draws) -> Model:
    kernel, strides, apart = ([d.whole(1, n) for _ in "hw"] for n in (3, 2, 2))
    pads = [d.whole(0, 1) for _ in range(4)]
    groups, parts, each = d.of(1, 2), d.of(1, 2), d.whole(1, 2)
    n, channels = d.whole(1, 2), 2 * each
    x, f = d.normal(n, channels, 6, 7), d.normal(2 * groups, channels // groups, *kernel)
    sides = [
        (m + pads[i] + pads[i + 2] - (k - 1) * a - 1) // s + 1
        for i, (m, k, a, s) in enumerate(zip((6, 7), kernel, apart, strides))
    ]
    places = kernel[0] * kernel[1]
    operands = [x, f, d.normal(n, 2 * parts * places, *sides), d.of(None, d.normal(2 * groups))]
    operands.append(d.of(None, d.positive(n, parts * places, *sides)))
    how = {"kernel_shape": kernel, "strides": strides, "dilations": apart, "pads": pads}
    return model("DeformConv", *without_end(operands), opset=19, group=groups, offset_group=parts, **how)


@operator("Det")
def determinant(d: Draws) -> Model:
    n = d.whole(1, 4)
    return model("Det", d.normal(*d.shape(0, 2, 3), n, n))


@operator("DFT")
def transform(d: Draws) -> Model:
    shape = (d.whole(1, 3), *(d.whole(2, 6) for _ in range(d.whole(1, 2))))
    real, axis = d.of(True, False), d.whole(1, len(shape) - 1)
    x = d.normal(*shape, 1 if real else 2)
    more = d.maybe(onesided=1) if real else d.maybe(inverse=1)
    length = [] if d.of(True, False) else [np.array(d.whole(2, 8))]
    if d.of(True, False):
        return model("DFT", x, *length, opset=17, constant=(1,)[: len(length)], axis=axis, **more)
    length = length or [None]
    held = tuple(i for i, v in enumerate([*length, axis], 1) if v is not None)
    return model("DFT", x, *length, np.array(axis - d.of(0, len(shape) + 1)), opset=20, constant=held, **more)


@operator("MaxRoiPool")
def rois(d: Draws) -> Model:
    count = d.whole(1, 4)
    first = d.rng.integers(0, 4, (count, 2))
    last = first + d.rng.integers(0, 5, (count, 2))
    boxes = np.concatenate([d.rng.integers(0, 2, (count, 1)), first, last], 1).astype("f4")
    more = {"pooled_shape": [d.whole(1, 3), d.whole(1, 3)]} | d.maybe(spatial_scale=0.5)
    return model("MaxRoiPool", d.normal(2, 3, 7, 6), boxes, **more)


@operator("TensorScatter")
def written(d: Draws) -> Model:
    shape = d.shape(3, 4)
    axis = d.whole(1, len(shape) - 1)
    whole = [*shape]
    whole[axis] += d.whole(0, 3)
    mode, room = d.of("linear", "circular"), whole[axis] - shape[axis]
    start = d.numbers("int64", shape[0], low=0, high=room if mode == "linear" else whole[axis] - 1)
    more = {"axis": axis - d.of(0, len(shape))} | ({"mode": mode} if mode == "circular" else d.maybe(mode=mode))
    more = more if axis != len(shape) - 2 or d.of(True, False) else {k: v for k, v in more.items() if k != "axis"}
    operands = [d.normal(*whole), d.normal(*shape), *d.of([], [start])]
    return model("TensorScatter", *operands, opset=24, **more)


@operator("IsNaN")
def not_numbers(d: Draws) -> Model:
    return model("IsNaN", np.array([np.nan, -np.inf, 0, 1, np.nan], d.of("f4", "f8")))
