"""Normalisation of rows and across channels; strides are bytes."""

from cgraph.kernels.signature import Signature

ROWS = Signature(
    "normalise.rows",
    ("dtype", "scales"),
    {
        # `each` rows to a task; row r has the segments (r % groups) * segments + s of the scale
        "rows": "i8", "each": "i8", "groups": "i8", "segments": "i8", "length": "i8",
        "x_row": "i8", "out_row": "i8",
        "x": "address", "x_step": "i8", "out": "address", "out_step": "i8",
        "scale": "address", "scale_step": "i8", "shift": "address", "shift_step": "i8",
        "epsilon": "f8",
    },
)  # fmt: skip

CHANNELS = Signature(
    "normalise.channels",
    ("dtype", "root"),
    {
        # positions of an image in blocks; channels before and after the one that is computed
        "blocks": "i8", "block": "i8", "positions": "i8", "channels": "i8", "before": "i8", "after": "i8",
        "x_image": "i8", "x_channel": "i8", "out_image": "i8", "out_channel": "i8",
        "x": "address", "out": "address",
        "alpha": "f8", "beta": "f8", "bias": "f8",
    },
)  # fmt: skip
