"""Products of pairs of bfloat16 numbers, summed in float32.

A pair is an int32 with the first number in its lower half. The machine's instruction, where there is one, treats
denormal numbers as 0 and adds a pair's products in its own order with its own rounding. Elsewhere two float
multiply-adds are used.
"""

from collections.abc import Sequence

from llvmlite import ir

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.multiply import Sums, multiply_add
from cgraph.kernels.llvm.values import Val, vector_type

UPPER = -(1 << 16)


class Bfloat(ir.Type):
    """LLVM's bfloat, which llvmlite lacks."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bfloat)

    def __hash__(self) -> int:
        return hash(Bfloat)


def add_pairs(k: Builder, sums: Sums, pairs: Sequence[Val], weights: Sequence[Val]) -> Sums:
    """Return ``sums[q, v] + pairs[q] . weights[v]``: one pair for all lanes times one weight pair per lane."""
    if k.target.bf16:
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
    """Emit vdpbf16ps."""
    lanes, totals = weights[0].lanes, []
    kind, halves = vector_type("f4", lanes), ir.VectorType(Bfloat(), 2 * lanes)
    dot = k.declare(f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}", kind, [kind, halves, halves])
    words = [k.b.bitcast(w.v, halves) for w in weights]
    for q, pair in enumerate(pairs):
        x = k.b.bitcast(k.splat(pair, lanes).v, halves)
        for v, w in enumerate(words):
            totals.append(k.wrap(k.b.call(dot, [sums[q * len(words) + v].v, x, w]), "f4", lanes))
    return totals
