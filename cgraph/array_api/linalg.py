"""The standard's ``linalg``, lazy by `cgraph.numpy.linalg`."""

import numpy as np

import cgraph.numpy.linalg as lazily
from cgraph.array_api.calls import function
from cgraph.array_api.functions import one_of_each

SIGNATURES = """
cholesky: x, /, *, upper=False
cross: x1, x2, /, *, axis=-1
det inv eig eigh eigvals eigvalsh matrix_transpose slogdet svdvals: x, /
diagonal: x, /, *, offset=0
matmul outer solve: x1, x2, /
matrix_norm: x, /, *, keepdims=False, ord='fro'
matrix_power: x, n, /
matrix_rank pinv: x, /, *, rtol=None
qr: x, /, *, mode='reduced'
svd: x, /, *, full_matrices=True
tensordot: x1, x2, /, *, axes=2
trace: x, /, *, offset=0, dtype=None
vecdot: x1, x2, /, *, axis=-1
vector_norm: x, /, *, axis=None, keepdims=False, ord=2
"""
FUNCTIONS = {
    name: function(name, signature, getattr(lazily, name, None), getattr(np.linalg, name))
    for name, signature in one_of_each(SIGNATURES).items()
}
globals().update(FUNCTIONS)
__all__ = list(FUNCTIONS)
