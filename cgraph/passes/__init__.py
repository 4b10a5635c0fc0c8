"""Passes on logical graphs, in the order in which they run, each with the ops that it concerns."""

from cgraph.ir.graph import Node
from cgraph.ir.late_pass import LatePass

PASSES = (
    LatePass("cgraph.passes.tidy_loops", "Structured"),
    LatePass("cgraph.passes.widen_late", "Cast"),
    LatePass("cgraph.passes.fold_constants", "ConstOp"),
    LatePass("cgraph.passes.multiply_powers", "Power", "IntegerPower"),
    LatePass("cgraph.passes.fold_norm", "BatchNorm"),
    LatePass("cgraph.passes.fold_padding", "Conv"),
    LatePass("cgraph.passes.fold_patches", "Conv2d"),
    LatePass("cgraph.passes.drop_identities"),
    LatePass("cgraph.passes.drop_factors", "Svd"),
    LatePass("cgraph.passes.drop_taps", "Conv"),
    LatePass("cgraph.passes.multiply_pixels", "ConvTranspose"),
    LatePass("cgraph.passes.fold_depth", "Conv3d"),
    LatePass("cgraph.passes.fold_sequences", "Conv1d", "ConvTranspose"),
    LatePass("cgraph.passes.fold_transposed", "ConvTranspose"),
    LatePass("cgraph.passes.sum_leaves", "TreeLeaves"),
    LatePass("cgraph.passes.fuse_attention", "Softmax"),
    LatePass("cgraph.passes.fuse_gelu", "Erf", "Tanh"),
    LatePass("cgraph.passes.fuse_layer_norm", "Sqrt"),
    LatePass("cgraph.passes.fuse_rms_norm", "Sqrt"),
    LatePass("cgraph.passes.fuse_group_norm", "GroupNorm"),
    LatePass("cgraph.passes.fuse_rotary", "Concat"),
    LatePass("cgraph.passes.fuse_epilogues", "Conv2d", "ConvTranspose", "FramesConv"),
    LatePass("cgraph.passes.fuse_matmul", "Matmul", "MatmulEpilogue"),
    LatePass("cgraph.passes.fuse_pointwise", "Pointwise"),
)


def rewrite_graph(roots: tuple[Node, ...]) -> tuple[Node, ...]:
    """Run all passes."""
    for rewrite in PASSES:
        roots = rewrite(roots)
    return roots
