"""Reading and writing at computed indices."""

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.signature import Signature, Words
from cgraph.kernels.walk.signature import run
from cgraph.record import Record

# an index counts along an axis of `extent` elements, `stride` bytes apart; `error`: the word to set if it is outside
GATHER = run(
    "index.gather",
    ("itemsize", "index", "how"),
    ("out", "x", "indices"),
    extent="i8", stride="i8", error="address?",
)  # fmt: skip

# n indices one after the other, each with its updates: `indices_n` and `updates_n` bytes apart
SCATTER = run(
    "index.scatter",
    ("dtype", "index", "how", "same"),
    ("out", "updates", "indices"),
    n="i8", updates_n="i8", indices_n="i8", extent="i8", stride="i8", error="address?",
)  # fmt: skip

INSIDE = run("index.inside", ("index",), ("indices",), extent="i8", error="address")

# height: rows of a matrix
TRIANGLE = run("index.triangle", ("itemsize", "upper"), ("out", "x"), height="i8", diagonal="i8")

NONZERO = Signature(
    "index.nonzero",
    ("dtype",),
    {
        "out": "i8*", "count": "i8*", "x": "dtype*", "size": "i8", "most": "i8",
        "rank": "i8", "extents": Words(("i8",), lambda scope: scope.rank),
    },
)  # fmt: skip


class IndexedAxis(Record):
    """The axis that indices refer to.

    Fields
        extent, stride: elements of the axis, and bytes from one to the next
        error: the word to set if an index is outside, or None
    """

    extent: int
    stride: int
    error: Pointer | None
