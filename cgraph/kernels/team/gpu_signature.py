"""Teams of threads that compute one result together, and kernels with one element per thread."""

from cgraph.kernels.signature import Args
from cgraph.kernels.walk.signature import axes

THREADS = 256  # of a block
FEW, MANY = 16, 1024  # elements from which on a warp, and a whole block, work at one result
WARP = 32
COLUMNS = 32  # results side by side in memory, of a block whose threads go across them
ELEMENTS = 128  # threads of a block whose threads have an element each


def elements(*arrays: str, **more: str) -> Args:
    """Return the arguments of a kernel whose threads have one of `count` positions each; `rank` is a param."""
    places = dict.fromkeys(arrays, "address")
    return {"count": "i8", **places, **more, "axes": axes("rank", lambda _: len(arrays))}
