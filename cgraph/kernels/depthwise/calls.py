"""Calls of depthwise convolution: as many groups as channels, with one filter each."""

import numpy as np

from cgraph.kernels.conv.calls import check_result
from cgraph.kernels.conv.epilogue import NO_EPILOGUE, Epilogue
from cgraph.kernels.depthwise.signature import LINES, SMALL, TAPS
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.signature import Signature
from cgraph.kernels.target import Target
from cgraph.kernels.views.blocked_views import BlockedView, require_whole_blocks
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of
from cgraph.kernels.views.pack import runs_of
from cgraph.kernels.views.row_bands import band_of, banded_tasks
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.kernels.views.timing import tile_ns
from cgraph.late import LateModule
from cgraph.record import replace

gpu_window = LateModule("cgraph.kernels.window.gpu_calls")

MOST_HELD = 9  # number of taps whose weights stay in registers
MANY_PIXELS = (7, 5, 4, 2, 1)  # of a tile, beside the weights of a row in 16 registers
MOST_COLUMNS = 7  # taps of a row whose weights do


def is_depthwise(shape: ConvShape) -> bool:
    """Return True for one filter per channel, in blocks; several filters for a channel are a grouped convolution."""
    return shape.groups == shape.c == shape.k and not shape.is_plain


def depthwise_calls(
    shape: ConvShape, out: BlockedView, x: BlockedView, weights: Pointer, epilogue: Epilogue = NO_EPILOGUE
) -> KernelCalls:
    """Compute ``out[n, c] = epilogue(conv(x[n, c], filters[c]))``

    Operands
        x: channel-blocked images whose halo is at least ``shape.window.halo(h, w)``
        weights: in the layout of `pack_depthwise`
        epilogue: without a residual
    Raises
        ValueError: not depthwise, shapes disagree, the halo is too narrow, a value shares a block of channels, or there
            is a residual
    """
    require_whole_blocks(x)
    check_result(shape, out, None)
    window, (bias, activation) = shape.window, epilogue.without_residual()
    if not is_depthwise(shape):
        raise ValueError(f"{shape} is not depthwise")
    if (x.n, x.c, x.h, x.w, x.lanes) != (out.n, shape.c, shape.h, shape.w, shape.lanes):
        raise ValueError(f"images [{x.n}, {x.c}, {x.h}, {x.w}] are not those of {shape}")
    if not x.covers(window.halo(x.h, x.w)):
        raise ValueError(f"a halo of {x.halo} is narrower than {window.halo(x.h, x.w)}, which the filter reads")
    blocks = in_blocks(shape.target, gpu_window.depthwise_calls, shape, out, x, weights, bias, activation)
    if blocks is not None:
        return blocks
    zeros = np.zeros(shape.blocks * shape.lanes, np.dtype(shape.dtype))
    calls = row_calls(shape, out, x, weights, replace(epilogue, bias=bias or Pointer(zeros)))
    return KernelCalls(calls.calls, () if bias else (zeros,))


def row_calls(shape: ConvShape, out: BlockedView, x: BlockedView, weights: Pointer, epilogue: Epilogue) -> KernelCalls:
    """Return the call that computes all rows.

    Parameters
        shape: its blocks of channels are those of the filters, which fill the blocks of the images
        out, x: images of the filters' dtype, or of bfloat16 numbers
        epilogue: has a bias
    """
    window, activation = shape.window, epilogue.activation
    family, pixels, params = kernel_of(shape, out.w)
    band = band_of(out.h, out.w)
    tasks = banded_tasks(out.n, shape.blocks, out.h, band)
    chunk = chunk_of(tasks, tile_ns(shape.target, out.w * window.taps))
    (r, s), down, (tall, wide) = window.kernel, window.stride[0], window.dilation
    call = family.call(
        (x.dtype, shape.dtype, pixels, *params, epilogue.program), tasks, chunk,
        x=x.pixel(-window.pad[0], -window.pad[1]), x_image=x.image, x_plane=x.plane, x_row=x.row * down,
        tap_row=x.row * tall, tap_column=x.lanes * wide,
        w=weights, bias=epilogue.bias, kernel_rows=r, kernel_columns=s,
        out=out.origin, o_image=out.image, o_plane=out.plane, o_row=out.row,
        rows=out.h, columns=out.w, blocks=shape.blocks, band=band, **activation.args,
    )  # fmt: skip
    return KernelCalls((call,) if tasks else ())


def kernel_of(shape: ConvShape, columns: int) -> tuple[Signature, int, tuple[int, ...]]:
    """Return the kernel family for rows of `columns` results, the pixels of a tile, and the other params."""
    (r, s), across, wide = shape.window.kernel, shape.window.stride[1], shape.window.dilation[1]
    if r * s <= MOST_HELD:
        return SMALL, pixels_of(columns, shape.target), (r, s, across, wide)
    if s <= MOST_COLUMNS and shape.target.registers >= 16:
        return LINES, pixels_of(columns, shape.target, MANY_PIXELS), (s, across, wide)
    return TAPS, pixels_of(columns, shape.target), (across,)


def pixels_of(columns: int, target: Target, few_registers: tuple[int, ...] = (4, 2, 1)) -> int:
    """Return the pixels of a tile: few different numbers, so that networks share kernels."""
    choices = (14, 8, 7, 4, 2, 1) if target.registers == 32 else few_registers
    fitting = [q for q in choices if q <= columns]
    return min(fitting, key=lambda q: -(-columns // q) * (q + 1))


def pack_depthwise(shape: ConvShape, filters: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
    """Return filters ``[c, 1, r, s]``, times `scale` ``[c]``, as ``[blocks, taps, lanes]``, zero for unused
    channels.
    """
    padded = np.zeros((shape.blocks * shape.lanes, shape.window.taps), np.dtype(shape.dtype))
    for first, dense in runs_of(filters, scale, shape.lanes, True):
        padded[first : first + len(dense)] = dense.reshape(len(dense), -1)
    return np.ascontiguousarray(padded.reshape(shape.blocks, shape.lanes, -1).transpose(0, 2, 1))
