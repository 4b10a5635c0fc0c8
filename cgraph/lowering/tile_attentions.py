"""Attention on tile registers, where the user permits rounding and the target has them."""

from cgraph.dtypes.convert import FLOAT32
from cgraph.ir.graph import Node, apply
from cgraph.ir.rewrite import rewrite
from cgraph.kernels.target import Target
from cgraph.kernels.tile_attention.calls import suits_tile_attention
from cgraph.lowering.options import LoweringOptions
from cgraph.ops.attention import Attention
from cgraph.ops.physical.tile_attention import TiledAttention


def tile_attentions(roots: tuple[Node, ...], target: Target, options: LoweringOptions) -> tuple[Node, ...]:
    """Return the graph with attention of many queries on tiles, if all layers may round.

    Attention to the keys of a cache, which has a start, stays in float32, so that nothing beyond the last key is
    read.
    """
    is_choice = options.layers is not None and options.layers.names is not None
    if not (options.pairs and target.tiles) or is_choice:
        return roots
    return rewrite(roots, [(Attention, on_tiles)])


def on_tiles(node: Node) -> Node | None:
    """Return attention on tiles; None where tiles would be mostly empty."""
    op, (q, k, *_) = node.op, node.operands
    assert isinstance(op, Attention)
    if op.has_start or node.dtype != FLOAT32 or not node.size or not suits_tile_attention(q.shape, k.shape):
        return None
    fields = op.scale, op.causal, op.window, op.has_mask, op.has_start, op.softcap, op.safe
    return apply(TiledAttention(*fields), *node.operands)
