"""Convolution of bytes on processors that add up two products of 16 bits without vectors; strides in elements."""

from cgraph.kernels.conv8.signature import BYTES, JOINED
from cgraph.kernels.signature import Signature

ROWS = Signature(
    "conv8.halves.rows",
    (
        *("pixels", "pairs", "taps", "tap_step", "turns", "x_step"),
        *("result", "fixed", "bounded", "clips", "joins", "is_rows", "has_one_scale", "joins_places", "is_even"),
    ),
    {
        # moves: int32, bytes from the first tap of one turn to that of the next; `move` where they are even;
        # panel_offsets: to a panel's channels, of groups
        "moves": "address?", "move": "i8", "rounds": "i8", "panel_offsets": "address?",
        "x": "u1*", "x_image": "i8", "x_row": "i8", "w": "i1*", "w_panel": "i8", "bias": "i4*",
        # scale: float32; of a fixed result int32, followed after so many elements by its shifts; of a bounded one
        # those are bytes
        "scale": "f4*", "shifts": "i8",
        # o_step: from one pixel to the next; channels: of the result, counted where its pixels are rows of a matrix
        "out": "result*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_step": "i8", "channels": "i8",
        **BYTES,
        **JOINED,
        "panels": "i8", "rows": "i8", "columns": "i8",
    },
)  # fmt: skip
