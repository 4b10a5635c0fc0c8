"""Signature of attention on tile registers; strides of rounded keys and values are in bytes."""

from cgraph.kernels.attention.signature import ARGS
from cgraph.kernels.signature import Signature

BLOCK = 128  # keys of a block: whole steps of both products
BANDS = Signature(
    "tile_attention.bands",
    ("dtype", "vectors", "mask", "spread", "rule"),
    {
        **ARGS,
        "config": "u1*",
        # keys: rows of `depth` steps of 32 numbers; values: a row for each column of them, `BLOCK` numbers for a block
        "keys": "u1*", "key_head": "i8", "key_row": "i8", "depth": "i8",
        "values": "u1*", "value_head": "i8", "value_row": "i8",
    },
)  # fmt: skip
