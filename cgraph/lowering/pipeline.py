"""All passes from the user's graph to the graph that kernels compute, in order."""

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ir.late_pass import LatePass
from cgraph.ir.roots import Roots
from cgraph.ir.spec import Spec
from cgraph.kernels.target import Target
from cgraph.lowering.options import LoweringOptions
from cgraph.passes import rewrite_graph
from cgraph.passes.align_constants import align_constants
from cgraph.record import replace

BYTES = (np.dtype("uint8"), np.dtype("int8"))
sink_prefixes = LatePass("cgraph.passes.bound_rows:sink_prefixes", "Prefix")
drop_prefixes = LatePass("cgraph.passes.bound_rows:drop_prefixes", "Prefix")
bound_rows = LatePass("cgraph.passes.bound_rows", "Prefix")
compute_integers = LatePass("cgraph.passes.integers.compute_integers", "Dequantize", "Matmul", "Conv2d", "Take")
decompose_int8 = LatePass("cgraph.passes.decompose_int8", "IntegerConv", "IntegerMatmul", "PixelSum")
know_factors = LatePass("cgraph.passes.know_factors", "FixedProduct")
hold_weights = LatePass("cgraph.passes.hold_weights", "ConstOp")
round_bodies = LatePass("cgraph.lowering.round_products:round_bodies", "Structured")
round_products = LatePass("cgraph.lowering.round_products", "Matmul", "MatmulEpilogue")
lower_images = LatePass(
    "cgraph.lowering.lower:lower_images", "Conv", "ConvEpilogue", "IntegerConv", "BytePool", "ToFrames", "RowSource"
)
fuse_activations = LatePass("cgraph.passes.fuse_activations", "BlockedConv")
pack_matmul = LatePass("cgraph.lowering.pack_matmul", "Matmul", "MatmulEpilogue", "Structured")
pack_integers = LatePass("cgraph.lowering.pack_int8:pack_integers", "IntegerMatmul", "Structured")
tile_attentions = LatePass("cgraph.lowering.tile_attentions", "Attention")
fuse_reductions = LatePass("cgraph.passes.fuse_reductions", "Reduction")
fuse_stencils = LatePass("cgraph.passes.fuse_stencils", "Pad", "SetSlice", "Structured")
transpose_once = LatePass("cgraph.passes.transpose_once", "Matmul", "MatmulEpilogue")


def lower_graph(roots: tuple[Node, ...], target: Target, options: LoweringOptions) -> tuple[Node, ...]:
    """Return the graph that the kernels of a target compute."""
    roots = sink_prefixes(roots) if options.passes else drop_prefixes(roots)
    if not options.passes or target.code == "ptx":
        roots = decompose_int8(roots)
    elif has_bytes(roots):
        roots = compute_integers(roots)
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
    if options.pairs:
        roots = round_bodies(roots, target, options)
    if options.layers is not None:
        options.layers.begin(roots, target)
    if options.pairs:
        roots = round_products(roots, target, options)
    roots = fuse_activations(lower_images(roots, target, options), target)
    roots = pack_integers(pack_matmul(roots, target, options), target)
    if options.pairs and target.tiles:
        roots = tile_attentions(roots, target, options)
    return transpose_once(fuse_stencils(fuse_reductions(roots), target), target)


def has_bytes(roots: tuple[Node, ...]) -> bool:
    """Return True if the graph has numbers of 8 bits, as quantised networks do."""
    return any(node.dtype in BYTES for node in Roots.of(roots).order if isinstance(node.spec, Spec))
