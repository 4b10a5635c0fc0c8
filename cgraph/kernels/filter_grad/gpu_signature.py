"""The gradient of a convolution for its filters, in blocks of threads."""

from cgraph.kernels.signature import Signature

# a block: one tile of `k` filters by `size` taps of channels, over the `images` images of one part; tables have
# the offsets of pixels, and of taps of channels, in an image; results of a tap are contiguous for all filters
TILE = Signature(
    "filter_grad.gpu.tile",
    ("dtype", "lines"),
    {
        "k": "i8", "size": "i8", "pixels": "i8", "n": "i8", "images": "i8", "row_tiles": "i8", "column_tiles": "i8",
        "x": "dtype*", "x_image": "i8", "x_taps": "i8*", "x_pixels": "i4*",
        "g": "dtype*", "g_image": "i8", "g_plane": "i8", "g_pixels": "i4*",
        "out": "dtype*", "o_part": "i8",
    },
)  # fmt: skip
