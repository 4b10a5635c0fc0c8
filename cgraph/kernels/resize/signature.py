"""Resizing images by tables of rows and columns, and rows by weights of neighbours; strides in elements."""

from cgraph.kernels.signature import Signature

ARGS = {
    "x": "dtype*", "x_image": "i8", "x_plane": "i8",
    "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_column": "i8",
    "rows": "i8", "columns": "i8", "planes": "i8",
}  # fmt: skip
# tables hold element offsets: of the row (column) to read, for `linear` two of them; weights those of the second
NEAREST = Signature("resize.nearest", ("dtype", "is_blocked"), {"row_table": "i8*", "column_table": "i8*", **ARGS})
LINEAR = Signature(
    "resize.linear",
    ("dtype", "is_blocked"),
    {"row_table": "i8*", "column_table": "i8*", "row_weights": "dtype*", "column_weights": "dtype*", **ARGS},
)
# the first of `taps` rows that each result reads, and their weights [rows, taps]
WEIGHTED = Signature(
    "resize.weighted",
    ("dtype",),
    {
        "first": "i8*", "weights": "dtype*", "taps": "i8",
        "x": "dtype*", "x_plane": "i8", "x_row": "i8", "out": "dtype*", "o_plane": "i8", "o_row": "i8",
        "rows": "i8", "width": "i8",
    },
)  # fmt: skip
