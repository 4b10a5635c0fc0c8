"""Cumulative sums, products, minima and maxima, on the CPU and in blocks of a GPU's threads."""
