"""Convolutions to few channels."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.signature import Signature

TILE = Signature(
    "conv.lanes.tile",
    ("dtype", "pixels", "channels", "x_step", "out_step", "program"),
    {
        # offsets: elements from a pixel to the block of channels of each step
        "offsets": "i8*", "steps": "i8",
        "x": "dtype*", "x_image": "i8", "x_row": "i8", "w": "dtype*", "bias": "dtype*",
        "residual": "address?", "r_image": "i8", "r_row": "i8",
        "out": "dtype*", "o_image": "i8", "o_row": "i8",
        # the grid: rows x columns pixels in `across` tiles a row, `tiles` in all
        "columns": "i8", "across": "i8", "tiles": "i8",
        **ACTIVATION,
    },
)  # fmt: skip
