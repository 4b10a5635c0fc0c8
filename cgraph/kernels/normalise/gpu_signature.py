"""Normalisation of contiguous rows, by teams of threads."""

from cgraph.kernels.normalise.signature import CHANNELS as BY_TASKS
from cgraph.kernels.signature import Signature

# a task: as many rows as a block has teams, of segments times `length` elements; scales as in `normalise.rows`
TEAMS = Signature(
    "normalise.gpu.teams",
    ("dtype", "scales", "team"),
    {
        "rows": "i8", "groups": "i8", "segments": "i8", "length": "i8",
        "x": "dtype*", "out": "dtype*", "scale": "dtype*", "shift": "dtype*", "epsilon": "f8",
    },
)  # fmt: skip

# a thread: one of `count` elements
CHANNELS = Signature("normalise.gpu.channels", BY_TASKS.params, {"count": "i8", **BY_TASKS.args})
