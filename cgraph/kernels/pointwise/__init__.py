"""Pointwise kernels: a scalar program over whole arrays, on the CPU and in blocks of a GPU's threads."""
