"""The kernel family `depthwise8`: signatures, emitters and call builders, for CPUs and for blocks of GPU threads."""
