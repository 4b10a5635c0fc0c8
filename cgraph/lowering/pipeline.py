"""The whole way from a graph as it was written to one that kernels compute, in order."""

import numpy as np

from cgraph.ir.graph import Node
from cgraph.kernels.mapped import Keep, in_place
from cgraph.kernels.target import Target
from cgraph.lowering.lower import lower_images
from cgraph.lowering.pack_matmul import pack_matmul
from cgraph.passes import rewrite_graph
from cgraph.passes.align_constants import align_constants
from cgraph.passes.decompose_int8 import decompose_int8
from cgraph.passes.fuse_reductions import fuse_reductions
from cgraph.passes.fuse_stencils import fuse_stencils
from cgraph.passes.hold_weights import hold_weights
from cgraph.passes.integers.compute_integers import compute_integers
from cgraph.passes.transpose_once import transpose_once


def lower_for(
    roots: tuple[Node, ...],
    target: Target,
    passes: bool,
    winograd: bool,
    keep: Keep = in_place,
    weights_dtype: np.dtype | None = None,
    pairs: bool = False,
) -> tuple[Node, ...]:
    """The whole way for the CPU; without passes, ops on bytes are spelled out and constants made readable, no more.

    `keep`: where packed constants go. `held`: the dtype to which large weights are rounded, in which they are held.
    `pairs`: what convolutions and products multiply is rounded to bfloat16.
    """
    roots = compute_integers(roots) if passes and not target.is_gpu else decompose_int8(roots)
    if passes:
        roots = rewrite_graph(roots)
        roots = to_physical(
            roots if weights_dtype is None else hold_weights(roots, weights_dtype), target, winograd, keep, pairs
        )
    return align_constants(roots, keep)


def to_physical(
    roots: tuple[Node, ...], target: Target, winograd: bool, keep: Keep = in_place, pairs: bool = False
) -> tuple[Node, ...]:
    """Physical layouts for one target, then what joins physical ops."""
    roots = pack_matmul(lower_images(roots, target, winograd, keep, pairs), target, keep, pairs)
    return transpose_once(fuse_stencils(fuse_reductions(roots), target), target)
