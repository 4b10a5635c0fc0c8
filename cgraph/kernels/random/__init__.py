"""The kernel family `random`: signature, emitters and calls, on the CPU and in blocks of a GPU's threads."""
