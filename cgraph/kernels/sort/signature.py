"""Sorting of rows, binary search, distinct values."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.walk.signature import run

FEW = 32  # items of a row that are sorted as they are found
LEAST_ROOM = 128  # items of a buffer that collects the first ones of a row

# the first `most` items of each row are written; every group of `each` rows has `group_bytes` of scratch
MORE = {"most": "i8", "scratch": "address", "group_bytes": "i8"}
ARRAYS = ("values", "places", "x")
ROWS = run("sort.rows", ("dtype", "index", "descending", "wants_values"), ARRAYS, **MORE)
LEADING_ROWS = run("sort.leading_rows", ("dtype", "descending", "wants_values"), ARRAYS, **MORE)
FEW_ROWS = run("sort.few_rows", ("dtype", "descending", "wants_values"), ARRAYS, most="i8")

# an ascending row of n items, `row_step` bytes apart
SEARCH = run("sort.search", ("dtype", "right"), ("out", "v"), row="address", row_step="i8", n="i8")

DISTINCT = Signature(
    "sort.distinct",
    ("dtype",),
    {"out": "dtype*", "count": "i8*", "x": "dtype*", "n": "i8", "most": "i8"},
)
