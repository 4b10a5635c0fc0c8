"""The register tile: `pixels` x `vectors` sums held in registers over a whole reduction.

One step reads `vectors` vectors of weights and one scalar per pixel, spreads the scalar over a vector and does
``pixels * vectors`` fused multiply-adds. With few weight vectors and many pixels the weights cost few bytes per
multiply-add, so their panel may lie in L2. `pixels * vectors + vectors + 1` must not exceed the vector registers.
Measured: docs/performance.md, single layers.
"""

from collections.abc import Sequence

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val

Sums = list[Val]  # by pixel, then vector


def first_sums(bias: Sequence[Val], pixels: int) -> Sums:
    """Every pixel starts at the bias."""
    return [b for _ in range(pixels) for b in bias]


def multiply_add(k: Builder, sums: Sums, scalars: Sequence[Val], weights: Sequence[Val]) -> Sums:
    """sums[q, v] + scalars[q] * weights[v]"""
    totals = []
    for q, scalar in enumerate(scalars):
        spread = k.splat(scalar, weights[0].lanes)
        totals += [k.fma(spread, w, sums[q * len(weights) + v]) for v, w in enumerate(weights)]
    return totals
