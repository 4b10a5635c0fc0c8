"""Emitters of ONNX nodes for layers, and for patterns that are one operator in ONNX."""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.onnx.emit import Emitted, emitter, ints, node
from cgraph.formats.onnx.emit_fourier import spectrum, strided_windows
from cgraph.formats.onnx.emit_quantised import gemm
from cgraph.ir.graph import Node
from cgraph.ops.leaf import ConstOp
from cgraph.ops.resize import matrix_of
from cgraph.ops.shape import BroadcastTo, Reshape


@emitter("matmul")
def matmul(x: Node) -> Emitted:
    """Emit MatMul without broadcasts of matrices, which are implicit in ONNX."""
    plain = [v.operands[0] if isinstance(v.op, BroadcastTo) else v for v in x.operands]
    whole = all(a.shape[-2:] == b.shape[-2:] for a, b in zip(plain, x.operands))
    if whole and np.broadcast_shapes(*(v.shape[:-2] for v in plain)) == x.shape[:-2]:
        return node("MatMul", *plain)
    return node("MatMul", *x.operands)


@emitter("attention", "gelu", "rms_norm")
def newer(x: Node) -> Emitted:
    """Emit the decomposition of an op whose ONNX operator is newer than the written opset."""
    return node("Identity", x.op.written_out(*x.operands))  # type: ignore[attr-defined]


@emitter("stop_gradient")
def stop_gradient(x: Node) -> Emitted:
    return node("Identity", *x.operands)


@emitter("softmax", "log_softmax")
def softmax(x: Node) -> Emitted:
    kind = "Softmax" if x.op.name == "softmax" else "LogSoftmax"
    return node(kind, x.operands[0], axis=x.op.axis)  # type: ignore[attr-defined]


@emitter("conv1d", "conv2d", "conv3d")
def conv(x: Node) -> Emitted:
    return node("Conv", *x.operands, **windows(x.op, x.operands[1].shape[2:]))


def windows(op: Any, kernel: tuple[int, ...]) -> dict[str, Any]:
    """Return the attributes of a convolution."""
    return {
        "kernel_shape": list(kernel),
        "strides": list(op.stride),
        "pads": list(op.pad),
        "dilations": list(op.dilation),
        "group": op.groups,
    }


@emitter("conv_transpose")
def conv_transpose(x: Node) -> Emitted:
    op: Any = x.op
    v, f = x.operands
    axes = len(op.stride)
    plain = [
        (n - 1) * s + (r - 1) * d + 1 - op.pad[i] - op.pad[axes + i]
        for i, (n, s, r, d) in enumerate(zip(v.shape[2:], op.stride, f.shape[2:], op.dilation))
    ]
    extra = [n - m for n, m in zip(x.shape[2:], plain)]
    return node("ConvTranspose", v, f, output_padding=extra, **windows(op, f.shape[2:]))


@emitter("max_pool", "avg_pool")
def pool(x: Node) -> Emitted:
    op: Any = x.op
    parameters = {
        "kernel_shape": list(op.window),
        "strides": list(op.stride),
        "pads": list(op.pad),
        "ceil_mode": int(op.ceil),
    }
    if x.op.name == "max_pool":
        return node("MaxPool", x.operands[0], dilations=list(op.dilation), **parameters)
    return node("AveragePool", x.operands[0], count_include_pad=int(op.count_pad), **parameters)


@emitter("batch_norm")
def batch_norm(x: Node) -> Emitted:
    return node("BatchNormalization", *x.operands, epsilon=x.op.eps)  # type: ignore[attr-defined]


@emitter("layer_norm")
def layer_norm(x: Node) -> Emitted:
    return node("LayerNormalization", *x.operands, axis=-x.op.axes, epsilon=x.op.eps)  # type: ignore[attr-defined]


@emitter("group_norm")
def group_norm(x: Node) -> Emitted:
    """Emit instance normalisation of the groups, then scale and shift of the channels."""
    op: Any = x.op
    v, scale, shift = x.operands
    if op.groups == v.shape[1]:
        return node("InstanceNormalization", v, scale, shift, epsilon=op.eps)
    ones, zeros = np.ones(op.groups, v.dtype), np.zeros(op.groups, v.dtype)
    grouped = node("Reshape", v, ints([v.shape[0], op.groups, prod(v.shape[1:]) // op.groups]))
    unit = node("Reshape", node("InstanceNormalization", grouped, ones, zeros, epsilon=op.eps), ints(v.shape))
    wide = ints([-1, *[1] * (v.ndim - 2)])
    return node("Add", node("Mul", unit, node("Reshape", scale, wide)), node("Reshape", shift, wide))


@emitter("roi_align")
def roi_align(x: Node) -> Emitted:
    """Emit RoiAlign, which reads images of one size and averages samples of cells."""
    op: Any = x.op
    boxes, batch, _, *levels = x.operands
    if len(levels) > 1 or op.grid.kind == "corners":
        raise FormatError(
            f"ONNX's RoiAlign reads images of one size by cells, this op {len(levels)} sizes by {op.grid.kind}. Use "
            "roi_align with one image size and grid='cells' or 'aligned'"
        )
    return node(
        "RoiAlign", levels[0], boxes, batch,
        output_height=op.shape[0], output_width=op.shape[1], sampling_ratio=op.grid.samples,
        spatial_scale=op.grid.scales[0], mode="avg",
        coordinate_transformation_mode="half_pixel" if op.grid.kind == "aligned" else "output_half_pixel",
    )  # fmt: skip


@emitter("resize")
def resize(x: Node) -> Emitted:
    op: Any = x.op
    (v,) = x.operands
    return node(
        "Resize",
        v,
        None,
        *sizes_or_scales(x),
        mode=op.mode,
        coordinate_transformation_mode=op.coordinates,
        nearest_mode=op.rounding,
    )


def sizes_or_scales(x: Node) -> tuple[Any, ...]:
    """Return the last operands of Resize: scales, or sizes if their ratios are the scales.

    Raises
        FormatError: the sizes do not follow from the scales
    """
    scales = x.op.scales  # type: ignore[attr-defined]
    sides = list(zip(x.shape[2:], x.operands[0].shape[2:], scales))
    if all(m == n * s or s == m / n for m, n, s in sides):
        return None, ints(x.shape)
    if any(m != int(n * np.float32(s)) for m, n, s in sides):
        raise FormatError(
            f"ONNX's Resize takes sizes or scales, and {[n for _, n, _ in sides]} times {list(scales)} are not "
            f"{[m for m, _, _ in sides]}. Use resize without scales, or with the sizes that follow from them"
        )
    return (np.array([1, 1, *scales], np.float32),)


@emitter("weighted_rows")
def weighted_rows(x: Node) -> Emitted:
    return node("MatMul", matrix_of(x), x.operands[0])


@emitter("lrn")
def lrn(x: Node) -> Emitted:
    op: Any = x.op
    return node("LRN", x.operands[0], size=op.size, alpha=op.alpha, beta=op.beta, bias=op.bias)


# -- patterns of several nodes that are one node in ONNX ---------------------------------------------------------------


def constant_number(x: Node) -> float | None:
    """Return the only value of all elements of a constant node, or None."""
    v = x.operands[0] if isinstance(x.op, BroadcastTo) else x
    if not isinstance(v.op, ConstOp) or v.size != 1:
        return None
    return v.op.array.reshape(()).item()


def leaky_relu(x: Node) -> Emitted | None:
    """Match where(v > 0, v, v * alpha), or with v >= 0: both are alpha * 0 at 0; alpha is float32 in files."""
    if x.op.name != "where":
        return None
    condition, v, scaled = x.operands
    if condition.op.name not in ("greater", "greater_equal") or scaled.op.name != "multiply":
        return None
    if condition.operands[0] is not v:
        return None
    alpha = constant_number(scaled.operands[1])
    if scaled.operands[0] is not v or alpha is None or constant_number(condition.operands[1]) != 0:
        return None
    if alpha != float(np.float32(alpha)):
        return None
    return node("LeakyRelu", v, alpha=alpha) if v.dtype.kind == "f" else None


def clip(x: Node) -> Emitted | None:
    """Match minimum(maximum(v, low), high)."""
    if x.op.name != "minimum" or x.operands[0].op.name != "maximum":
        return None
    v, low = x.operands[0].operands
    lowest, highest = constant_number(low), constant_number(x.operands[1])
    if lowest is None or highest is None:
        return None
    return node("Clip", v, np.asarray(lowest, x.dtype), np.asarray(highest, x.dtype))


def mean(x: Node) -> Emitted | None:
    """Match sum(v, axes) / count, with or without keepdims."""
    if x.op.name != "true_divide":
        return None
    total, count = x.operands[0], constant_number(x.operands[1])
    keepdims = isinstance(total.op, Reshape)
    inner = total.operands[0] if keepdims else total
    if inner.op.name != "sum" or count is None:
        return None
    (v,) = inner.operands
    axes = inner.op.axes  # type: ignore[attr-defined]
    shape = tuple(1 if i in axes else n for i, n in enumerate(v.shape))
    if (keepdims and total.shape != shape) or v.dtype != x.dtype or count != prod(v.shape[a] for a in axes):
        return None
    if keepdims and axes == tuple(range(2, v.ndim)) and v.ndim > 2:
        return node("GlobalAveragePool", v)
    return node("ReduceMean", v, ints(axes), keepdims=int(keepdims))


def biased_conv(x: Node) -> Emitted | None:
    """Match conv(v, f) + bias of the channels."""
    if x.op.name != "add":
        return None
    for convolution, added in (x.operands, x.operands[::-1]):
        bias = added.operands[0] if isinstance(added.op, BroadcastTo) else added
        if not convolution.op.name.startswith("conv") or convolution.shape != x.shape or bias.size != x.shape[1]:
            continue
        if bias.shape[-x.ndim + 1 :] != (x.shape[1], *[1] * (x.ndim - 2)):
            continue
        flat = bias.operands[0] if isinstance(bias.op, Reshape) and bias.operands[0].ndim == 1 else None
        plain = EMITTED[convolution.op.name](convolution) if convolution.op.name in EMITTED else None
        if plain is not None:
            last = flat if flat is not None else node("Reshape", bias, ints([-1]))
            return Emitted(plain.kind, (*plain.operands, last), plain.attributes)
    return None


EMITTED: dict[str, Callable[[Node], Emitted]] = dict.fromkeys(("conv1d", "conv2d", "conv3d"), conv)
PATTERNS = (leaky_relu, clip, mean, biased_conv, gemm, strided_windows, spectrum)


def matches(x: Node) -> Iterator[Emitted]:
    """Yield the matches of all patterns for a node."""
    for pattern in PATTERNS:
        expression = pattern(x)
        if expression is not None:
            yield expression
