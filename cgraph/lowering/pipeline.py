"""All passes from the user's graph to the graph that kernels compute, in order."""

from cgraph.ir.graph import Node
from cgraph.kernels.target import Target
from cgraph.lowering.lower import lower_images
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pack_matmul import pack_matmul
from cgraph.lowering.round_products import round_bodies, round_products
from cgraph.lowering.tile_attentions import tile_attentions
from cgraph.passes import rewrite_graph
from cgraph.passes.align_constants import align_constants
from cgraph.passes.bound_rows import bound_rows, drop_prefixes, sink_prefixes
from cgraph.passes.decompose_int8 import decompose_int8
from cgraph.passes.fuse_activations import fuse_activations
from cgraph.passes.fuse_reductions import fuse_reductions
from cgraph.passes.fuse_stencils import fuse_stencils
from cgraph.passes.hold_weights import hold_weights
from cgraph.passes.integers.compute_integers import compute_integers
from cgraph.passes.know_factors import know_factors
from cgraph.passes.transpose_once import transpose_once
from cgraph.record import replace


def lower_graph(roots: tuple[Node, ...], target: Target, options: LoweringOptions) -> tuple[Node, ...]:
    """Return the graph that the kernels of a target compute."""
    roots = sink_prefixes(roots) if options.passes else drop_prefixes(roots)
    roots = compute_integers(roots) if options.passes and target.code != "ptx" else decompose_int8(roots)
    if options.passes:
        roots = know_factors(roots) if target.is_small else roots
        roots = rewrite_graph(roots)
        if options.storage_dtype is not None:
            roots = hold_weights(roots, options.storage_dtype)
        roots = to_physical(roots, target, options)
        roots = bound_rows(roots)
    return align_constants(roots, options.keep)


def to_physical(roots: tuple[Node, ...], target: Target, options: LoweringOptions) -> tuple[Node, ...]:
    """Choose physical layouts for one target, then fuse physical ops."""
    options = replace(options, pairs=options.pairs and target.multiplies_bfloat16)
    roots = round_bodies(roots, target, options)
    if options.layers is not None:
        options.layers.begin(roots, target)
    roots = round_products(roots, target, options)
    roots = fuse_activations(lower_images(roots, target, options), target)
    roots = pack_matmul(roots, target, options)
    roots = tile_attentions(roots, target, options)
    return transpose_once(fuse_stencils(fuse_reductions(roots), target), target)
