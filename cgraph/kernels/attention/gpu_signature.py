"""Signature of attention with one block of threads for a band of queries."""

from cgraph.kernels.attention.signature import ARGS
from cgraph.kernels.signature import Signature

ROWS = 16  # queries of a block
ACROSS = 16  # threads of a query
THREADS = ROWS * ACROSS
DEPTHS = (32, 64, 128, 256)  # columns of queries and values that fit a block

# a block: one unit; the scratch is not used
BAND = Signature("attention.gpu.band", ("dtype", "depth", "mask", "rule"), ARGS)
