"""Depthwise convolution of bytes by 3 x 3 filters, by planes of unpacked rows; strides in elements."""

from cgraph.kernels.conv8.signature import BYTES
from cgraph.kernels.signature import Signature

BLOCKS = Signature(
    "depthwise8.planes.blocks",
    ("room", "stride", "is_odd", "fixed", "clips", "joins_places"),
    {
        # width: columns of x that are read; down: rows of x from one row of the result to the next, at most 3
        "x": "u1*", "x_image": "i8", "x_plane": "i8", "tap_row": "i8", "width": "i8", "down": "i8",
        # scale: int32, followed after so many elements by its shifts as bytes
        "w": "i1*", "bias": "i4*", "scale": "i4*", "shifts": "i8",
        # o_step: from one pixel to the next
        "out": "u1*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_step": "i8",
        **BYTES,
        "blocks": "i8", "rows": "i8", "columns": "i8",
    },
)  # fmt: skip
