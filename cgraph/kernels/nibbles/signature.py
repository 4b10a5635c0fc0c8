"""Products with a matrix of 4-bit numbers."""

from cgraph.kernels.signature import Signature

TILE = Signature(
    "nibbles.tile",
    ("rows", "columns", "block", "lanes"),
    {
        "m": "i8", "n": "i8", "blocks": "i8",
        # x: a row's even elements, `half` further its odd ones, `x_row` further the next row
        "x": "f4*", "x_row": "i8", "half": "i8",
        # of each column: bytes of two numbers along k, and a scale and a zero point for each block
        "y": "u1*", "scales": "f4*", "zeros": "u1*",
        "out": "f4*",
    },
)  # fmt: skip

FLOATS = Signature(
    "nibbles.floats",
    ("block", "lanes"),
    # y, scales, zeros: as for `tile`; out: of each column its even elements, then its odd ones
    {"blocks": "i8", "y": "u1*", "scales": "f4*", "zeros": "u1*", "out": "f4*"},
)
