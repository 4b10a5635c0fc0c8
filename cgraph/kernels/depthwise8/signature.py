"""Depthwise convolution of bytes; strides in elements."""

from cgraph.kernels.conv8.signature import BYTES, JOINED
from cgraph.kernels.signature import Signature

ROWS = Signature(
    "depthwise8.rows",
    ("pixels", "r", "s", "stride", "result", "fixed", "joins", "is_rows"),
    {
        # x_row: from one row of the result to the next; tap_row: from one row of taps to the next
        "x": "u1*", "x_image": "i8", "x_plane": "i8", "x_row": "i8", "tap_row": "i8",
        "w": "i1*", "bias": "i4*", "scale": "f4*", "shifts": "i8",
        "out": "result*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_step": "i8",
        **BYTES,
        **JOINED,
        "rows": "i8", "columns": "i8", "blocks": "i8", "band": "i8",
    },
)  # fmt: skip
