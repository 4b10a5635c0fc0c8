"""Panels of matrices for the register tile."""

from cgraph.kernels.signature import Signature

ARGS = {
    # lines: rows of a or columns of b, `line` elements apart; neighbours along k are `step` elements apart
    "lines": "i8", "k": "i8", "x": "dtype*", "x_batch": "i8", "line": "i8", "step": "i8",
    "out": "dtype*", "o_batch": "i8", "panels": "i8",
}  # fmt: skip
ALONG_K = Signature("gemm.pack.along_k", ("dtype", "width"), ARGS)
ALONG_LINES = Signature("gemm.pack.along_lines", ("dtype", "width"), ARGS)
ANY_STRIDE = Signature("gemm.pack.any_stride", ("dtype", "width"), ARGS)
