"""Softmax, its logarithm, and the logarithm of the sum of exponentials, by teams of threads; strides are bytes."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.walk.signature import axes

# a task: as many rows as a block has teams, `length` elements each
TEAMS = Signature(
    "softmax.gpu.teams",
    ("kind", "dtype", "rank", "team", "across"),
    {
        "rows": "i8", "length": "i8", "x": "address", "x_step": "i8", "out": "address", "out_step": "i8",
        "axes": axes("rank", lambda _: 2),
    },
)  # fmt: skip
