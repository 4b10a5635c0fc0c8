"""Windows over images in blocks of threads: pools and depthwise convolution; strides in elements."""

from cgraph.kernels.signature import Args, Signature
from cgraph.kernels.signatures.activation import ACTIVATION

THREADS = 128  # of a block; a thread computes one of `count` pixels of the result

RESULT: Args = {
    "out": "dtype*", "o_image": "i8", "o_plane": "i8", "o_row": "i8", "o_column": "i8",
    "rows": "i8", "columns": "i8", "planes": "i8", "count": "i8",
}  # fmt: skip

# tables as in `pool.window`
POOL = Signature(
    "gpu.window.pool",
    ("dtype", "kind"),
    {
        "row_table": "i8*", "column_table": "i8*",
        "x": "dtype*", "x_image": "i8", "x_plane": "i8", "tap_row": "i8", "tap_column": "i8",
        **RESULT,
    },
)  # fmt: skip

DEPTHWISE = Signature(
    "gpu.window.depthwise",
    ("dtype", "biased"),
    {
        "x": "dtype*", "x_image": "i8", "x_plane": "i8", "x_row": "i8", "x_column": "i8",
        "tap_row": "i8", "tap_column": "i8",
        "w": "dtype*", "bias": "dtype*", "kernel_rows": "i8", "kernel_columns": "i8",
        **RESULT, **ACTIVATION,
    },
)  # fmt: skip
