"""Reading and writing at positions that are data, an element for each thread; strides are bytes."""

from cgraph.kernels.index.signature import NONZERO as BY_TASKS
from cgraph.kernels.signature import Signature
from cgraph.kernels.team.gpu_signature import elements

# an index is moved over an axis of `extent` elements, `stride` bytes apart; `error`: the word to set when it is outside
AXIS = {"extent": "i8", "stride": "i8", "error": "address?"}

GATHER = Signature("index.gpu.gather", ("itemsize", "index", "rank"), elements("out", "x", "indices", **AXIS))

# a thread: one element off the axis, with its `n` updates in order
UPDATES = {"n": "i8", "updates_n": "i8", **AXIS}
SCATTER = Signature(
    "index.gpu.scatter",
    ("dtype", "index", "how", "rank"),
    elements("out", "updates", "indices", indices_n="i8", **UPDATES),
)

# positions from the start, int32; outside `extent` itself
PLACES = Signature("index.gpu.places", ("index", "rank"), elements("out", "indices", extent="i8", error="address?"))

# lines of `n` sorted positions, and which update each is: int32, `lines` and `order`, of one layout; a thread: one
# position of a line and one of `columns` elements beside it, with all updates of that place if it is the first of them
SEGMENTS = Signature(
    "index.gpu.segments",
    ("dtype", "how", "rank"),
    elements(
        "out", "updates", "lines", order="address", columns="i8", n="i8", updates_n="i8", extent="i8", stride="i8"
    ),
)

# height, width: of a matrix
TRIANGLE = Signature(
    "index.gpu.triangle", ("itemsize", "upper", "rank"), elements("out", "x", height="i8", width="i8", diagonal="i8")
)

# one block
NONZERO = Signature("index.gpu.nonzero", BY_TASKS.params, BY_TASKS.args)
