"""The kernel family `pool_indices`: signature, emitters and calls, on the CPU and in blocks of a GPU's threads."""
