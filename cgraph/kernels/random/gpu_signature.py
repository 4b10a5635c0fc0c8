"""Random numbers, a block of Philox for each thread."""

from cgraph.kernels.signature import Signature

# `count` elements; a key is two words
FILL = Signature(
    "random.gpu.fill", ("kind", "dtype"), {"count": "i8", "key": "u4*", "out": "address", "probability": "f8"}
)
