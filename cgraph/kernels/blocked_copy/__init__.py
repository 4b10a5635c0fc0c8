"""The kernel family `blocked_copy`: signature, emitters and calls, on the CPU and in blocks of a GPU's threads."""
