"""Average pooling of bytes; strides in elements."""

from cgraph.kernels.signature import Signature

WINDOW = Signature(
    "pool8.window",
    # lanes: channels of a block; sum_dtype: of the sums of bytes; down, over: taps of windows that are computed by
    # integers alone where all taps are inside, or 0
    ("lanes", "sum_dtype", "down", "over"),
    {
        # tables as in `pool.window`; x_step: from a window to the next one
        "row_table": "i8*", "column_table": "i8*",
        "x": "u1*", "x_image": "i8", "x_plane": "i8", "x_step": "i8", "tap_row": "i8", "tap_column": "i8",
        "out": "u1*", "o_image": "i8", "o_plane": "i8", "o_row": "i8",
        # inner: columns as in `pool.window`, none if they do not fill a group
        "inner": "i8", "inner_stop": "i8", "rows": "i8", "columns": "i8", "planes": "i8", "band": "i8",
        # scale, x_zero: of the operand; last, zero, low, high: scale, zero point and bounds of the result;
        # ratio: scale / last; edge, slope: which quotients are computed in floats; has_halves: so are those of even
        # divisors, since scales are equal
        "scale": "f8", "x_zero": "i8", "last": "f8", "zero": "i8", "low": "i8", "high": "i8",
        "ratio": "f8", "edge": "f8", "slope": "f8", "has_halves": "i8",
        # the integers of a `FixedMean`
        "shift": "i8", "factor": "i8", "plus": "i8", "minus": "i8", "fraction": "i8",
    },
)  # fmt: skip
