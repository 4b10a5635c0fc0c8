"""Reductions over any axes of any layout, on the CPU and by teams of a GPU's threads."""
