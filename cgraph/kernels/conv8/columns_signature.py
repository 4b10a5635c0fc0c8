"""Convolution of bytes by unpacked pixels on processors that add up two products of 16 bits; strides in elements."""

from cgraph.kernels.conv8.signature import BYTES
from cgraph.kernels.signature import Signature

NUMBERS = 4  # of two channels: initial sums, with places by which products are shifted in their low bits, and factors
ROWS = Signature(
    "conv8.columns.rows",
    ("room", "taps", "tap_step", "turns", "x_step", "fixed", "clips", "is_rows", "is_even"),
    {
        # moves: int32, bytes from the first tap of one group of taps to that of the next, `groups` in all; `move` where
        # they are even; rounds of `turns` words of a pixel
        "moves": "address?", "move": "i8", "groups": "i8", "rounds": "i8",
        "x": "u1*", "x_image": "i8", "x_row": "i8", "w": "i4*",
        # int32 of every two channels, in the order of the weights: initial sums with places, and factors
        "numbers": "i4*",
        # o_step: from one pixel to the next; channels: of the result, counted where its pixels are rows of a matrix
        "out": "u1*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_step": "i8", "channels": "i8",
        **BYTES,
        # the grid of pixels, in strips of one or two rows
        "panels": "i8", "rows": "i8", "columns": "i8", "height": "i8", "strips": "i8",
    },
)  # fmt: skip
