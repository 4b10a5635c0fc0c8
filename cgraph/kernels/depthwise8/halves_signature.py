"""Depthwise convolution of bytes on processors that multiply halves of words without vectors; strides in elements."""

from cgraph.kernels.conv8.signature import BYTES, JOINED
from cgraph.kernels.signature import Signature

ROWS = Signature(
    "depthwise8.halves.rows",
    ("pixels", "s", "stride", "result", "fixed", "bounded", "clips", "joins", "is_rows", "joins_places"),
    {
        # x_row: from one row of the result to the next; tap_row: from one row of taps to the next; taps: their number
        "x": "u1*", "x_image": "i8", "x_plane": "i8", "x_row": "i8", "tap_row": "i8", "taps": "i8",
        "w": "i1*", "bias": "i4*", "scale": "f4*", "shifts": "i8",
        "out": "result*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_step": "i8", "channels": "i8",
        **BYTES,
        **JOINED,
        "blocks": "i8", "rows": "i8", "columns": "i8",
    },
)  # fmt: skip
