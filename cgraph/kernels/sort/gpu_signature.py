"""Sorting of rows in shared memory, and of longer ones by merging; strides are bytes."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.sort.signature import DISTINCT as BY_TASKS
from cgraph.kernels.team.gpu_signature import elements
from cgraph.kernels.walk.signature import axes

THREADS = 256  # of a block
SIZES = (64, 512, 4096)  # items, with their places, of the longest row that a kernel sorts

# a block: one of `pieces` pieces, `size` items each, of a row of `n`; writes the first `most` values and indices
# (if `index` is a dtype)
ROWS = Signature(
    "sort.gpu.rows",
    ("dtype", "index", "descending", "wants_values", "size", "rank"),
    {
        "n": "i8", "most": "i8", "pieces": "i8",
        "values": "address", "values_n": "i8", "places": "address", "places_n": "i8",
        "x": "address", "x_n": "i8", "axes": axes("rank", lambda _: 3),
    },
)  # fmt: skip

# a thread: one item of sorted pieces of `width` items, two of which become one; keys and int32 numbers lie row by row
MERGE = Signature(
    "sort.gpu.merge",
    ("dtype", "index", "descending", "wants_values", "rank"),
    elements(
        "values", "places", keys="dtype*", numbers="i4*",
        n="i8", width="i8", most="i8", values_n="i8", places_n="i8",
    ),
)  # fmt: skip

SEARCH = Signature(
    "sort.gpu.search", ("dtype", "right", "rank"), elements("out", "v", row="address", row_step="i8", n="i8")
)

# one block
DISTINCT = Signature("sort.gpu.distinct", BY_TASKS.params, BY_TASKS.args)
