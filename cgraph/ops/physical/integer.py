"""Convolutions, products and sums of bytes, created by the pass `integers`, and their blocked versions.

Bytes are unsigned: int8 values and their zero points are stored with 128 added. Sums are int32, and wrap.
"""

from functools import partial
from typing import Any

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.cut import Cut
from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.blocked_copy.calls import fill_halo_calls
from cgraph.kernels.conv.calls import conv_overwrites_residual
from cgraph.kernels.conv8.calls import ByteShape, ByteWeights, MatrixRows, Result, conv8_calls, is_depthwise8
from cgraph.kernels.conv8.join_ratios import join_quotient
from cgraph.kernels.conv8.packed_weights import (
    join_halves,
    pack_conv8,
    split_halves,
    split_numbers,
    split_scale,
    split_start,
)
from cgraph.kernels.depthwise8.calls import depthwise8_calls, pack_depthwise8
from cgraph.kernels.expression import Program, Trace
from cgraph.kernels.kernel import LINE, Call, View, contiguous, scratch_pointer
from cgraph.kernels.pack8.calls import pack_rows_calls
from cgraph.kernels.reduce.calls import reduce_calls
from cgraph.kernels.target import Target
from cgraph.ops.conv import Conv2d
from cgraph.ops.fixed import fixed_products
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.lanes import require
from cgraph.ops.physical.window_rows import WindowRows, rows_inside
from cgraph.record import replace

PIXELS = (2, 3)
FAR = 1024  # blocks begin one cache line after a multiple of this many bytes


def requantise(sums: np.ndarray, scale: np.ndarray, result: Result, residual: np.ndarray | None = None) -> np.ndarray:
    """Convert sums as a `Result` says, in float32 with a rounding after each operation, or in integers.

    Operands
        scale: broadcasts to the shape of the sums; for a fixed result, factors and shifts
    """
    sums = sums.astype("i4")
    if result.dtype == "i4":
        return sums
    if result.fixed:
        whole = fixed_products(sums, scale[0], scale[1], result.fixed == "once").astype("i8")
        return np.clip(whole + result.zero, result.low, result.high).astype("u1")
    y = sums.astype("f4") * scale
    if result.dtype == "f4":
        return y
    join = result.join
    if join:
        y = join_quotient(join, np.clip(np.rint(y), join.low, join.high), residual)
    return np.clip(np.rint(y) + result.zero, result.low, result.high).astype("u1")


class IntegerConv(Op):
    """A `Result` of ``conv(x - zero, filters) + bias``, in integers.

    Operands
        x: bytes ``[n, c, h, w]``
        filters: int8 ``[k, c / groups, r, s]``; bias: int32 ``[k]``; scale: float32 ``[k]``, for a fixed result int32
            ``[2, k]``
        residual: bytes of the result's shape, if there is a fifth operand
    Fields
        conv: stride, padding, dilation and groups
        zero: zero point of `x`
        result: conversion of the sums
    """

    conv: Conv2d
    zero: int
    result: Result

    def infer(self, x: Spec, filters: Spec, bias: Spec, scale: Spec, *residual: Spec) -> Spec:
        plain = self.conv.infer(x, Spec(filters.shape, x.dtype))
        return Spec(plain.shape, np.dtype(self.result.dtype))

    def meaning(self, x, filters, bias, scale, *residual):
        sums = self.conv.meaning(x.astype("i8") - self.zero, filters.astype("i8")) + bias[:, None, None]
        return requantise(sums, scale[..., None, None], self.result, *residual)


class BlockedIntegerConv(Op):
    """An IntegerConv of channel-blocked images.

    Operands
        x: of form `source`
        filters: as `pack_bytes` returns them
        start: initial sums, the bias minus the contribution of the zero point; scale: both up to the last panel's end;
            with `has_joined_halves` one operand, `column_numbers`; see `pack_scale`
        residual: of form `residual`, if that is not None
    Fields
        shape: sizes, window, groups, target
        source, form, residual: forms
        result: conversion of the sums
    """

    shape: ByteShape
    source: Form
    form: Form
    result: Result
    residual: Form | None = None

    @property
    def name(self) -> str:
        return "depthwise8" if is_depthwise8(self.shape) else "conv8"

    def infer(self, x: Spec, filters: Spec, *numbers: Spec) -> Spec:
        require(x, self.source)
        for spec in numbers[2:]:
            require(spec, self.residual)  # type: ignore[arg-type]
        return self.form.spec

    def meaning(self, x, filters, *numbers):
        shape, window, zero = self.shape, self.shape.window, self.source.fill
        f = self.unpacked(filters).astype("i8")
        conv = Conv2d(window.stride, window.pad, window.dilation, shape.groups)
        sums = conv.meaning(self.source.plain(x).astype("i8") - zero, f)
        start, scale = plain_numbers(shape, f, numbers, self.result)
        bias = start + (zero - shape.middle) * f.sum((1, 2, 3))
        rest = (self.residual.plain(r) for r in numbers[2:])  # type: ignore[union-attr]
        y = requantise(sums + bias[:, None, None], scale[..., None, None], self.result, *rest)
        return self.form.to_blocked(y)

    def unpacked(self, filters: np.ndarray) -> np.ndarray:
        """Return the filters ``[k, c / groups, r, s]``."""
        return unpack_bytes(self.shape, filters)

    def multiply_adds(self, *specs: Spec) -> int:
        return self.form.n * self.shape.flops // 2

    def work(self, target: Target, *specs: Spec) -> Work:
        return Work(self.calls, 0, self.overwrites)

    def cut(self, *specs: Spec) -> Cut:
        above, _, below, _ = self.source.halo
        rows = WindowRows(self.shape.window, self.shape.h, self.form, (above, below))
        beside = None if self.residual is None else rows_inside(self.form, self.residual.halo[0])
        reads = (rows.table(above), None, None, None, beside)[: len(specs)]
        return Cut(reads, partial(self.band, rows), self.form.halo[0], self.form.halo[2])

    def band(self, rows: WindowRows, first: int, stop: int) -> "BlockedIntegerConv":
        """Return the convolution that computes some rows of the result, with the same filters in the same order."""
        begin, end, above, below = rows.span(first, stop)
        _, left, _, right = self.shape.window.pad
        window = replace(self.shape.window, pad=(above, left, below, right))
        shape = replace(self.shape, h=end - begin, window=window, panel=self.shape.vectors)
        form = self.form.rows(first, stop)
        residual = None if self.residual is None else self.residual.strip(form.h)
        return replace(self, shape=shape, source=self.source.strip(end - begin), form=form, residual=residual)

    @property
    def overwrites(self) -> tuple[int, ...]:
        """The residual, if every pixel of it is read before it is written."""
        if self.residual != self.form or is_depthwise8(self.shape):
            return ()
        halo = self.form.halo != (0, 0, 0, 0) or self.source.halo != (0, 0, 0, 0)
        return (4,) if conv_overwrites_residual(self.shape, halo) else ()

    def calls(self, out: View, x: View, filters: View, start: View, *others: View) -> list[Call]:
        """Fill the halo of the result, then its pixels."""
        scale, *rest = others or (start,)
        to, source = self.form.at(out), self.source.at(x)
        residual = self.residual.at(rest[0]) if self.residual is not None else None
        lower = depthwise8_calls if is_depthwise8(self.shape) else conv8_calls
        weights = ByteWeights(filters.at, start.at, scale.at)
        lowered = lower(self.shape, to, source, weights, self.result, residual)
        halo_calls = [] if rest and rest[0] == out else fill_halo_calls(to)
        return [*halo_calls, *lowered.calls]


def pack_bytes(shape: ByteShape, filters: np.ndarray) -> np.ndarray:
    """Pack filters ``[k, c / groups, r, s]`` as the layer's kernel reads them."""
    packed = order_bytes(shape, filters)
    return join_halves(packed) if has_joined_halves(shape) else packed


def has_joined_halves(shape: ByteShape) -> bool:
    """Return True if packed weights are not bytes of filters."""
    return shape.is_unpacked and not is_depthwise8(shape)


def order_bytes(shape: ByteShape, filters: np.ndarray) -> np.ndarray:
    """Return filters in the order in which the layer's kernel reads them."""
    return (pack_depthwise8 if is_depthwise8(shape) else pack_conv8)(shape, filters)


def unpack_bytes(shape: ByteShape, packed: np.ndarray) -> np.ndarray:
    """Return the filters that `pack_bytes` packed."""
    filter_shape = (shape.k, shape.c // shape.groups, *shape.window.kernel)
    places = order_bytes(shape, 1 + np.arange(np.prod(filter_shape)).reshape(filter_shape)).ravel()
    values = split_halves(packed) if has_joined_halves(shape) else packed
    out = np.zeros(filter_shape, packed.dtype)
    out.ravel()[places[places > 0] - 1] = values.ravel()[places > 0]
    return out


def plain_numbers(
    shape: ByteShape, filters: np.ndarray, numbers: tuple[np.ndarray, ...], result: Result
) -> tuple[np.ndarray, np.ndarray]:
    """Return initial sums and scales of all filters."""
    if has_joined_halves(shape):
        return split_numbers(shape, filters, numbers[0], result.fixed == "once")
    return split_start(shape, numbers[0], result), split_scale(shape, numbers[0], numbers[1], result)


class IntegerMatmul(Op):
    """A `Result` of ``(x - zero) @ y + bias``, in integers.

    Operands
        x: bytes ``[..., m, k]``
        y: int8 ``[k, n]``; bias: int32 ``[n]``; scale: as for IntegerConv
    Fields
        zero: zero point of `x`
        result: conversion of the sums
    """

    zero: int
    result: Result

    def infer(self, x: Spec, y: Spec, *rest: Spec) -> Spec:
        if x.shape[-1] != y.shape[0]:
            raise ShapeError(
                f"x {x} has {x.shape[-1]} columns, y {y} has {y.shape[0]} rows; transpose or reshape one of them"
            )
        return Spec((*x.shape[:-1], y.shape[1]), np.dtype(self.result.dtype))

    def multiply_adds(self, x: Spec, y: Spec, *rest: Spec) -> int:
        return x.size * y.shape[1]

    def meaning(self, x, y, bias, scale):
        return requantise((x.astype("i8") - self.zero) @ y.astype("i8") + bias, scale, self.result)


class PackedIntegerMatmul(Op):
    """An IntegerMatmul by convolution tiles: rows are pixels, which are channel-blocked first.

    Operands
        x: as for IntegerMatmul
        panels, numbers: as for a BlockedIntegerConv of windows of one pixel
    Fields
        shape: a convolution of one image with one pixel for each row of `x`
        zero, result: as for IntegerMatmul
    """

    shape: ByteShape
    zero: int
    result: Result

    @property
    def name(self) -> str:
        return "matmul8"

    def infer(self, x: Spec, panels: Spec, *rest: Spec) -> Spec:
        return Spec((*x.shape[:-1], self.shape.k), np.dtype(self.result.dtype))

    def meaning(self, x, panels, *numbers):
        filters = unpack_bytes(self.shape, panels).astype("i8")
        start, scale = plain_numbers(self.shape, filters, numbers, self.result)
        y = filters[:, :, 0, 0].T
        bias = start + (self.zero - self.shape.middle) * y.sum(0)
        return requantise((x.astype("i8") - self.zero) @ y + bias, scale, self.result)

    def multiply_adds(self, x: Spec, *rest: Spec) -> int:
        return x.size * self.shape.k

    def work(self, target: Target, x: Spec, *rest: Spec) -> Work:
        return Work(self.calls, self.rows.spec.nbytes)

    @property
    def rows(self) -> Form:
        """The rows as pixels of one image; long blocks of columns are spaced so that they share no cache set."""
        shape = self.shape
        nbytes = shape.w * shape.lanes
        apart = -(nbytes - LINE) % FAR // shape.lanes if nbytes > LINE else 0
        return Form(1, shape.c, 1, shape.w, shape.lanes, "u1", (0, 0, 0, apart))

    def calls(
        self, out: View, x: View, panels: View, start: View, *others: View, workspace: View | None = None
    ) -> list[Call]:
        """Convert the rows to blocks, then compute the products."""
        (scale,) = others or (start,)
        form = self.rows
        pixels = form.at(contiguous(scratch_pointer(workspace, form.spec.nbytes), form.shape, "u1"))
        to = MatrixRows(out.at, 0, self.shape.k)
        lowered = conv8_calls(self.shape, to, pixels, ByteWeights(panels.at, start.at, scale.at), self.result)
        return [*pack_rows_calls(pixels, x), *lowered.calls]


class PixelSum(Op):
    """The sum over the pixels of each channel of bytes ``[n, c, h, w]``, as int32 ``[n, c, 1, 1]``."""

    def infer(self, x: Spec) -> Spec:
        return Spec((*x.shape[:2], 1, 1), np.dtype("int32"))

    def meaning(self, x):
        return x.sum(PIXELS, dtype="int32", keepdims=True)

    def work(self, target: Target, x: Spec) -> Work:
        return Work(partial(reduce_calls, target, "sum", WIDENED, axes=PIXELS, whole=True), strided=True)


class BlockedPixelSum(Op):
    """A PixelSum of channel-blocked images: ``[n, c / lanes, lanes]``."""

    form: Form

    def infer(self, x: Spec) -> Spec:
        require(x, self.form)
        return Spec((*x.shape[:2], x.shape[-1]), np.dtype("int32"))

    def meaning(self, x):
        return self.inside(x).sum(PIXELS, dtype="int32")

    def inside(self, x: Any) -> Any:
        """Return the images without their halo."""
        top, left = self.form.halo[:2]
        return x[:, :, top : top + self.form.h, left : left + self.form.w]

    def work(self, target: Target, x: Spec) -> Work:
        form = self.form

        def calls(out: View, x: View) -> list[Call]:
            shape = (*x.shape[:2], form.h, form.w, form.lanes)
            pixels = View(form.at(x).origin, shape, x.strides, x.dtype)
            return reduce_calls(target, "sum", WIDENED, out, pixels, axes=PIXELS, whole=True)

        return Work(calls)


def widening_program() -> Program:
    """Return the program that converts a byte to int32."""
    m = Trace()
    return m.program(m.cast(m.load(0, "u1"), "i4"))


WIDENED = widening_program()
