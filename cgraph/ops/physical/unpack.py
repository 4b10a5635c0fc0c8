"""Unpacking of packed constants, for the reference implementation."""

from collections.abc import Callable
from math import prod

import numpy as np

from cgraph.kernels.llvm.winograd_matrices import winograd_matrices
from cgraph.kernels.winograd.calls import Winograd

STEP = 4096  # splits positions below its square into two numbers exact in float32


def unpack(packed: np.ndarray, shape: tuple[int, ...], pack: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the array of this shape from which `pack`, which moves elements and adds zeros, made `packed`."""
    size = prod(shape)
    probes = (np.ones(size), np.arange(size) % STEP, np.arange(size) // STEP)
    used, low, high = (pack(x.astype(packed.dtype).reshape(shape)).ravel().astype(int) for x in probes)
    out = np.zeros(size, packed.dtype)
    out[(low + STEP * high)[used == 1]] = packed.ravel()[used == 1]
    return out.reshape(shape)


def unpack_winograd(plan: Winograd, packed: np.ndarray) -> np.ndarray:
    """Return the filters ``[k, c, 3, 3]`` with ``U = G g GT`` for `packed`, by least squares with the inverse of G."""
    shape, n = plan.shape, plan.m + 2
    u = packed.reshape(n, n, plan.product.panels, -1, plan.product.panel_channels)[..., : shape.c, :]
    inverse = np.linalg.pinv(winograd_matrices(plan.m)[1])
    filters = np.einsum("ri,sj,ijpcw->pwcrs", inverse, inverse, u, optimize=True)
    return filters.reshape(-1, shape.c, 3, 3)[: shape.k].astype(packed.dtype)
