"""Products of two computed values with both sides rounded to bfloat16."""

from math import prod

from cgraph.dtypes.convert import FLOAT32
from cgraph.ir.graph import Node, apply
from cgraph.ir.rewrite import rebuild_node
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.kernels.pairs.paired_sides import gains_by_rounding
from cgraph.kernels.target import Target
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.pack_matmul import constant_matrix, epilogue_of
from cgraph.ops.linear import Matmul
from cgraph.ops.physical.matmul import MatmulEpilogue
from cgraph.ops.physical.rounded import RoundedMatmul
from cgraph.ops.physical.tiled import suits_numbers
from cgraph.ops.shape import reshape, unbroadcast
from cgraph.passes.loop_bodies import in_bodies


def round_products(outputs: tuple[Node, ...], target: Target, options: LoweringOptions) -> tuple[Node, ...]:
    """Round both sides of products of computed float32 values where that is faster: other values.

    As in training: the products of the forward pass, and those of both gradients. Left in float32: products of few
    rows or columns, whose rounding costs more than it saves, and those by constants, which `pack_matmul` rounds.
    """
    graph = Roots.of(outputs)
    if not options.pairs or not graph.has(Matmul, MatmulEpilogue):
        return graph

    def change(node: Node, new: New) -> Node:
        if not isinstance(node.op, Matmul | MatmulEpilogue) or not rounds(node, target, options):
            moved = rebuild_node(node, new)
            if options.layers is not None:
                options.layers.replace_layer(node, moved)
            return moved
        x, y, *rest = (new[operand] for operand in node.operands)
        right = one_matrix(y)
        return apply(RoundedMatmul(*epilogue_of(node)), x, y if right is None else right, *rest)

    return rebuild(graph, change)


def round_bodies(outputs: tuple[Node, ...], target: Target, options: LoweringOptions) -> tuple[Node, ...]:
    """Round the products in bodies of loops and branches, as `round_products` does.

    A choice of layers names none of them, so they stay float32 with it.
    """
    if not options.pairs:
        return outputs

    def change(results: tuple[Node, ...]) -> tuple[Node, ...]:
        return round_products(round_bodies(results, target, options), target, options)

    return in_bodies(outputs, change)


def rounds(node: Node, target: Target, options: LoweringOptions) -> bool:
    """Return True for a product that is rounded."""
    x, y = node.operands[:2]
    if node.dtype != FLOAT32 or not node.size or not x.size or constant_matrix(y) is not None:
        return False
    rows = prod(x.shape[:-1]) if one_matrix(y) is not None else x.shape[-2]
    k, n = y.shape[-2:]
    is_long = suits_numbers(rows, k) and gains_by_rounding(rows, n)
    return is_long and options.rounds(node)


def one_matrix(y: Node) -> Node | None:
    """Return the matrix ``[k, n]`` that all products read; None if they read different ones."""
    source = unbroadcast(y)
    if prod(source.shape[:-2]) != 1 or source.shape[-2:] != y.shape[-2:]:
        return None
    return reshape(source, y.shape[-2:])
