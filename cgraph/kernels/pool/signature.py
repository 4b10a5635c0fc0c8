"""Pooling over windows; strides in elements."""

from cgraph.kernels.signature import Signature

WINDOW = Signature(
    "pool.window",
    # down, over: taps of windows whose code is not a loop, or 0
    ("dtype", "lanes", "across", "kind", "down", "over"),
    {
        # table rows: first tap, last tap, divisor, elements from the image's corner to the first tap
        "row_table": "i8*", "column_table": "i8*",
        # x_step: from a window to the next one
        "x": "dtype*", "x_image": "i8", "x_plane": "i8", "x_step": "i8", "tap_row": "i8", "tap_column": "i8",
        "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_column": "i8",
        # columns inner .. inner_stop have all taps across inside the image; vectors of columns lie there
        "inner": "i8", "inner_stop": "i8",
        "rows": "i8", "columns": "i8", "planes": "i8", "band": "i8",
    },
)  # fmt: skip
