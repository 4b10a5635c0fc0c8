"""Pointwise programs over the neighbourhood of each element, with the result in the same array."""
