"""Products of pairs of bfloat16 numbers, summed in float32.

A pair is an int32 with the first number in its lower half. The machine's instruction, where there is one, treats
denormal numbers as 0 and adds a pair's products in its own order with its own rounding. Elsewhere two float
multiply-adds are used.
"""

from collections.abc import Sequence

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.instructions import call_instruction
from cgraph.kernels.llvm.multiply import Sums, multiply_add
from cgraph.kernels.llvm.values import Val

UPPER = -(1 << 16)


def add_pairs(k: Builder, sums: Sums, pairs: Sequence[Val], weights: Sequence[Val]) -> Sums:
    """Return ``sums[q, v] + pairs[q] . weights[v]``: one pair for all lanes times one weight pair per lane."""
    if k.target.bf16 == "dot":
        return dot_instruction(k, sums, pairs, weights)
    for part in (lower, upper):
        sums = multiply_add(k, sums, [part(k, x) for x in pairs], [part(k, w) for w in weights])
    return sums


def lower(k: Builder, x: Val) -> Val:
    """Return the first number of each pair."""
    return k.bits(x << 16, "f4")


def upper(k: Builder, x: Val) -> Val:
    """Return the second number of each pair."""
    return k.bits(x & UPPER, "f4")


def dot_instruction(k: Builder, sums: Sums, pairs: Sequence[Val], weights: Sequence[Val]) -> Sums:
    """Emit the target's product of pairs."""
    lanes, totals = weights[0].lanes, []
    for q, pair in enumerate(pairs):
        x = k.splat(pair, lanes)
        for v, w in enumerate(weights):
            totals.append(call_instruction(k, "bf16 dot", lanes, sums[q * len(weights) + v], x, w))
    return totals
