"""Fourier transforms along one axis: lines of numbers, several in the lanes of vectors."""

from cgraph.kernels.signature import Signature, Words
from cgraph.kernels.walk.signature import axes

LINES = Signature(
    "fourier.lines",
    # dtype: of real and imaginary parts; lanes: lines at a time, 0 for one; reads, writes: "complex", "real" or "half",
    # the first half of a spectrum; by_chirp: a transform of n points by one of `size` points
    ("dtype", "lanes", "reads", "writes", "by_chirp"),
    {
        "out": "address", "x": "address",
        # points of the transform, numbers that are written, bytes from one number to the next
        "n": "i8", "kept": "i8", "x_n": "i8", "out_n": "i8",
        # 1 for the inverse, and a factor of all results
        "inverse": "i8", "scale": "f8",
        # roots of unity as pairs, of `size` points; factors of a chirp and the transform of its conjugate
        "size": "i8", "roots": "dtype*", "chirp": "address?", "spectrum": "address?",
        # a task has `each` of the lines and `room` bytes of scratch
        "lines": "i8", "each": "i8", "scratch": "address", "room": "i8",
        "stages": "i8", "radices": Words(("i8",), lambda scope: scope.stages),
        "rank": "i8", "axes": axes("rank", lambda _: 2),
    },
)  # fmt: skip
