"""The kernel family `conv8`: signatures, emitters and call builders, for CPUs and for blocks of GPU threads."""
