"""Calls of depthwise convolution on plain images ``[n, c, h, w]`` of few channels."""

from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.depthwise.plain_signature import WINDOW
from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.pool.calls import inner_columns, power_below, tables_of
from cgraph.kernels.target import Target
from cgraph.kernels.views.image_views import planes_of
from cgraph.kernels.views.kernel_calls import KernelCalls, chunk_of
from cgraph.kernels.views.row_bands import band_of, banded_tasks
from cgraph.kernels.views.timing import tile_ns
from cgraph.kernels.views.window import Window

MOST_STEP = 4  # loads of an image for a vector of taps
VECTORS = 2  # of columns, which share each weight


def plain_depthwise_calls(
    target: Target,
    out: View,
    x: View,
    weights: Pointer,
    bias: Pointer,
    window: Window,
    activation: BoundedActivation = NONE,
) -> KernelCalls:
    """Compute ``out[n, c] = activation(conv(x[n, c], filters[c]) + bias[c])``

    Operands
        out, x: plain views with contiguous columns
        weights, bias: filters ``[c, r, s]`` and a number for each channel, of the dtype of `x`
    """
    to, source = planes_of(out), planes_of(x)
    tables = tables_of(to, source, window)
    inner, stop = inner_columns(tables[1], window)
    if window.stride[1] > MOST_STEP or source.column != 1 or to.column != 1:
        inner = stop = 0
    across = power_below(max(1, min(VECTORS * target.lanes_of(x.dtype), stop - inner)))
    band = band_of(to.rows, to.columns)
    tasks = banded_tasks(to.n, to.count, to.rows, band)
    (r, s), (_, step) = window.kernel, window.stride
    call = WINDOW.call(
        (x.dtype, across, step), tasks, chunk_of(tasks, tile_ns(target, to.columns * window.taps) / across),
        row_table=Pointer(tables[0]), column_table=Pointer(tables[1]),
        x=source.at, x_image=source.image, x_plane=source.plane,
        tap_row=source.row * window.dilation[0], tap_column=source.column * window.dilation[1],
        w=weights, bias=bias, kernel_rows=r, kernel_columns=s,
        out=to.at, o_image=to.image, o_plane=to.plane, o_row=to.row, o_column=to.column,
        inner=inner, inner_stop=stop, rows=to.rows, columns=to.columns, planes=to.count, band=band, **activation.args,
    )  # fmt: skip
    return KernelCalls((call,) if tasks else (), tables)
