"""Convolution of bytes by register tiles; strides in elements."""

from typing import Any

from cgraph.kernels.signature import Signature

# of a sum as a byte: its zero point and bounds
BYTES = {"zero": "i8", "low": "i8", "high": "i8"}
RATIOS = ("ratio", "r_ratio", "offset")  # of `cgraph.kernels.conv8.join_ratios`
# of a sum that is a byte first, between bounds counted from its zero point, then times `first`; plus a residual less
# its zero point times `beside`; divided by `last`, whose inverse is passed: a byte again. Or by ratios
JOINED = {
    "first": "f8", "first_low": "f8", "first_high": "f8",
    "residual": "address?", "r_image": "i8", "r_plane": "i8", "r_row": "i8", "beside": "f8", "r_zero": "f8",
    "last": "f8", "inverse": "f8", **dict.fromkeys(RATIOS, "f8"),
}  # fmt: skip
TILE = Signature(
    "conv8.tile",
    ("pixels", "vectors", "unroll", "x_step", "result", "fixed", "joins", "is_rows", "has_terms", "ahead"),
    {
        # offsets: bytes from a pixel to its `unroll` operands; panel_offsets: from the image to a panel's channels
        "offsets": "i8*", "steps": "i8", "panel_offsets": "i8*",
        "x": "u1*", "x_image": "i8", "x_row": "i8", "w": "i1*", "w_panel": "i8", "bias": "i4*",
        # from the weights and the bias of one image to those of the next; the numbers added to the sums of each pixel
        "w_image": "i8", "b_image": "i8", "terms": "address?",
        # scale: float32; of a fixed result int32, followed after so many elements by its shifts
        "scale": "f4*", "shifts": "i8",
        # o_step: from one pixel to the next; channels: of the result, counted where its pixels are rows of a matrix
        "out": "result*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_step": "i8", "channels": "i8",
        **BYTES,
        **JOINED,
        # the grid: rows x columns pixels in `across` tiles a row, `tiles` in all, in blocks of `block`; panels
        "columns": "i8", "across": "i8", "tiles": "i8", "block": "i8", "panels": "i8",
        # blocks of an image come one after another (turns: their number), or images of a block (turns: the images)
        "turns": "i8", "by_block": "i8",
    },
)  # fmt: skip


PLACE_BITS = 5  # of an initial sum, where its low bits are the places


def places_of(shift: Any, once: bool) -> Any:
    """Return the places by which the upper word of a product with a factor is shifted, or the shift of these places."""
    return -1 - shift if once else -shift
