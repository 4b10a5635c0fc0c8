"""Copies of plain images with padding: sizes in elements, strides in bytes."""

from cgraph.kernels.signature import Signature

PAD_ROWS = Signature(
    "plain.pad_rows",
    ("itemsize",),
    {
        "x": "u1*", "x_image": "i8", "x_plane": "i8", "x_row": "i8", "c": "i8", "h": "i8", "w": "i8",
        "top": "i8", "left": "i8", "out": "u1*", "rows": "i8", "columns": "i8",
    },
)  # fmt: skip
