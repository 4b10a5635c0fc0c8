from cgraph.kernels.llvm.vfloat import libm
def pow_(k, x, y): return libm(k, "pow", x, y)
def hypot(k, x, y): return libm(k, "hypot", x, y)
