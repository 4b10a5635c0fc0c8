"""Steps that run on the host (LAPACK, Fourier transforms, users' functions): copy down, run, copy up."""

import numpy as np

from cgraph.engine.cuda.device import Queue
from cgraph.kernels.kernel import Callback, View


def run_on_host(queue: Queue, callback: Callback, addresses: list[int]) -> None:
    """Run one step and pass on its exceptions.

    Parameters
        addresses: of the elements of the callback's views on the device
    """
    words, rooms = [], []
    for view, at in zip(callback.views, addresses):
        first, nbytes = extent(view)
        rooms.append(np.empty(nbytes, np.uint8))
        words.append(rooms[-1].ctypes.data - first)
        queue.download(at + first, rooms[-1])
    queue.wait()
    table = np.array(words, np.int64)
    callback.function(table.ctypes.data)
    for view, at, room in zip(callback.views[: callback.results], addresses, rooms):
        queue.upload(at + extent(view)[0], room)
    queue.wait()


def moved_nbytes(callback: Callback) -> int:
    """Return the bytes that one call copies to the host and back."""
    sizes = [extent(view)[1] for view in callback.views]
    return sum(sizes) + sum(sizes[: callback.results])


def extent(view: View) -> tuple[int, int]:
    """Return the first byte of a view, relative to its first element, and the bytes from there to its last."""
    if not view.size:
        return 0, 0
    spans = [(n - 1) * stride for n, stride in zip(view.shape, view.strides)]
    first = sum(s for s in spans if s < 0)
    return first, sum(s for s in spans if s > 0) - first + view.itemsize
