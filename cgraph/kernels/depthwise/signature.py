"""Depthwise convolution on channel-blocked images."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.signature import Signature

# dtype: of the images; weights_dtype: of the filters, and of the arithmetic
ARGS = {
    "x": "dtype*", "x_image": "i8", "x_plane": "i8", "x_row": "i8", "tap_row": "i8", "tap_column": "i8",
    "w": "weights_dtype*", "bias": "weights_dtype*", "kernel_rows": "i8", "kernel_columns": "i8",
    "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8",
    "rows": "i8", "columns": "i8", "blocks": "i8", "band": "i8",
    **ACTIVATION,
}  # fmt: skip
SMALL = Signature(
    "depthwise.small", ("dtype", "weights_dtype", "pixels", "r", "s", "stride", "dilation", "program"), ARGS
)
LINES = Signature("depthwise.lines", ("dtype", "weights_dtype", "pixels", "s", "stride", "dilation", "program"), ARGS)
TAPS = Signature("depthwise.taps", ("dtype", "weights_dtype", "pixels", "stride", "program"), ARGS)
