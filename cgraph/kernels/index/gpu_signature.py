"""Reading and writing at computed indices, one element for each thread; strides are bytes."""

from cgraph.kernels.index.signature import NONZERO as BY_TASKS
from cgraph.kernels.signature import Signature
from cgraph.kernels.team.gpu_signature import elements

# an index counts along an axis of `extent` elements, `stride` bytes apart; `error`: the word to set if it is outside
AXIS = {"extent": "i8", "stride": "i8", "error": "address?"}

GATHER = Signature("index.gpu.gather", ("itemsize", "index", "rank"), elements("out", "x", "indices", **AXIS))

# a thread: one element of the other axes, with its `n` updates in order
UPDATES = {"n": "i8", "updates_n": "i8", **AXIS}
SCATTER = Signature(
    "index.gpu.scatter",
    ("dtype", "index", "how", "rank"),
    elements("out", "updates", "indices", indices_n="i8", **UPDATES),
)

# indices from the start, int32; `extent` itself for those outside
PLACES = Signature("index.gpu.places", ("index", "rank"), elements("out", "indices", extent="i8", error="address?"))

# lines of `n` sorted indices, and the numbers of their updates: int32, `lines` and `order`, of one layout; a thread:
# one index of a line and one of `columns` other elements, with all updates of that element if the index is the first
# of equal ones
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
