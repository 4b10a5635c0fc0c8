"""Packing of rows and columns of bytes for the tiles of products."""

from cgraph.kernels.signature import Signature

ROWS = Signature(
    "pack8.rows",
    ("near", "sums"),  # near: columns lie side by side; sums: `terms` are written
    {
        # rows of k bytes: `rows` in each matrix; bytes from one matrix, row and column to the next
        "x": "u1*", "rows": "i8", "x_image": "i8", "x_row": "i8", "x_step": "i8",
        # bytes from one matrix, and from one block of columns to the next
        "out": "u1*", "o_image": "i8", "o_plane": "i8", "k": "i8", "blocks": "i8",
        # for each row of each matrix the sum of its bytes times a factor
        "terms": "address?", "factor": "i8",
    },
)  # fmt: skip
PANELS = {
    # y [k, n]: bytes from one matrix, row and column to the next
    "y": "u1*", "y_image": "i8", "y_row": "i8", "y_step": "i8", "k": "i8", "n": "i8",
    # panels of `groups` times four rows; groups of four bytes from one matrix to the next
    "out": "i4*", "o_image": "i8", "groups": "i8", "panels": "i8",
    # for each column the sum of its bytes times a factor, and `first`; columns from one matrix to the next
    "starts": "i4*", "s_image": "i8", "factor": "i8", "first": "i8",
}  # fmt: skip
ALONG_K = Signature("pack8.along_k", ("vectors",), PANELS)
ACROSS = Signature("pack8.across", ("vectors", "near"), PANELS)
