"""Depthwise convolution on plain images; strides in elements."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.signature import Signature

# across: columns of a vector; step: columns of the image from one window of a vector to the next
WINDOW = Signature(
    "depthwise.plain.window",
    ("dtype", "across", "step"),
    {
        # table rows: first tap, last tap, unused, elements from the image's corner to the first tap
        "row_table": "i8*", "column_table": "i8*",
        "x": "dtype*", "x_image": "i8", "x_plane": "i8", "tap_row": "i8", "tap_column": "i8",
        "w": "dtype*", "bias": "dtype*", "kernel_rows": "i8", "kernel_columns": "i8",
        "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_column": "i8",
        # columns inner .. inner_stop have all taps inside the image; vectors of columns lie there
        "inner": "i8", "inner_stop": "i8",
        "rows": "i8", "columns": "i8", "planes": "i8", "band": "i8",
        **ACTIVATION,
    },
)  # fmt: skip
