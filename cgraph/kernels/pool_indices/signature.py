"""Max pooling's gradient; strides in elements."""

from cgraph.kernels.signature import Signature

WINDOWS = {
    # table rows: first tap, last tap (excluded), unused, elements from the image's corner to the first tap; `taps` of
    # a window's row
    "row_table": "i8*", "column_table": "i8*", "taps": "i8",
    "x": "dtype*", "x_image": "i8", "x_plane": "i8", "tap_row": "i8", "tap_column": "i8",
    "p": "i4*", "p_image": "i8", "p_plane": "i8", "p_row": "i8", "p_column": "i8",
    "rows": "i8", "columns": "i8", "planes": "i8",
}  # fmt: skip
INDICES = Signature("pool_indices.indices", ("dtype", "is_blocked"), WINDOWS)

SPREAD_BLOCKED = Signature(
    "pool_indices.spread_blocked",
    ("dtype",),
    {
        **WINDOWS,
        "g": "dtype*", "g_image": "i8", "g_plane": "i8", "g_row": "i8",
        "height": "i8", "width": "i8", "x_row": "i8",
    },
)  # fmt: skip

SPREAD = Signature(
    "pool_indices.spread",
    ("dtype",),
    {
        # images h x w, windows rows x columns, a window's taps r x s
        "places": "i4*", "g": "dtype*", "out": "dtype*",
        "h": "i8", "w": "i8", "rows": "i8", "columns": "i8", "r": "i8", "s": "i8",
        "down": "i8", "across": "i8", "top": "i8", "left": "i8", "tall": "i8", "wide": "i8",
    },
)  # fmt: skip
