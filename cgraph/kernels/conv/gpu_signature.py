"""Convolution as a product of matrices in blocks of threads: filters by the pixels of all images."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.signature import Args, Signature

RESULT: Args = {
    "bias": "dtype*",
    "residual": "dtype*", "r_image": "i8", "r_plane": "i8", "r_row": "i8", "r_step": "i8",
    "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_step": "i8",
    **ACTIVATION,
}  # fmt: skip

# a block: one tile of `lines` channels of a panel by `lines` pixels, of all images one after the other; where the sums
# are `cut`, over one of `parts` parts, `each` steps long, whose results lie `o_part` elements apart; bias and residual
# are read where `biased` and `added`; everything else as in `conv.tile`
TILE = Signature(
    "conv.gpu.tile",
    ("dtype", "lines", "biased", "added", "cut"),
    {
        "offsets": "i4*", "steps": "i8", "parts": "i8", "each": "i8", "panel_offsets": "i8*",
        "x": "dtype*", "x_image": "i8", "x_row": "i8", "x_step": "i8",
        "w": "dtype*", "w_panel": "i8", "o_part": "i8",
        "channels": "i8", "pixels": "i8", "rows": "i8", "columns": "i8", "channel_tiles": "i8", "pixel_tiles": "i8",
        **RESULT,
    },
)  # fmt: skip

# a thread: one result, the sum of `parts` partial sums that lie `size` elements apart, pixels of a channel side by side
JOIN = Signature(
    "conv.gpu.join",
    ("dtype", "biased", "added"),
    {"size": "i8", "parts": "i8", "x": "dtype*", "pixels": "i8", "rows": "i8", "columns": "i8", **RESULT},
)
