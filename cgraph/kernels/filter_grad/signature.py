"""The gradient of a convolution for its filters."""

from cgraph.kernels.signature import Signature

TILE = Signature(
    "filter_grad.tile",
    ("dtype", "rows", "taps", "channels", "vectors", "x_step", "tap_step", "is_plain", "pairs"),
    {
        # x_tiles: elements from an image to the first channel of each tile; x_row: from one result row to the next
        "x": "dtype*", "x_tiles": "i8*", "x_image": "i8", "x_row": "i8", "x_channel": "i8", "tap_row": "i8",
        "g": "dtype*", "g_image": "i8", "g_plane": "i8", "g_row": "i8",
        "out": "dtype*", "o_part": "i8", "o_channel": "i8", "o_row": "i8", "o_tap": "i8",
        "n": "i8", "images": "i8", "g_rows": "i8", "g_columns": "i8",
        "filter_tiles": "i8", "channel_tiles": "i8", "row_tiles": "i8", "tap_tiles": "i8",
    },
)  # fmt: skip
