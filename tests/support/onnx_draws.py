"""One ONNX node with random shapes, axes, attributes and opsets: a function for each operator.

A function draws from the `Draws` that it is given and returns a `Model`. Only what ONNX Runtime computes is drawn.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from cgraph.record import Record

DRAWN: dict[str, Callable[["Draws"], "Model"]] = {}
REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
PADDINGS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


class Model(Record):
    """A model of one node.

    Fields
        raw: the file
        given: a value for each input
    """

    raw: bytes
    given: Mapping[str, np.ndarray]


class Draws:
    """What a function draws. Changes: the generator's state."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def whole(self, low: int, high: int) -> int:
        """Between both, which may be drawn."""
        return int(self.rng.integers(low, high + 1))

    def of(self, *choices: Any) -> Any:
        return choices[self.whole(0, len(choices) - 1)]

    def maybe(self, **attributes: Any) -> dict[str, Any]:
        """Each attribute with a chance of one half; else its default holds."""
        return {name: value for name, value in attributes.items() if self.of(True, False)}

    def shape(self, least: int, most: int, largest: int = 4) -> tuple[int, ...]:
        return tuple(self.whole(1, largest) for _ in range(self.whole(least, most)))

    def axis(self, rank: int) -> int:
        return self.whole(-rank, rank - 1)

    def axes(self, rank: int, least: int = 1) -> list[int]:
        """Some axes, each counted from one end or the other."""
        some = self.rng.permutation(rank)[: self.whole(least, rank)]
        return [int(a) - self.of(0, rank) for a in some]

    def normal(self, *shape: int) -> np.ndarray:
        return self.rng.normal(size=shape).astype("f4")

    def positive(self, *shape: int) -> np.ndarray:
        return self.rng.uniform(0.2, 3, shape).astype("f4")

    def numbers(self, dtype: str, *shape: int, low: int = -9, high: int = 9) -> np.ndarray:
        """Whole numbers."""
        return self.rng.integers(max(low, 0) if dtype[0] == "u" else low, high + 1, shape).astype(dtype)

    def drawn(self, *shape: int) -> np.ndarray:
        """Of a dtype that is drawn as well."""
        return self.normal(*shape) if self.of(True, False) else self.numbers(self.of("int32", "int64"), *shape)


def operator(*kinds: str) -> Callable[[Any], Any]:
    """List a function under operators; where there are several, it is given which."""

    def listed(function: Any) -> Any:
        for kind in kinds:
            DRAWN[kind] = function if len(kinds) == 1 else lambda d, kind=kind: function(d, kind)
        return function

    return listed


def model(
    kind: str, *operands: Any, opset: int = 21, results: int = 1, constant: tuple[int, ...] = (), **attributes: Any
) -> Model:
    """A node whose operands are inputs but for those listed in `constant`; None leaves an operand out."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(operands)]
    given = {names[i]: np.asarray(x) for i, x in enumerate(operands) if x is not None and i not in constant}
    held = {names[i]: np.asarray(operands[i]) for i in constant if operands[i] is not None}
    ends = [f"y{i}" for i in range(results)]
    graph = helper.make_graph(
        [helper.make_node(kind, names, ends, **attributes)], "one",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()],
        [helper.make_empty_tensor_value_info(end) for end in ends],
        [numpy_helper.from_array(x, n) for n, x in held.items()],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return Model(made.SerializeToString(), given)


# -- shapes -----------------------------------------------------------------------------------------------------------


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


# -- elements by their places -----------------------------------------------------------------------------------------


@operator("Gather")
def gather(d: Draws) -> Model:
    x = d.drawn(*d.shape(1, 4))
    axis = d.axis(x.ndim)
    n = x.shape[axis]
    index = d.numbers(d.of("int32", "int64"), *d.shape(0, 2), low=-n, high=n - 1)
    return model("Gather", x, index, **({"axis": axis} if axis % x.ndim else d.maybe(axis=axis)))


@operator("GatherElements")
def gather_elements(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 3))
    axis = d.axis(x.ndim)
    n = x.shape[axis]
    shape = list(x.shape)
    shape[axis] = d.whole(1, 5)
    index = d.numbers(d.of("int32", "int64"), *shape, low=-n, high=n - 1)
    return model("GatherElements", x, index, **({"axis": axis} if axis % x.ndim else d.maybe(axis=axis)))


@operator("GatherND")
def gather_nd(d: Draws) -> Model:
    x = d.normal(*d.shape(2, 4))
    batch = d.whole(0, 1)
    depth = d.whole(1, x.ndim - batch)
    rows = (*x.shape[:batch], *d.shape(0, 2))
    index = [d.numbers("int64", *rows, low=-n, high=n - 1) for n in x.shape[batch : batch + depth]]
    return model("GatherND", x, np.stack(index, -1), **({"batch_dims": batch} if batch else d.maybe(batch_dims=0)))


@operator("ScatterElements")
def scatter_elements(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 3))
    axis = d.axis(x.ndim)
    n = x.shape[axis]
    way = d.of("none", "add", "mul", "min", "max")
    shape = [d.whole(1, m) for m in x.shape]
    index = np.apply_along_axis(d.rng.permutation, axis, np.broadcast_to(order_of(axis, x.shape), x.shape).copy())
    index = index[tuple(slice(m) for m in shape)] - d.of(0, n)
    more = {"axis": axis} if axis % x.ndim else d.maybe(axis=axis)
    more |= {"reduction": way} if way != "none" else d.maybe(reduction=way)
    return model("ScatterElements", x, index, d.normal(*shape), opset=18, **more)


def order_of(axis: int, shape: tuple[int, ...]) -> np.ndarray:
    """0, 1, 2 along an axis."""
    return np.arange(shape[axis]).reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))])


@operator("ScatterND")
def scatter_nd(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 3))
    depth = d.whole(1, x.ndim)
    way = d.of("none", "add", "mul", "min", "max")
    places = list(np.ndindex(x.shape[:depth]))
    some = d.rng.permutation(len(places))[: d.whole(1, 4)]
    index = np.array([places[i] for i in some]) - np.array(x.shape[:depth]) * d.of(0, 1)
    values = d.normal(len(some), *x.shape[depth:])
    return model("ScatterND", x, index, values, opset=18, **({"reduction": way} if way != "none" else {}))


@operator("OneHot")
def one_hot(d: Draws) -> Model:
    index = d.numbers("int64", *d.shape(1, 3), low=-6, high=6)
    depth, ends = np.int64(d.whole(1, 5)), d.of(d.normal(2), np.array([5, -3]))
    return model("OneHot", index, depth, ends, constant=(1, 2), **d.maybe(axis=d.axis(index.ndim + 1)))


@operator("TopK")
def top(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 3, 6))
    axis = d.axis(x.ndim)
    k = np.array([d.whole(1, x.shape[axis])])
    more = {"axis": axis} if axis not in (-1, x.ndim - 1) else d.maybe(axis=axis)
    if d.of(True, False):
        return model("TopK", x, k, opset=11, constant=(1,), results=2, **more, **d.maybe(largest=0))
    return model("TopK", x, k, opset=10, constant=(1,), results=2, **more)


@operator("Compress")
def compress(d: Draws) -> Model:
    x = d.drawn(*d.shape(1, 3))
    axis = d.axis(x.ndim)
    way = d.of({}, {"axis": axis})
    n = x.shape[axis] if way else x.size
    return model("Compress", x, d.rng.random(d.whole(1, n)) < 0.6, constant=(1,), **way)


@operator("CumSum")
def running(d: Draws) -> Model:
    x = d.normal(*d.shape(1, 3))
    return model("CumSum", x, np.array(d.axis(x.ndim)), constant=(1,), **d.maybe(exclusive=1, reverse=1))


# -- along axes -------------------------------------------------------------------------------------------------------


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


# -- windows ----------------------------------------------------------------------------------------------------------


def windows(d: Draws, rank: int, dilated: bool = True, **more: Any) -> dict[str, Any]:
    """Attributes of a window of `rank` axes; pads are smaller than the window."""
    kernel = [d.whole(1, 3) for _ in range(rank)]
    how = d.of("NOTSET", *PADDINGS)
    found = {"kernel_shape": kernel} | d.maybe(strides=[d.whole(1, 3) for _ in range(rank)])
    if how == "NOTSET":
        found |= d.maybe(pads=[d.whole(0, k - 1) for k in kernel * 2])
        found |= d.maybe(dilations=[d.whole(1, 2) for _ in range(rank)]) if dilated else {}
    else:
        found["auto_pad"] = how
    return found | more


def without_gaps(how: dict[str, Any]) -> dict[str, Any]:
    """Steps no longer than the window: with others ONNX Runtime reads another padding out of `auto_pad`."""
    steps = {name: [min(pair) for pair in zip(v, how["kernel_shape"])] for name, v in how.items() if name == "strides"}
    return how | steps


def image(d: Draws, channels: int, rank: int) -> np.ndarray:
    return d.normal(d.whole(1, 2), channels, *(d.whole(6, 9) for _ in range(rank)))


@operator("Conv")
def conv(d: Draws) -> Model:
    rank, groups, each = d.whole(1, 3), d.of(1, 1, 2, 3), d.whole(1, 2)
    how = windows(d, rank)
    filters = d.normal(groups * d.whole(1, 3), each, *how["kernel_shape"])
    how = how if d.of(True, False) else {k: v for k, v in how.items() if k != "kernel_shape"}
    bias = [d.normal(len(filters))] if d.of(True, False) else []
    more = {"group": groups} if groups > 1 else {}
    return model("Conv", image(d, groups * each, rank), filters, *bias, **how, **more)


@operator("ConvTranspose")
def conv_transpose(d: Draws) -> Model:
    rank, groups, each = d.whole(1, 2), d.of(1, 2), d.whole(1, 2)
    how = windows(d, rank)
    if "auto_pad" in how:
        how = without_gaps(how)
    else:
        how |= d.maybe(output_padding=[d.whole(0, s - 1) for s in how.get("strides", [1] * rank)])
    filters = d.normal(groups * each, d.whole(1, 2), *how["kernel_shape"])
    bias = [d.normal(filters.shape[1] * groups)] if d.of(True, False) else []
    more = {"group": groups} if groups > 1 else {}
    return model("ConvTranspose", image(d, groups * each, rank), filters, *bias, **how, **more)


@operator("MaxPool")
def max_pool(d: Draws) -> Model:
    rank = d.whole(1, 3)
    how = without_gaps(windows(d, rank, ceil_mode=d.of(0, 1)))
    return model("MaxPool", image(d, 2, rank), results=d.of(1, 2), **how)


@operator("AveragePool")
def average_pool(d: Draws) -> Model:
    rank = d.whole(1, 3)
    how = without_gaps(windows(d, rank, ceil_mode=d.of(0, 1))) | d.maybe(count_include_pad=1)
    return model("AveragePool", image(d, 2, rank), **how)


@operator("LpPool")
def lp_pool(d: Draws) -> Model:
    rank = d.whole(1, 2)
    return model(
        "LpPool", image(d, 2, rank), **without_gaps(windows(d, rank, ceil_mode=d.of(0, 1))), **d.maybe(p=d.of(1, 3))
    )


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(d: Draws, kind: str) -> Model:
    return model(kind, image(d, 2, d.whole(1, 3)), **(d.maybe(p=d.of(1, 3)) if "Lp" in kind else {}))


# -- products ---------------------------------------------------------------------------------------------------------


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


# -- element by element -----------------------------------------------------------------------------------------------


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


# -- images -----------------------------------------------------------------------------------------------------------


@operator("Resize")
def resize(d: Draws) -> Model:
    """Not drawn: a window of a crop, and factors to no whole size where corners keep their places."""
    x = d.normal(1, d.whole(1, 2), d.whole(2, 6), d.whole(2, 6))
    mode = d.of("nearest", "linear", "cubic")
    places = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    how = {"mode": mode} | d.maybe(coordinate_transformation_mode=d.of(*places))
    if mode == "nearest":
        how |= d.maybe(nearest_mode=d.of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        how |= d.maybe(cubic_coeff_a=-0.5, exclude_outside=1)
    if how.get("coordinate_transformation_mode") == "align_corners" or d.of(True, False):
        sizes = np.array([*x.shape[:2], d.whole(1, 9), d.whole(1, 9)])
        return model("Resize", x, None, None, sizes, constant=(3,), **how)
    scales = np.array([1, 1, d.of(0.5, 0.75, 1.5, 2.0), d.of(0.5, 1.0, 1.25, 3.0)], "f4")
    return model("Resize", x, None, scales, constant=(2,), **how)


@operator("GridSample")
def grid_sample(d: Draws) -> Model:
    x, n = d.normal(d.whole(1, 2), 2, d.whole(1, 5), d.whole(1, 5)), d.whole(1, 4)
    grid = d.rng.uniform(-1.6, 1.6, (x.shape[0], n, 3, 2)).astype("f4")
    mode = d.of("linear", "nearest", "cubic")
    more = d.maybe(padding_mode=d.of("zeros", "border", "reflection"), align_corners=1)
    return model("GridSample", x, grid, opset=20, mode=mode, **more)


@operator("AffineGrid")
def affine(d: Draws) -> Model:
    axes = d.of(2, 3)
    size = np.array([2, 3, *(d.whole(2, 4) for _ in range(axes))])
    return model("AffineGrid", d.normal(2, axes, axes + 1), size, opset=20, constant=(1,), **d.maybe(align_corners=1))


@operator("RoiAlign")
def regions(d: Draws) -> Model:
    x, count = d.normal(2, 2, d.whole(3, 6), d.whole(3, 6)), d.whole(1, 3)
    begin = d.rng.uniform(-1, 4, (count, 2))
    boxes = np.concatenate([begin, begin + d.rng.uniform(0.2, 6, (count, 2))], 1).astype("f4")
    more = d.maybe(
        mode=d.of("avg", "max") if d.of(True, False) else "avg",
        output_height=d.whole(1, 3), output_width=d.whole(1, 3), sampling_ratio=d.whole(1, 3), spatial_scale=0.5,
        coordinate_transformation_mode=d.of("half_pixel", "output_half_pixel"),
    )  # fmt: skip
    more["mode"] = "avg"  # of maxima ONNX Runtime has another reading
    opset = 10 if "coordinate_transformation_mode" not in more and d.of(True, False) else 16
    return model("RoiAlign", x, boxes, d.numbers("int64", count, low=0, high=1), opset=opset, constant=(1,), **more)


@operator("Col2Im")
def columns(d: Draws) -> Model:
    sizes, block = [d.whole(3, 5), d.whole(3, 5)], [d.whole(1, 2), d.whole(1, 2)]
    pads, steps, apart = [d.whole(0, 1) for _ in range(4)], [d.whole(1, 2) for _ in "hw"], [d.whole(1, 2) for _ in "hw"]
    counts = [
        (n + pads[i] + pads[i + 2] - a * (b - 1) - 1) // s + 1
        for i, (n, b, s, a) in enumerate(zip(sizes, block, steps, apart))
    ]
    x = d.normal(d.whole(1, 2), 2 * block[0] * block[1], counts[0] * counts[1])
    given = np.array(sizes), np.array(block)
    return model("Col2Im", x, *given, opset=18, constant=(1, 2), pads=pads, strides=steps, dilations=apart)


@operator("MaxUnpool")
def unpool(d: Draws) -> Model:
    window, steps = [d.whole(1, 2), d.whole(1, 2)], [2, 2]
    x = d.normal(1, 2, 2, 3)
    size = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], steps, window)]
    places = d.rng.permutation(2 * size[0] * size[1])[: x.size].reshape(x.shape)
    return model("MaxUnpool", x, places, kernel_shape=window, strides=steps)


# -- sequences --------------------------------------------------------------------------------------------------------


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
        ("ij,jk->ik", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 4)), ("ij,ij->i", (2, 3), (2, 3)),
        ("...ij,...jk", (2, 2, 3), (2, 3, 2)), ("ii->i", (3, 3)), ("i,j->ij", (2,), (3,)),
    )  # fmt: skip
    return model("Einsum", *(d.normal(*s) for s in shapes), equation=rule)


# -- bytes ------------------------------------------------------------------------------------------------------------


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


# -- signals, losses --------------------------------------------------------------------------------------------------


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
