"""Copies and fills; strides are bytes."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.walk.signature import axes, run

RUNS = run("move.runs", ("itemsize", "stream"), ("out", "x"))
FILLS = run("move.fills", ("itemsize", "stream"), ("out", "x"))
BACKWARD = run("move.backward", ("itemsize",), ("out", "x"))
STRIDED = run("move.strided", ("itemsize",), ("out", "x"))

# `count` runs that alternate item by item, in `out` (zips) or in `x` (unzips); bytes from one run to the next
ZIPS = run("move.zips", ("itemsize", "count", "lanes"), ("out", "x"), apart="i8")
UNZIPS = run("move.unzips", ("itemsize", "count", "lanes"), ("out", "x"), apart="i8")

# contiguous bytes, which may overlap; one task
OVERLAPPING = Signature("move.overlapping", (), {"out": "u1*", "x": "u1*", "nbytes": "i8"})

TILES = Signature(
    "move.tiles",
    ("itemsize", "lanes"),
    {
        # matrices of ni x nj items, cut both ways; `each` of all `rows` matrices to a task
        "out": "u1*", "x": "u1*", "ni": "i8", "nj": "i8", "out_j": "i8", "x_i": "i8",
        "block_i": "i8", "blocks_i": "i8", "block_j": "i8", "blocks_j": "i8", "each": "i8", "rows": "i8",
        "rank": "i8", "axes": axes("rank", lambda _: 2),
    },
)  # fmt: skip
