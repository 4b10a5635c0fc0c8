"""The kernel family `boxes`: signature, emitters and calls, on the CPU and in blocks of a GPU's threads."""
