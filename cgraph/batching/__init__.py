"""Batching: a graph that computes many examples at once, from the graph of one example (`cg.vmap`)."""
