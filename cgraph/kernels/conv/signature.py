"""Direct convolution by register tiles."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.signature import Signature

TILE = Signature(
    "conv.tile",
    (
        "dtype", "pixels", "vectors", "unroll", "x_step", "out_step", "ahead", "touch", "early", "weights_dtype",
        "chain", "is_mixed", "program",
    ),
    {
        # offsets: elements from a pixel to its `unroll` operands, then `early` entries of the next tile's, counted from
        # this one; panel_offsets: from the image to a panel's channels
        "offsets": "i8*", "steps": "i8", "panel_offsets": "i8*",
        "x": "dtype*", "x_image": "i8", "x_row": "i8",
        "w": "weights_dtype*", "w_image": "i8", "w_panel": "i8", "bias": "dtype*",
        # panels before those that have one block fewer, and the weights of a block
        "wide": "i8", "w_block": "i8",
        "residual": "address?", "r_image": "i8", "r_plane": "i8", "r_row": "i8",
        "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8",
        # the grid: rows x columns pixels in `across` tiles a row, `tiles` in all, in blocks of `block`; panels of
        # channels
        "columns": "i8", "across": "i8", "tiles": "i8", "block": "i8", "panels": "i8",
        # blocks of an image come one after another (turns: their number), or images of a block (turns: the images)
        "turns": "i8", "by_block": "i8",
        **ACTIVATION,
    },
)  # fmt: skip
