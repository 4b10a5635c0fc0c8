"""The kernel family `filter_grad`: signatures, emitters and call builders, for CPUs and for blocks of GPU threads."""
