"""Calls that pack filters computed at run time, for example in training, where they change with every step."""

import numpy as np

from cgraph.kernels.conv.transpose_calls import TransposedShape
from cgraph.kernels.kernel import Call, Pointer, View
from cgraph.kernels.move.calls import copy_calls, fill_calls
from cgraph.kernels.pack_filters.signature import PACK
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of, join_calls, table


def pack_conv_calls(shape: ConvShape, out: Pointer, filters: View) -> KernelCalls:
    """Pack a view ``[k, c / groups, r, s]`` as `pack_conv` does, into ``shape.weights_nbytes`` bytes."""
    if filters.shape != (shape.k, shape.c // shape.groups, *shape.window.kernel):
        raise ValueError(f"filters of shape {filters.shape} do not fit {shape}")
    k_step, c_step, row, column = (s // filters.itemsize for s in filters.strides)
    c, i, j = np.array(shape.steps).T
    group = shape.k // shape.groups * k_step
    return pack_call(shape, out, filters.at, c, i * row + j * column, (group, k_step, c_step))


def pack_transposed_calls(shape: TransposedShape, out: Pointer, filters: View) -> KernelCalls:
    """Pack a view ``[c, k / groups, r, s]`` as `pack_transposed` does, into ``shape.weights_nbytes`` bytes.

    The gradient of a convolution with respect to its images is the transposed convolution with the same filters.
    """
    if filters.shape != (shape.c, shape.k // shape.groups, *shape.window.kernel):
        raise ValueError(f"filters of shape {filters.shape} do not fit {shape}")
    c_step, k_step, row, column = (s // filters.itemsize for s in filters.strides)
    parts = []
    for phase in shape.phases():
        c, _, tap = np.array(phase.shape.steps).T
        places = np.array([r * row + s * column for (r, _), (s, _) in phase.taps])[tap]
        group = shape.c // shape.groups * c_step
        # a phase without taps reads no channel: its tap of zeros
        channels = c + (shape.c if phase.is_empty else 0)
        parts.append(pack_call(phase.shape, out + phase.start, filters.at, channels, places, (group, k_step, c_step)))
    return join_calls(parts)


def pack_depthwise_calls(shape: ConvShape, out: View, filters: View) -> list[Call]:
    """Pack a view ``[c, 1, r, s]`` as `pack_depthwise` does, into contiguous ``[blocks, taps, lanes]``."""
    if filters.shape != (shape.c, 1, *shape.window.kernel):
        raise ValueError(f"filters of shape {filters.shape} do not fit {shape}")
    (r, s), lanes, item = shape.window.kernel, shape.lanes, out.itemsize
    whole, rest = divmod(shape.c, lanes)
    step, _, *taps = filters.strides
    calls = fill_calls(shape.target, out, 0) if rest else []
    for first, blocks, count in ((0, whole, lanes), (whole, 1, rest)):
        to_strides = (r * s * lanes * item, item, s * lanes * item, lanes * item)
        to = View(out.at + first * to_strides[0], (blocks, count, r, s), to_strides, out.dtype)
        some = View(filters.at + first * lanes * step, to.shape, (lanes * step, step, *taps), filters.dtype)
        calls += copy_calls(shape.target, to, some)
    return calls


def pack_call(
    shape: ConvShape,
    out: Pointer,
    filters: Pointer,
    channels: np.ndarray,
    taps: np.ndarray,
    steps: tuple[int, int, int],
) -> KernelCalls:
    tables = table(channels), table(taps), table([first * shape.lanes for first in shape.panel_blocks[0]])
    group, k_step, c_step = steps
    tasks = shape.panels * len(shape.steps)
    call = PACK.call(
        (shape.dtype, shape.unroll, shape.panel_channels),
        tasks, chunk_of(tasks, shape.unroll * shape.panel_channels * 1.5),
        channels=Pointer(tables[0]), taps=Pointer(tables[1]), steps=len(shape.steps),
        panel_channels=Pointer(tables[2]), f=filters, group=group, k_step=k_step, c_step=c_step,
        k=shape.k, k_per_group=shape.k // shape.groups, c_per_group=shape.c // shape.groups, out=out,
    )  # fmt: skip
    return KernelCalls((call,), tables)
