from cgraph.kernels.llvm.vfloat import libm
def erf(k, x): return libm(k, "erf", x)
def erfc(k, x): return libm(k, "erfc", x)
