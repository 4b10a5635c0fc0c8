"""Pooling, its gradient, depthwise convolution and resizing in blocks of threads; strides in elements."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.signature import Args, Signature

THREADS = 128  # of a block; a thread computes one of `count` pixels of the result

RESULT: Args = {
    "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_column": "i8",
    "rows": "i8", "columns": "i8", "planes": "i8", "count": "i8",
}  # fmt: skip

# tables as in `pool.window`
POOL = Signature(
    "window.gpu.pool",
    ("dtype", "kind"),
    {
        "row_table": "i8*", "column_table": "i8*",
        "x": "dtype*", "x_image": "i8", "x_plane": "i8", "tap_row": "i8", "tap_column": "i8",
        **RESULT,
    },
)  # fmt: skip

DEPTHWISE = Signature(
    "window.gpu.depthwise",
    ("dtype", "biased"),
    {
        "x": "dtype*", "x_image": "i8", "x_plane": "i8", "x_row": "i8", "x_column": "i8",
        "tap_row": "i8", "tap_column": "i8",
        "w": "dtype*", "bias": "dtype*", "kernel_rows": "i8", "kernel_columns": "i8",
        **RESULT, **ACTIVATION,
    },
)  # fmt: skip

# places of largest elements: tables and `taps` as in `pool_indices`
INDICES = Signature(
    "window.gpu.indices",
    ("dtype",),
    {
        "row_table": "i8*", "column_table": "i8*", "taps": "i8",
        "x": "dtype*", "x_image": "i8", "x_plane": "i8", "tap_row": "i8", "tap_column": "i8",
        **RESULT, "out": "i4*",
    },
)  # fmt: skip

# a pixel of the images: the sum of `g` over the windows, p_rows by p_columns with r by s taps, whose place it is
SPREAD = Signature(
    "window.gpu.spread",
    ("dtype",),
    {
        "p": "i4*", "p_image": "i8", "p_plane": "i8", "p_row": "i8", "p_column": "i8",
        "g": "dtype*", "g_image": "i8", "g_plane": "i8", "g_row": "i8", "g_column": "i8",
        "p_rows": "i8", "p_columns": "i8", "r": "i8", "s": "i8",
        "down": "i8", "across": "i8", "top": "i8", "left": "i8", "tall": "i8", "wide": "i8",
        **RESULT,
    },
)  # fmt: skip

# tables and weights as in `resize`
SOURCE: Args = {"row_table": "i8*", "column_table": "i8*", "x": "dtype*", "x_image": "i8", "x_plane": "i8"}
NEAREST = Signature("window.gpu.nearest", ("dtype",), {**SOURCE, **RESULT})
LINEAR = Signature(
    "window.gpu.linear", ("dtype",), {**SOURCE, "row_weights": "dtype*", "column_weights": "dtype*", **RESULT}
)
