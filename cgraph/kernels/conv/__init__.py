"""The kernel family `conv`: signatures, emitters and call builders, for CPUs and for blocks of GPU threads."""
