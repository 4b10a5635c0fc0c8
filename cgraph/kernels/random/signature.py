"""Random numbers."""

from cgraph.kernels.signature import Signature

# `each`: groups of a task
FILL = Signature(
    "random.fill",
    ("kind", "dtype"),
    {"count": "i8", "each": "i8", "key": "u4*", "out": "address", "probability": "f8"},
)
