"""Teams of threads: how many of a block's threads work at one result together; and elements, a thread for each."""

from cgraph.kernels.signature import Args
from cgraph.kernels.walk.signature import axes

THREADS = 256  # of a block
FEW, MANY = 16, 1024  # elements from which on a warp, and a whole block, work at one result
WARP = 32
COLUMNS = 32  # results side by side in memory, of a block whose threads go across them
ELEMENTS = 128  # threads of a block whose threads have an element each


def elements(*arrays: str, **more: str) -> Args:
    """What a kernel reads whose threads have one of `count` positions each; the param `rank` is these arrays'."""
    places = dict.fromkeys(arrays, "address")
    return {"count": "i8", **places, **more, "axes": axes("rank", lambda _: len(arrays))}
