"""Signature of non-maximum suppression."""

from cgraph.kernels.signature import Signature

SUPPRESS = Signature(
    "boxes.suppress",
    ("dtype", "grouped", "lanes"),
    {
        # of each picture: boxes [n, 4], scores, order and groups (when `grouped`) [n], places [most], one count
        "boxes": "dtype*", "scores": "dtype*", "order": "i8*", "groups": "address?", "places": "i8*", "counts": "i8*",
        # scratch of each picture: the corners [4, room] and groups [room] of the selected boxes
        "corners": "address?", "labels": "address?", "room": "i8",
        # the largest intersection over union of two selected boxes of a group; the score that a selected box exceeds
        "n": "i8", "most": "i8", "share": "f8", "least": "f8",
    },
)  # fmt: skip
