"""Calls of pooling, its gradient, depthwise convolution and resizing in blocks of a GPU's threads."""

from collections.abc import Sequence

import numpy as np

from cgraph.kernels.activation.calls import BoundedActivation
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.team.gpu_calls import MOST_ELEMENTS
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.image_views import Planes, planes_of
from cgraph.kernels.views.kernel_calls import KernelCalls
from cgraph.kernels.views.window import Window
from cgraph.kernels.window.gpu_signature import DEPTHWISE, INDICES, LINEAR, NEAREST, POOL, SPREAD, THREADS


def result(to: Planes) -> dict[str, int | Pointer]:
    """Return the arguments that describe the result."""
    return {
        "out": to.at, "o_image": to.image, "o_plane": to.plane, "o_row": to.row, "o_column": to.column,
        "rows": to.rows, "columns": to.columns, "planes": to.count, "count": pixels(to),
    }  # fmt: skip


def pixels(to: Planes) -> int:
    return to.n * to.count * to.rows * to.columns


def pool_calls(
    dtype: str, to: Planes, source: Planes, window: Window, kind: str, tables: list[np.ndarray]
) -> KernelCalls | None:
    """As `cgraph.kernels.pool.calls.pool_calls`, with its tables; None if there are too many pixels for threads."""
    if pixels(to) >= MOST_ELEMENTS:
        return None
    call = POOL.call(
        (dtype, kind), -(-pixels(to) // THREADS),
        row_table=Pointer(tables[0]), column_table=Pointer(tables[1]),
        x=source.at, x_image=source.image, x_plane=source.plane,
        tap_row=source.row * window.dilation[0], tap_column=source.column * window.dilation[1],
        **result(to),
    )  # fmt: skip
    return KernelCalls((call,) if call.tasks else (), tuple(tables))


def place_calls(
    dtype: str, to: Planes, source: Planes, window: Window, tables: tuple[np.ndarray, np.ndarray]
) -> KernelCalls | None:
    """As `pool_indices.place_calls`, with its tables; None if there are too many pixels for threads."""
    if pixels(to) >= MOST_ELEMENTS:
        return None
    call = INDICES.call(
        (dtype,), -(-pixels(to) // THREADS),
        row_table=Pointer(tables[0]), column_table=Pointer(tables[1]), taps=window.kernel[1],
        x=source.at, x_image=source.image, x_plane=source.plane,
        tap_row=source.row * window.dilation[0], tap_column=source.column * window.dilation[1],
        **result(to),
    )  # fmt: skip
    return KernelCalls((call,) if call.tasks else (), tables)


def spread_calls(dtype: str, to: Planes, places: Planes, g: Planes, window: Window) -> KernelCalls | None:
    """Sum the elements `g` at their indices; None if there are too many pixels for threads."""
    if pixels(to) >= MOST_ELEMENTS:
        return None
    (r, s), (down, across), (tall, wide) = window.kernel, window.stride, window.dilation
    call = SPREAD.call(
        (dtype,), -(-pixels(to) // THREADS),
        p=places.at, p_image=places.image, p_plane=places.plane, p_row=places.row, p_column=places.column,
        g=g.at, g_image=g.image, g_plane=g.plane, g_row=g.row, g_column=g.column,
        p_rows=places.rows, p_columns=places.columns, r=r, s=s, down=down, across=across,
        top=window.pad[0], left=window.pad[1], tall=tall, wide=wide, **result(to),
    )  # fmt: skip
    return KernelCalls((call,) if call.tasks else ())


def resize_calls(
    dtype: str, to: Planes, source: Planes, tables: tuple[np.ndarray, np.ndarray], weights: Sequence[np.ndarray]
) -> KernelCalls | None:
    """As `cgraph.kernels.resize.calls.resize_calls`; None if there are too many pixels for threads."""
    if pixels(to) >= MOST_ELEMENTS:
        return None
    call = (LINEAR if weights else NEAREST).call(
        (dtype,), -(-pixels(to) // THREADS),
        row_table=Pointer(tables[0]), column_table=Pointer(tables[1]),
        x=source.at, x_image=source.image, x_plane=source.plane,
        **dict(zip(("row_weights", "column_weights"), map(Pointer, weights))), **result(to),
    )  # fmt: skip
    return KernelCalls((call,) if call.tasks else (), (*tables, *weights))


def depthwise_calls(
    shape: ConvShape,
    out: BlockedView,
    x: BlockedView,
    weights: Pointer,
    bias: Pointer | None,
    activation: BoundedActivation,
) -> KernelCalls | None:
    """As `cgraph.kernels.depthwise.calls.depthwise_calls`; None if there are too many pixels for threads."""
    to, window = planes_of(out), shape.window
    if pixels(to) >= MOST_ELEMENTS:
        return None
    (r, s), (down, across), (tall, wide) = window.kernel, window.stride, window.dilation
    call = DEPTHWISE.call(
        (shape.dtype, bias is not None), -(-pixels(to) // THREADS),
        x=x.pixel(-window.pad[0], -window.pad[1]), x_image=x.image, x_plane=x.plane,
        x_row=x.row * down, x_column=x.lanes * across, tap_row=x.row * tall, tap_column=x.lanes * wide,
        w=weights, bias=bias or weights, kernel_rows=r, kernel_columns=s, **result(to), **activation.args,
    )  # fmt: skip
    return KernelCalls((call,) if call.tasks else ())
