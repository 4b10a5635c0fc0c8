"""Attention of a few queries."""

from cgraph.kernels.signature import Signature
from cgraph.kernels.signatures.attention import ARGS

# count: queries that share a head of keys; keys and values have steps of 1
QUERIES = Signature("attention_few.queries", ("dtype", "count", "mask", "causal", "capped"), ARGS)
