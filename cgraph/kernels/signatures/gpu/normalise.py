"""Normalisation of rows that lie side by side, by teams of threads."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.signatures.normalise import CHANNELS as BY_TASKS

# a task: as many rows as a block has teams, of segments times `length` elements; scales as in `normalise.rows`
TEAMS = Signature(
    "gpu.normalise.teams",
    ("dtype", "scales", "team"),
    {
        "rows": "i8", "groups": "i8", "segments": "i8", "length": "i8",
        "x": "dtype*", "out": "dtype*", "scale": "dtype*", "shift": "dtype*", "epsilon": "f8",
    },
)  # fmt: skip

# a thread: one of `count` elements
CHANNELS = Signature("gpu.normalise.channels", BY_TASKS.params, {"count": "i8", **BY_TASKS.args})
