"""An estimate of Winograd's rounding error, relative to that of a direct convolution of the same filters.

A sum of n products whose terms have the variance v has a rounding error of variance ``u**2 v n**2 / 2``, since its
partial sums grow; chains of h products that are added to a total have ``u**2 v n (h + n / h) / 2``. A direct
convolution is one chain of 9 c products. Winograd's sums have c products for each point, of transformed filters and
images, whose variances follow from the matrices, from the filters' second moments and from images of independent
pixels. The output transform adds the points' errors. Both transforms round as well, which is worth
`TRANSFORMS` products.
"""

import numpy as np

from cgraph.kernels.llvm.winograd_matrices import winograd_matrices
from cgraph.kernels.winograd.calls import Winograd

TRANSFORMS = 6  # measured for 32 to 384 channels: 2.2 e-7 of images, 1.2 e-7 of filters, 2.0 e-7 of results
MOST_FILTERS = 1 << 12  # of one input and output channel each: enough for moments within some percent


def error_ratio(plan: Winograd, filters: np.ndarray) -> float:
    """Return the estimated error of `plan` over that of a direct convolution with `filters` ``[k, c, 3, 3]``."""
    taps = filters.reshape(-1, 9)
    taps = taps[:: -(-len(taps) // MOST_FILTERS)].astype("f8")
    moments = np.einsum("ni,nj->ij", taps, taps)
    variance = float(np.trace(moments))
    if not variance:
        return 0.0
    at, g, bt = winograd_matrices(plan.m)
    both, images = np.kron(g, g), (bt * bt).sum(1)
    products = np.einsum("pi,ij,pj->p", both, moments, both).reshape(plan.m + 2, -1) * np.outer(images, images)
    c, chain = plan.shape.c, plan.chain
    sums = float(np.mean((at * at) @ products @ (at * at).T)) * ((chain + c / chain) / 2 + TRANSFORMS)
    return float(np.sqrt(sums / (variance * 9 * c / 2)))
