"""The whole way from a graph as it was written to one that kernels compute, in order."""

import numpy as np

from cgraph.ir.graph import Node
from cgraph.kernels.mapped import Keep, in_place
from cgraph.kernels.target import Target
from cgraph.passes.align_constants import align_constants
from cgraph.passes.drop_identities import drop_identities
from cgraph.passes.fold_constants import fold_constants
from cgraph.passes.fold_norm import fold_norm
from cgraph.passes.fuse_attention import fuse_attention
from cgraph.passes.fuse_epilogues import fuse_epilogues
from cgraph.passes.fuse_matmul import fuse_matmul
from cgraph.passes.fuse_pointwise import fuse_pointwise
from cgraph.passes.fuse_reductions import fuse_reductions
from cgraph.passes.fuse_stencils import fuse_stencils
from cgraph.passes.hold_weights import hold_weights
from cgraph.passes.integers import integers
from cgraph.passes.lower_cpu import lower_cpu
from cgraph.passes.pack_matmul import pack_matmul
from cgraph.passes.spell_bytes import spell_bytes
from cgraph.passes.tidy_loops import tidy_loops
from cgraph.passes.transpose_once import transpose_once
from cgraph.passes.widen_late import widen_late

PASSES = (
    tidy_loops, widen_late, fold_constants, fold_norm, drop_identities, fuse_attention, fuse_epilogues, fuse_matmul,
    fuse_pointwise,
)  # fmt: skip


def prepared(
    roots: tuple[Node, ...],
    target: Target,
    passes: bool,
    winograd: bool,
    keep: Keep = in_place,
    held: np.dtype | None = None,
    pairs: bool = False,
) -> tuple[Node, ...]:
    """The whole way for the CPU; without passes, ops on bytes are spelled out and constants made readable, no more.

    `keep`: where packed constants go. `held`: the dtype to which large weights are rounded, in which they are held.
    `pairs`: what convolutions and products multiply is rounded to bfloat16.
    """
    roots = integers(roots) if passes and not target.is_gpu else spell_bytes(roots)
    if passes:
        roots = rewritten(roots)
        roots = lowered(roots if held is None else hold_weights(roots, held), target, winograd, keep, pairs)
    return align_constants(roots, keep)


def rewritten(roots: tuple[Node, ...]) -> tuple[Node, ...]:
    """All passes."""
    for rewrite in PASSES:
        roots = rewrite(roots)
    return roots


def lowered(
    roots: tuple[Node, ...], target: Target, winograd: bool, keep: Keep = in_place, pairs: bool = False
) -> tuple[Node, ...]:
    """Physical layouts for one target, then what joins physical ops."""
    roots = pack_matmul(lower_cpu(roots, target, winograd, keep, pairs), target, keep, pairs)
    return transpose_once(fuse_stencils(fuse_reductions(roots), target), target)
