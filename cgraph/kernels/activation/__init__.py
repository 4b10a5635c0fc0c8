"""The kernel family `activation`: signature, emitters and calls, on the CPU and in blocks of a GPU's threads."""
