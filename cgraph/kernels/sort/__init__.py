"""Stable sorting, top k, binary search and distinct values, on the CPU and in blocks of a GPU's threads."""
