"""Copies and fills of arrays with any strides, on the CPU and in blocks of a GPU's threads."""
