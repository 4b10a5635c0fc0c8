"""Normalisation: of channels by given statistics, of rows and groups by their own, and across channels."""

from functools import partial
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.expression import Trace
from cgraph.kernels.kernel import Call, View, contiguous, scratch_pointer
from cgraph.kernels.normalise.calls import group_norm_calls, layer_norm_calls, local_response_calls, rms_norm_calls
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import Target
from cgraph.ops.arithmetic import reciprocal, square
from cgraph.ops.elementary import sqrt
from cgraph.ops.family import common_dtype, float_dtype, real_node
from cgraph.ops.leaf import as_node
from cgraph.ops.pad import pad
from cgraph.ops.power import power
from cgraph.ops.shape import broadcast_to, reshape


def per_channel(x: Any, ndim: int) -> Any:
    """Reshape ``[c]`` so that it broadcasts along the channels of ``[n, c, ...]``; for nodes and arrays."""
    return reshape(x, (-1, *[1] * (ndim - 2))) if isinstance(x, Node) else x.reshape(-1, *[1] * (ndim - 2))


class BatchNorm(Op):
    """``(x - mean) / sqrt(variance + eps) * scale + shift`` for each channel.

    Operands
        x: ``[n, c, ...]``
        scale, shift, mean, variance: ``[c]``
    Source
        Ioffe and Szegedy 2015, arXiv:1502.03167; ONNX operator BatchNormalization
    """

    eps: float

    def infer(self, x: Spec, *parameters: Spec) -> Spec:
        check_floats(x, *parameters)
        if x.ndim < 2 or any(p.shape != (x.shape[1],) for p in parameters):
            raise ShapeError(
                f"operand {x} and parameters {', '.join(map(str, parameters))} do not fit; pass [n, c, ...] and [c]"
            )
        return x

    def meaning(self, x, scale, shift, mean, variance):
        scale, shift, mean, variance = (per_channel(p, x.ndim) for p in (scale, shift, mean, variance))
        return (x - mean) / np.sqrt(variance + np.asarray(self.eps, x.dtype)) * scale + shift

    def row_rule(self, x: Spec, *parameters: Spec) -> RowRule | None:
        return RowRule((0,), lambda rows: self)

    def work(self, target: Target, x: Spec, *parameters: Spec) -> Work:
        nbytes = x.shape[1] * x.dtype.itemsize if x.size else 0
        return Work(partial(self.calls, target), nbytes, overwrites=(0,), strided=True)

    def calls(self, target: Target, out: View, x: View, *parameters: View, workspace: View | None = None) -> list[Call]:
        """Compute one factor for each channel in the workspace, then every element."""
        if x.size == 0:
            return []
        scale, shift, mean, variance = parameters
        factor = contiguous(scratch_pointer(workspace, x.shape[1] * x.itemsize), scale.shape, x.dtype)
        m = Trace()
        first = m.program(m.load(0, x.dtype) / m.sqrt(m.load(1, x.dtype) + self.eps))
        m = Trace()
        x_, mean_, factor_, shift_ = (m.load(i, x.dtype) for i in range(4))
        second = m.program((x_ - mean_) * factor_ + shift_)
        views = (along_channels(v, len(x.shape)) for v in (mean, factor, shift))
        return pointwise_calls(target, first, factor, scale, variance) + pointwise_calls(target, second, out, x, *views)

    def grad(self, node, g):
        x, scale, _, mean, variance = node.operands
        axes = tuple(i for i in range(x.ndim) if i != 1)
        factor = reciprocal(sqrt(variance + self.eps))
        centred = x - per_channel(mean, x.ndim)
        sums, products = g.sum(axes), (g * centred).sum(axes)
        to_variance = products * scale * factor * factor * factor * -0.5
        return g * per_channel(scale * factor, x.ndim), products * factor, sums, -sums * scale * factor, to_variance


def along_channels(p: View, ndim: int) -> View:
    """View ``[c]`` as ``[c, 1, ...]``."""
    return View(p.at, (*p.shape, *[1] * (ndim - 2)), (*p.strides, *[0] * (ndim - 2)), p.dtype)


class LayerNorm(Op):
    """``(x - mean) / sqrt(variance + eps) * scale + shift``, with mean and variance over the last axes.

    Operands
        x: floats
        scale, shift: of the shape of the last `axes` axes of `x`
    Source
        Ba, Kiros and Hinton 2016, arXiv:1607.06450
    """

    axes: int
    eps: float

    def infer(self, x: Spec, scale: Spec, shift: Spec) -> Spec:
        check_floats(x, scale, shift)
        shape = x.shape[x.ndim - self.axes :]
        if not 1 <= self.axes <= x.ndim or scale.shape != shape or shift.shape != shape:
            raise ShapeError(
                f"scale {scale} and shift {shift} do not fit {x}; pass {list(shape)}, its last {self.axes} axes"
            )
        return x

    def meaning(self, x, scale, shift):
        return standardise(x, tuple(range(x.ndim - self.axes, x.ndim)), self.eps) * scale + shift

    def row_rule(self, x: Spec, scale: Spec, shift: Spec) -> RowRule | None:
        return RowRule((0,), lambda rows: self) if self.axes < x.ndim else None

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(partial(layer_norm_calls, target, axes=self.axes, epsilon=self.eps), overwrites=(0,))

    def grad(self, node, g):
        x, scale, _ = node.operands
        to_x, unit = gradient_of_standard(x, g * scale, tuple(range(x.ndim - self.axes, x.ndim)), self.eps)
        over = tuple(range(x.ndim - self.axes))
        return to_x, (g * unit).sum(over), g.sum(over)


class RmsNorm(Op):
    """``x / sqrt(mean(x ** 2) + eps) * scale``, with the mean over the last axes.

    Operands
        x: floats
        scale: of the shape of the last `axes` axes of `x`
    Source
        Zhang and Sennrich 2019, arXiv:1910.07467; ONNX operator RMSNormalization
    """

    axes: int
    eps: float

    def infer(self, x: Spec, scale: Spec) -> Spec:
        check_floats(x, scale)
        shape = x.shape[x.ndim - self.axes :]
        if not 1 <= self.axes <= x.ndim or scale.shape != shape:
            raise ShapeError(f"scale {scale} does not fit {x}; pass {list(shape)}, its last {self.axes} axes")
        return x

    def meaning(self, x, scale):
        if x.size == 0:
            return x
        squares = np.square(x).mean(tuple(range(x.ndim - self.axes, x.ndim)), keepdims=True)
        return x / np.sqrt(squares + np.asarray(self.eps, x.dtype)) * scale

    def written_out(self, x: Node, scale: Node) -> Node:
        """Return the same by ops of elements and a mean."""
        squares = square(x).mean(tuple(range(x.ndim - self.axes, x.ndim)), keepdims=True)
        return x / sqrt(squares + self.eps) * scale

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(partial(rms_norm_calls, target, axes=self.axes, epsilon=self.eps), overwrites=(0,))

    def grad(self, node, g):
        x, scale = node.operands
        last = tuple(range(x.ndim - self.axes, x.ndim))
        factor = reciprocal(sqrt(square(x).mean(last, keepdims=True) + self.eps))
        unit, scaled = x * factor, g * scale
        to_x = (scaled - unit * (scaled * unit).mean(last, keepdims=True)) * factor
        return to_x, (g * unit).sum(tuple(range(x.ndim - self.axes)))


class GroupNorm(Op):
    """``(x - mean) / sqrt(variance + eps) * scale + shift``, with mean and variance of each group of channels.

    Operands
        x: ``[n, c, ...]``
        scale, shift: ``[c]``
    Fields
        groups: a divisor of c; c groups are instance normalisation
    Source
        Wu and He 2018, arXiv:1803.08494
    """

    groups: int
    eps: float

    def infer(self, x: Spec, scale: Spec, shift: Spec) -> Spec:
        check_floats(x, scale, shift)
        if x.ndim < 2 or self.groups < 1 or x.shape[1] % self.groups:
            raise ShapeError(
                f"{self.groups} groups do not divide the channels of {x}; pass [n, c, ...] with c a multiple of groups"
            )
        if scale.shape != (x.shape[1],) or shift.shape != (x.shape[1],):
            raise ShapeError(f"scale {scale} and shift {shift} must be [{x.shape[1]}], one value for each channel")
        return x

    def meaning(self, x, scale, shift):
        rows = x.reshape(x.shape[0], self.groups, prod(x.shape[1:]) // self.groups)
        unit = standardise(rows, (2,), self.eps).reshape(x.shape)
        return unit * per_channel(scale, x.ndim) + per_channel(shift, x.ndim)

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(partial(group_norm_calls, target, groups=self.groups, epsilon=self.eps), overwrites=(0,))

    def grad(self, node, g):
        x, scale, _ = node.operands
        rows = (x.shape[0], self.groups, prod(x.shape[1:]) // self.groups)
        scaled = reshape(g * per_channel(scale, x.ndim), rows)
        to_x, unit = gradient_of_standard(reshape(x, rows), scaled, (2,), self.eps)
        over = tuple(i for i in range(x.ndim) if i != 1)
        return reshape(to_x, x.shape), (g * reshape(unit, x.shape)).sum(over), g.sum(over)


def standardise(x: np.ndarray, axes: tuple[int, ...], eps: float) -> np.ndarray:
    """Shift and scale `x` to mean 0 and variance 1 over axes."""
    if x.size == 0:
        return x
    centred = x - x.mean(axes, keepdims=True)
    variance = np.square(centred).mean(axes, keepdims=True)
    return centred / np.sqrt(variance + np.asarray(eps, x.dtype))


def gradient_of_standard(x: Node, g: Node, axes: tuple[int, ...], eps: float) -> tuple[Node, Node]:
    """Return the gradient for `x` of ``(x - mean) / sqrt(variance + eps)`` over axes, and that value itself."""
    centred = x - x.mean(axes, keepdims=True)
    factor = reciprocal(sqrt(square(centred).mean(axes, keepdims=True) + eps))
    unit = centred * factor
    centred_g = g - g.mean(axes, keepdims=True) - unit * (g * unit).mean(axes, keepdims=True)
    return centred_g * factor, unit


class Lrn(Op):
    """``x / (bias + alpha / size * s) ** beta``, where s is the sum of squares over `size` adjacent channels.

    Operands
        x: ``[n, c, ...]``
    Source
        Krizhevsky, Sutskever and Hinton 2012; ONNX operator LRN
    """

    size: int
    alpha: float
    beta: float
    bias: float

    def infer(self, x: Spec) -> Spec:
        check_floats(x)
        if x.ndim < 2 or self.size < 1:
            raise ShapeError(f"operand {x} and size={self.size} do not fit; pass [n, c, ...] and size >= 1")
        return x

    def meaning(self, x):
        before = (self.size - 1) // 2
        width = [(0, 0), (before, self.size - 1 - before), *[(0, 0)] * (x.ndim - 2)]
        squares = np.pad(np.square(x), width)
        sums = np.zeros_like(x)
        for i in range(self.size):
            sums += squares[:, i : i + x.shape[1]]
        base = np.asarray(self.bias, x.dtype) + np.asarray(self.alpha / self.size, x.dtype) * sums
        return x / base ** np.asarray(self.beta, x.dtype)

    def work(self, target: Target, x: Spec) -> Work:
        numbers = self.size, self.alpha, self.beta, self.bias
        return Work(lambda out, x: local_response_calls(target, out, x, *numbers))

    def grad(self, node, g):
        (x,) = node.operands
        before = (self.size - 1) // 2
        base = self.bias + (self.alpha / self.size) * sum_neighbours(square(x), before, self.size)
        scale = power(base, -self.beta)
        inner = sum_neighbours(g * x * scale / base, self.size - 1 - before, self.size)
        return (g * scale - (2 * self.alpha * self.beta / self.size) * x * inner,)


def sum_neighbours(x: Node, before: int, size: int) -> Node:
    """Sum over `size` adjacent channels, `before` of them preceding, with zeros outside."""
    c = x.shape[1]
    padded = pad(x, [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)])
    total = padded[:, :c]
    for i in range(1, size):
        total = total + padded[:, i : i + c]
    return total


def check_floats(x: Spec, *others: Spec) -> None:
    """Check that all operands have one float dtype. DTypeError otherwise."""
    if x.dtype.kind != "f" or any(y.dtype != x.dtype for y in others):
        raise DTypeError(
            f"operands are {', '.join(str(y.dtype) for y in (x, *others))}; use astype to give them one float dtype"
        )


# -- public functions -------------------------------------------------------------------------------------------------


def floats(*xs: Any) -> list[Node]:
    """Convert operands to one float dtype. DTypeError for complex ones."""
    dtype = float_dtype(common_dtype(*xs))
    return [real_node(as_node(x, dtype)).astype(dtype) for x in xs]


@public
def batch_norm(x: Any, scale: Any, shift: Any, mean: Any, variance: Any, eps: float = 1e-5) -> Node:
    """Normalise each channel of ``[n, c, ...]`` by given statistics ``[c]``, then scale and shift."""
    return apply(BatchNorm(float(eps)), *floats(x, scale, shift, mean, variance))


@public
def batch_norm_training(x: Any, scale: Any, shift: Any, eps: float = 1e-5) -> tuple[Node, Node, Node]:
    """Normalise each channel of ``[n, c, ...]`` by its own statistics, then scale and shift.

    Returns
        the result, the means ``[c]`` and the variances ``[c]``
    """
    x, scale, shift = floats(x, scale, shift)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    mean = x.mean(axes)
    variance = square(x - per_channel(mean, x.ndim)).mean(axes)  # the result uses the same difference
    return batch_norm(x, scale, shift, mean, variance, eps), mean, variance


@public
def layer_norm(x: Any, scale: Any, shift: Any, eps: float = 1e-5) -> Node:
    """Normalise over the last axes, as many as `scale` and `shift` have, then scale and shift."""
    x, scale, shift = floats(x, scale, shift)
    return apply(LayerNorm(scale.ndim, float(eps)), x, scale, shift)


@public
def rms_norm(x: Any, scale: Any, eps: float = 1e-5) -> Node:
    """Divide x by the root of the mean of its squares along the last axis, and multiply by `scale`, which broadcasts.

    Source
        Zhang and Sennrich 2019, arXiv:1910.07467
    """
    x, scale = floats(x, scale)
    if not x.ndim:
        raise ShapeError(f"{x.name} {x.spec} has no last axis; pass [..., n]")
    if scale.ndim > 1:
        return rms_norm(x, 1.0, eps) * scale
    return apply(RmsNorm(1, float(eps)), x, broadcast_to(scale, x.shape[-1:]))


@public
def group_norm(x: Any, scale: Any, shift: Any, groups: int, eps: float = 1e-5) -> Node:
    """Normalise each group of channels of ``[n, c, ...]`` by its own statistics; scale and shift are ``[c]``."""
    return apply(GroupNorm(groups, float(eps)), *floats(x, scale, shift))


@public
def instance_norm(x: Any, scale: Any, shift: Any, eps: float = 1e-5) -> Node:
    """Normalise each channel of each image of ``[n, c, ...]`` by its own statistics."""
    x = as_node(x)
    if x.ndim < 2:
        raise ShapeError(f"{x.name} {x.spec} has no channels; pass [n, c, ...]")
    return group_norm(x, scale, shift, x.shape[1], eps)


@public
def lrn(x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Node:
    """Divide by a power of the sum of squares over adjacent channels, as the ONNX operator LRN."""
    return apply(Lrn(size, float(alpha), float(beta), float(bias)), *floats(x))
