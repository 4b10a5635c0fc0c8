"""Attention of a few queries."""

from cgraph.kernels.attention.signature import ARGS
from cgraph.kernels.signature import Signature

# count: queries that share a head of keys; keys and values have steps of 1
QUERIES = Signature("attention.few.queries", ("dtype", "count", "mask", "rule"), ARGS)
