"""Products on tile registers; strides in bytes on the left side, in elements of the result elsewhere."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.conv8.signature import BYTES as BYTE_BOUNDS
from cgraph.kernels.conv8.signature import JOINED
from cgraph.kernels.signature import Signature

TILES = 8  # registers
BYTES = 64  # of a row of a register
COLUMNS = 16  # of a right side, and of sums
TILE_NBYTES = 1024
ACROSS = 2  # tiles of columns in a panel

PRODUCT = {
    "config": "u1*",
    # offsets: bytes from a pixel to its 64 bytes of each step; x_step: bytes from one pixel of a tile to the next
    "offsets": "i8*", "steps": "i8", "x": "u1*", "x_image": "i8", "x_step": "i8",
    # panels of `ACROSS` tiles for each step
    "w": "u1*", "w_image": "i8", "w_panel": "i8",
    # of each tile: bytes from an image to its first pixel, and the first of its pixels that it stores
    "tiles": "i8*",
    # of each tile: the places of 16 pixels in the result, and in what is added to it
    "numbers": "i4*", "beside_numbers": "i4*",
    # out: elements from one image, block of channels and place to the next; channels of the result
    "out": "result*", "o_image": "i8", "o_plane": "i8", "o_step": "i8", "channels": "i8",
    # groups of tiles, in blocks over which all panels pass
    "groups": "i8", "block": "i8", "blocks": "i8", "panels": "i8",
}  # fmt: skip
TILE = ("rows", "pixels", "lanes", "ahead", "result", "is_rows")
OF_BYTES = Signature(
    "tile_products.of_bytes",
    (*TILE, "fixed", "joins", "has_terms"),
    {
        **PRODUCT,
        # bias: int32 for each column; terms: for each pixel
        "bias": "i4*", "b_image": "i8", "terms": "address?", "t_image": "i8",
        # scale: float32; of a fixed result int32, followed after so many elements by its shifts
        "scale": "f4*", "shifts": "i8",
        **BYTE_BOUNDS,
        **JOINED,
    },
)  # fmt: skip
OF_NUMBERS = Signature(
    "tile_products.of_numbers",
    TILE,
    {
        **PRODUCT,
        # numbers that are added, of the result's dtype: for each place, each channel, or both
        "beside": "address?", "beside_image": "i8", "beside_plane": "i8", "beside_step": "i8",
        "bias": "f4*",
        **ACTIVATION,
    },
)  # fmt: skip
