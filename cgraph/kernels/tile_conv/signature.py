"""Convolutions on tile registers; strides in bytes on the image's side, in elements of the result elsewhere."""

from cgraph.dtypes.storage import BFLOAT16
from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.conv8.signature import BYTES, JOINED
from cgraph.kernels.signature import Signature

NUMBER = BFLOAT16.code  # dtype of images that tiles read
CHANNELS = 32  # of a block of such images
PRODUCT = {
    "config": "u1*",
    # offsets: bytes from a pixel to the 64 bytes of each step
    "offsets": "i8*", "steps": "i8",
    # x: the first pixel that an image reads; bytes from one image, and from one pixel of a tile, to the next
    "x": "u1*", "x_image": "i8", "x_step": "i8",
    # panels of two tiles for each step, the same for all images
    "w": "u1*", "w_image": "i8", "w_panel": "i8",
    # places: bytes from an image to the first pixel of each tile
    "places": "i8*",
    # numbers: elements from a block of channels to each of 16 pixels of each tile; below 0 for those that are not
    # stored. channels: of the result, up to its last block's end
    "numbers": "i4*", "out": "result*", "o_image": "i8", "o_plane": "i8", "channels": "i8",
    # the same of the residual; 0 channels without one
    "beside_numbers": "i4*", "b_image": "i8", "b_plane": "i8", "b_channels": "i8",
    # groups of tiles, in blocks over which all panels pass
    "groups": "i8", "block": "i8", "blocks": "i8", "panels": "i8",
}  # fmt: skip
OF_NUMBERS = Signature(
    "tile_conv.of_numbers",
    ("group", "height", "ahead", "result", "residual"),
    {**PRODUCT, "bias": "f4*", "beside": "address?", **ACTIVATION},
)
OF_BYTES = Signature(
    "tile_conv.of_bytes",
    ("group", "height", "ahead", "result", "lanes", "beside_lanes", "fixed", "joins"),
    {
        **PRODUCT,
        # bias: int32 for each channel; scale: float32; of a fixed result int32, followed after so many elements by its
        # shifts
        "bias": "i4*",
        "scale": "f4*",
        "shifts": "i8",
        **BYTES,
        **JOINED,
    },
)
JOIN_BLOCKS = Signature(
    "tile_conv.join_blocks",
    ("dtype", "result"),
    {
        # blocks of channels of x, as many as a vector of float32 has; those of out have 64 bytes
        "x": "dtype*", "x_image": "i8", "x_plane": "i8", "x_row": "i8", "x_blocks": "i8",
        "out": "result*", "o_image": "i8", "o_plane": "i8", "o_row": "i8",
        "rows": "i8", "columns": "i8", "planes": "i8", "band": "i8",
    },
)  # fmt: skip
ROUND_PIXELS = Signature(
    "tile_conv.round_pixels",
    ("channels",),
    {
        # planes of x, in float32; pixels of four bfloat16 numbers
        "x": "f4*", "x_image": "i8", "x_plane": "i8", "x_row": "i8",
        "out": "i8*", "o_image": "i8", "o_row": "i8",
        "rows": "i8", "columns": "i8", "planes": "i8", "band": "i8",
    },
)  # fmt: skip
PHASE_PIXELS = Signature(
    "tile_conv.phase_pixels",
    (),
    {
        # of each phase: its first row and column in an image, its rows and columns
        "phases": "i8*", "blocks": "i8",
        # bytes from one image, block, row, row of a phase, and pixel of a phase to the next
        "x": "u1*", "x_image": "i8", "x_plane": "i8", "x_row": "i8", "x_down": "i8", "x_step": "i8",
        "out": "u1*", "o_image": "i8", "o_plane": "i8", "o_row": "i8",
        # rows of each result; blocks of all phases
        "rows": "i8", "planes": "i8", "band": "i8",
    },
)  # fmt: skip
