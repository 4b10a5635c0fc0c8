"""Running sums, products, minima and maxima in blocks of threads; strides are bytes."""

from cgraph.kernels.signature import Args, Signature
from cgraph.kernels.walk.signature import axes

THREADS = 256  # of a block

LINES: Args = {
    "lines": "i8", "n": "i8", "out": "address", "out_n": "i8", "x": "address", "x_n": "i8",
    "axes": axes("rank", lambda _: 2),
}  # fmt: skip

# a block: one line of `n` elements
ALONG = Signature("scan.gpu.along", ("dtype", "how", "rank"), LINES)
# a thread: one line; neighbours in memory, neighbours in threads
ACROSS = Signature("scan.gpu.across", ("dtype", "how", "rank"), LINES)
