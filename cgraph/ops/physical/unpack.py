"""Packed constants as they were given: what a packed operand means, for the oracle."""

from collections.abc import Callable
from math import prod

import numpy as np

from cgraph.kernels.llvm.winograd_matrices import winograd_matrices
from cgraph.kernels.winograd.calls import Winograd

STEP = 4096  # positions below its square are two numbers that float32 holds


def unpack(packed: np.ndarray, shape: tuple[int, ...], pack: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The array of this shape that `pack`, which moves elements and adds zeros, has made `packed` of."""
    size = prod(shape)
    probes = (np.ones(size), np.arange(size) % STEP, np.arange(size) // STEP)
    used, low, high = (pack(x.astype(packed.dtype).reshape(shape)).ravel().astype(int) for x in probes)
    out = np.zeros(size, packed.dtype)
    out[(low + STEP * high)[used == 1]] = packed.ravel()[used == 1]
    return out.reshape(shape)


def unpack_winograd(plan: Winograd, packed: np.ndarray) -> np.ndarray:
    """Filters ``[k, c, 3, 3]`` whose ``U = G g GT`` is `packed`: its least squares, by the inverse of G."""
    shape, n = plan.shape, plan.m + 2
    u = packed.reshape(n, n, plan.product.panels, -1, plan.product.panel_channels)[..., : shape.c, :]
    inverse = np.linalg.pinv(winograd_matrices(plan.m)[1])
    filters = np.einsum("ri,sj,ijpcw->pwcrs", inverse, inverse, u, optimize=True)
    return filters.reshape(-1, shape.c, 3, 3)[: shape.k].astype(packed.dtype)
