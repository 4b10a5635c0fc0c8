"""Bytes for bytes by a table."""

from cgraph.kernels.signature import Signature

LOOK_UP = Signature(
    "table8.look_up",
    ("near",),  # bytes of a row lie side by side
    {
        # bytes from one row and column to the next; rows in `blocks` blocks of `block` columns
        "x": "u1*", "x_row": "i8", "x_step": "i8", "out": "u1*", "o_row": "i8", "o_step": "i8",
        "table": "u1*", "columns": "i8", "block": "i8", "blocks": "i8",
    },
)  # fmt: skip
