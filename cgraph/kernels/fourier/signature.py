"""Fourier transforms along one axis: lines of numbers, several in the lanes of vectors."""

from cgraph.kernels.signature import Signature, Words
from cgraph.kernels.walk.signature import axes

LINES = Signature(
    "fourier.lines",
    # dtype: of real and imaginary parts; lanes: lines at a time, 0 for one; by_chirp: n points by a transform of `size`
    # reads, writes: "complex", "real", "half" (the first half of a spectrum); or, for 2 n real numbers by n points,
    # "pairs" of them and the "packed" half of their spectrum
    ("dtype", "lanes", "reads", "writes", "by_chirp"),
    {
        "out": "address", "x": "address",
        # points of the transform, numbers that are written, bytes from one number to the next
        "n": "i8", "count": "i8", "x_n": "i8", "out_n": "i8",
        # 1 for the inverse, and a factor of all results
        "inverse": "i8", "scale": "f8",
        # roots of unity as pairs, of `size` points; factors of a chirp and the transform of its conjugate;
        # roots of 2 n points
        "size": "i8", "roots": "address", "chirp": "address?", "spectrum": "address?", "turns": "address?",
        # a task has `each` of the lines and `room` bytes of scratch
        "lines": "i8", "each": "i8", "scratch": "address", "room": "i8",
        "stages": "i8", "radices": Words(("i8",), lambda scope: scope.stages),
        "rank": "i8", "axes": axes("rank", lambda _: 2),
    },
)  # fmt: skip
