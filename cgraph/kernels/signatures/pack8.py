"""Rows of bytes put in lanes."""

from cgraph.kernels.signature import Signature

ROWS = Signature(
    "pack8.rows",
    (),
    {
        # rows of k bytes, a step apart; the result's bytes from one block of columns to the next
        "x": "u1*", "x_row": "i8", "out": "u1*", "o_plane": "i8", "k": "i8", "blocks": "i8",
    },
)  # fmt: skip
