"""Products on tile registers; strides in bytes on the left side, in elements of the result elsewhere."""

from cgraph.kernels.activation.signature import ACTIVATION
from cgraph.kernels.conv8.signature import BYTES as BYTE_BOUNDS
from cgraph.kernels.conv8.signature import JOINED
from cgraph.kernels.signature import Signature

TILES = 8  # registers
BYTES = 64  # of a row of a register
STEP = 32  # bfloat16 numbers of a row of a register
COLUMNS = 16  # of a right side, and of sums
TILE_NBYTES = 1024
ACROSS = 2  # tiles of columns in a panel

PRODUCT = {
    "config": "u1*", "steps": "i8",
    # x: rows of whole steps; bytes from one matrix, from one row and from one step to the next
    "x": "u1*", "x_image": "i8", "x_step": "i8", "x_apart": "i8",
    # panels of `ACROSS` tiles for each step; bytes from those of one matrix and from one panel to the next
    "w": "u1*", "w_image": "i8", "w_panel": "i8",
    # of each tile: its first row, and the first of its rows that it stores
    "tiles": "i8*",
    # out: elements from one matrix and from one row to the next; columns of the result
    "out": "result*", "o_image": "i8", "o_step": "i8", "channels": "i8",
    # groups of tiles, in blocks over which all panels pass
    "groups": "i8", "block": "i8", "blocks": "i8", "panels": "i8",
}  # fmt: skip
TILE = ("group", "height", "ahead", "result")
OF_BYTES = Signature(
    "tile_products.of_bytes",
    (*TILE, "fixed", "joins"),
    {
        **PRODUCT,
        # bias: int32 for each column; scale: float32; of a fixed result int32, followed after so many elements by its
        # shifts
        "bias": "i4*", "scale": "f4*", "shifts": "i8",
        **BYTE_BOUNDS,
        **JOINED,
    },
)  # fmt: skip
OF_NUMBERS = Signature(
    "tile_products.of_numbers",
    TILE,
    {
        **PRODUCT,
        # numbers that are added: elements from one matrix and from one row to the next
        "beside": "address?", "beside_image": "i8", "beside_step": "i8",
        **ACTIVATION,
    },
)  # fmt: skip
ROUND_ROWS = Signature(
    "tile_products.round_rows",
    (),
    {
        # rows of float32 numbers; of all matrices `count` rows, `each` in a task
        "x": "f4*", "x_image": "i8", "x_row": "i8", "columns": "i8", "rows": "i8", "count": "i8", "each": "i8",
        # bfloat16 numbers: the rows' first steps side by side, then their second steps, up to the last one
        "out": "V2*", "o_image": "i8", "o_step": "i8",
    },
)  # fmt: skip
