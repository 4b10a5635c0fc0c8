"""Depthwise convolution on channel-blocked images."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.signature import Signature

ARGS = {
    "x": "dtype*", "x_image": "i8", "x_plane": "i8", "x_row": "i8", "tap_row": "i8", "tap_column": "i8",
    "w": "dtype*", "bias": "dtype*", "kernel_rows": "i8", "kernel_columns": "i8",
    "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8",
    "rows": "i8", "columns": "i8", "blocks": "i8", "band": "i8",
    **ACTIVATION,
}  # fmt: skip
SMALL = Signature("depthwise.small", ("dtype", "pixels", "r", "s", "stride", "dilation"), ARGS)
LINES = Signature("depthwise.lines", ("dtype", "pixels", "s", "stride", "dilation"), ARGS)
TAPS = Signature("depthwise.taps", ("dtype", "pixels", "stride"), ARGS)
