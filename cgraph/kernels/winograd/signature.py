"""The transforms of Winograd convolution; strides in elements."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.signature import Signature

# tiles first .. first + count of all; `across` in a row, `per_image` in an image, `band` in a band
GRID = {
    "first": "i8", "count": "i8", "across": "i8", "per_image": "i8", "blocks": "i8", "band": "i8",
    # with dilation: tiles of a phase, and pixels from one pixel of a tile to the next
    "per_phase": "i8", "row_step": "i8", "column_step": "i8",
}  # fmt: skip

INPUT_TRANSFORM = Signature(
    "winograd.input_transform",
    ("dtype", "m", "is_dilated"),
    {
        **GRID,
        # x: the first pixel; bounds of readable memory around it, zero halo included, and of the image
        "x": "dtype*", "x_image": "i8", "x_plane": "i8", "x_row": "i8", "top": "i8", "left": "i8",
        "low_row": "i8", "high_row": "i8", "low_column": "i8", "high_column": "i8", "h": "i8", "w": "i8",
        "v": "dtype*", "v_xi": "i8", "v_block": "i8",
    },
)  # fmt: skip

OUTPUT_TRANSFORM = Signature(
    "winograd.output_transform",
    ("dtype", "m", "is_dilated", "program"),
    {
        **GRID,
        "products": "dtype*", "p_xi": "i8", "p_block": "i8", "bias": "dtype*",
        "residual": "address?", "r_image": "i8", "r_plane": "i8", "r_row": "i8",
        "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "h": "i8", "w": "i8",
        **ACTIVATION,
    },
)  # fmt: skip
