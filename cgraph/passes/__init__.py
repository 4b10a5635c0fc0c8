"""Passes on logical graphs, in the order in which they run."""

from cgraph.ir.graph import Node
from cgraph.passes.drop_factors import drop_factors
from cgraph.passes.drop_identities import drop_identities
from cgraph.passes.drop_taps import drop_taps
from cgraph.passes.fold_constants import fold_constants
from cgraph.passes.fold_depth import fold_depth
from cgraph.passes.fold_norm import fold_norm
from cgraph.passes.fold_padding import fold_padding
from cgraph.passes.fold_patches import fold_patches
from cgraph.passes.fold_sequences import fold_sequences
from cgraph.passes.fold_transposed import fold_transposed
from cgraph.passes.fuse_attention import fuse_attention
from cgraph.passes.fuse_epilogues import fuse_epilogues
from cgraph.passes.fuse_gelu import fuse_gelu
from cgraph.passes.fuse_group_norm import fuse_group_norm
from cgraph.passes.fuse_layer_norm import fuse_layer_norm
from cgraph.passes.fuse_matmul import fuse_matmul
from cgraph.passes.fuse_pointwise import fuse_pointwise
from cgraph.passes.fuse_rms_norm import fuse_rms_norm
from cgraph.passes.fuse_rotary import fuse_rotary
from cgraph.passes.multiply_pixels import multiply_pixels
from cgraph.passes.multiply_powers import multiply_powers
from cgraph.passes.sum_leaves import sum_leaves
from cgraph.passes.tidy_loops import tidy_loops
from cgraph.passes.widen_late import widen_late

PASSES = (
    tidy_loops, widen_late, fold_constants, multiply_powers, fold_norm, fold_padding, fold_patches, drop_identities,
    drop_factors, drop_taps, multiply_pixels, fold_depth, fold_sequences, fold_transposed, sum_leaves, fuse_attention,
    fuse_gelu, fuse_layer_norm, fuse_rms_norm, fuse_group_norm, fuse_rotary, fuse_epilogues, fuse_matmul,
    fuse_pointwise,
)  # fmt: skip


def rewrite_graph(roots: tuple[Node, ...]) -> tuple[Node, ...]:
    """Run all passes."""
    for rewrite in PASSES:
        roots = rewrite(roots)
    return roots
