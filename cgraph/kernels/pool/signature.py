"""Pooling over windows of images and of volumes; strides in elements."""

from cgraph.kernels.signature import Args, Signature

# `lanes`: channels of a block; 0 for plain views. `across`: columns of a vector; 0 for one column at a time. `step`:
# columns of the image from one window of a vector to the next.
PARAMETERS = ("dtype", "lanes", "across", "step", "kind")

SPAN = 1024  # elements of columns that a sweep keeps on the stack

PLANES: Args = {
    # table rows: first tap, last tap, divisor, elements from the image's corner to the first tap
    "row_table": "i8*", "column_table": "i8*",
    "x": "dtype*", "x_image": "i8", "x_plane": "i8", "tap_row": "i8", "tap_column": "i8",
    "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_column": "i8",
    # columns inner .. inner_stop have all taps inside the image; vectors of columns lie there
    "inner": "i8", "inner_stop": "i8",
    "rows": "i8", "columns": "i8", "planes": "i8",
}  # fmt: skip

FRAMES: Args = {"frame_table": "i8*", "tap_frame": "i8", "o_frame": "i8", "frames": "i8"}

WINDOW = Signature(
    "pool.window",
    # down, over: taps of windows of blocks whose code is not a loop, or 0
    (*PARAMETERS, "down", "over"),
    {**PLANES, "band": "i8", "x_step": "i8"},  # x_step: elements from a window to the next one
)
VOLUME = Signature("pool.volume", PARAMETERS, {**PLANES, **FRAMES})
SWEEP = Signature(
    "pool.sweep",
    ("dtype", "down", "across", "step", "kind"),  # `down`: columns of a vector of sums along the other axes
    {
        **PLANES, **FRAMES,
        "column_counts": "i4*",  # the divisors of `column_table`
        # taps along a row, columns from one window to the next, columns before the image, columns of the image
        "taps": "i8", "stride": "i8", "left": "i8", "width": "i8",
        # results of a tile, and the columns that their windows span
        "tile": "i8", "span": "i8",
    },
)  # fmt: skip
