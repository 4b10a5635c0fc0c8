"""Rows read or written at a position that is data, on the CPU and in blocks of a GPU's threads."""
