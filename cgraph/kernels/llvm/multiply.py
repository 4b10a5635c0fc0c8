"""The register tile: `pixels` x `vectors` sums that stay in registers during a whole reduction.

One step reads `vectors` vectors of weights and one scalar per pixel, broadcasts the scalar to a vector and does
``pixels * vectors`` fused multiply-adds. With few weight vectors and many pixels the weights cost few bytes per
multiply-add, so their panel may be in L2. `pixels * vectors + vectors + 1` must not exceed the number of vector
registers.
"""

from collections.abc import Sequence

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val

Sums = list[Val]  # by pixel, then vector


def first_sums(bias: Sequence[Val], pixels: int) -> Sums:
    """Return the bias for every pixel."""
    return [b for _ in range(pixels) for b in bias]


def multiply_add(k: Builder, sums: Sums, scalars: Sequence[Val], weights: Sequence[Val]) -> Sums:
    """Return ``sums[q, v] + scalars[q] * weights[v]``."""
    totals = []
    for q, scalar in enumerate(scalars):
        spread = k.splat(scalar, weights[0].lanes)
        totals += [k.fma(spread, w, sums[q * len(weights) + v]) for v, w in enumerate(weights)]
    return totals
