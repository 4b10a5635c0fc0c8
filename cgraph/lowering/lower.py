"""Logical to physical ops on images: which images are channel-blocked, their halos, and the conversions.

Convolutions, transposed ones and gradients for filters work on channel-blocked images. Pools, resizes, pointwise ops,
concats, features of boxes and sums over pixels that read a blocked value stay blocked, so conversions are inserted only
where a value enters or leaves a run of these ops. Operands and result of a pointwise op or a concat have one halo: the
widest that any downstream convolution reads. A convolution's result and a residual without other readers also have one
halo, so that one may overwrite the other. `cgraph.lowering.image_lowerings` has a row for each op.
"""

from cgraph.dtypes.convert import code_of
from cgraph.ir.graph import Node
from cgraph.ir.origin import keeps_origin
from cgraph.ir.rewrite import with_new_operands
from cgraph.ir.roots import Roots
from cgraph.ir.traverse import at_origins
from cgraph.kernels.target import Target
from cgraph.lowering.image_builder import ImageBuilder
from cgraph.lowering.image_lowerings import Lowering, LoweringContext, lowering_of
from cgraph.lowering.options import LoweringOptions
from cgraph.lowering.tile_lowerings import TileChoice, in_tile_form
from cgraph.ops.join import Concat
from cgraph.ops.physical.form import NO_HALO, Form, Halo
from cgraph.ops.physical.ports import RowSource
from cgraph.ops.pool import MaxPoolIndices
from cgraph.record import replace

Rows = dict[Node, Lowering]


@keeps_origin
def lower_images(outputs: tuple[Node, ...], target: Target, options: LoweringOptions) -> tuple[Node, ...]:
    """Replace ops by those on faster layouts: same values up to rounding, more nodes, constants packed.

    May increase bytes by unused lanes of odd channel counts, halos and workspaces; the plan contains all of them.
    Depthwise convolutions and those of few channels ignore `options.pairs`.
    """
    graph = Roots.of(outputs)
    context, order = LoweringContext(set(), graph, target, graph.has(RowSource)), graph.order
    rows = select_lowerings(order, context)
    if not rows:
        return outputs
    tiles = TileChoice.of(order, context.laned, graph, target, options)
    builder = ImageBuilder(forms_of(order, rows, context, tiles.images), target, options, tiles.shapes)
    for node in at_origins(order):
        row = rows.get(node)
        physical = (
            row.build(builder, node) if row else with_new_operands(node, tuple(builder.plain(x) for x in node.operands))
        )
        builder.add(node, physical)
    return tuple(builder.plain(x) for x in outputs)


def select_lowerings(order: list[Node], context: LoweringContext) -> Rows:
    """Return the nodes to lower, each with its row of the table."""
    rows: Rows = {}
    for node in order:
        row = lowering_of(node, context)
        if row:
            rows[node] = row
        if row and row.laned:
            context.laned.add(node)
    for node, row in rows.items():
        if row.plain and not any(user in rows for user in context.graph.users[node]):
            rows[node] = replace(row, build=row.plain, laned=False)
    return rows


def forms_of(order: list[Node], rows: Rows, context: LoweringContext, images: set[Node]) -> dict[Node, Form]:
    """Return the form of every channel-blocked node.

    Parameters
        images: nodes whose images are as tiles read them
    """
    laned = [node for node in order if node in rows and rows[node].laned]
    group: dict[Node, Node] = {n: n for n in laned}

    def root(n: Node) -> Node:
        while group[n] is not n:
            group[n] = group[group[n]]
            n = group[n]
        return n

    for node in laned:
        for x in rows[node].alike(node, context):
            if x in group:
                group[root(x)] = root(node)
    need: dict[Node, Halo] = {}
    for node, row in rows.items():
        if row.halo and node.operands[0] in group:
            top = root(node.operands[0])
            need[top] = widest(need.get(top, NO_HALO), row.halo(node, context.target))
    fills = fills_of(laned, rows)
    forms = {
        x: Form(*x.shape, lanes_of(x, context.target), code_of(x.dtype), need.get(root(x), NO_HALO), fills.get(x, 0))  # type: ignore[call-arg,arg-type]
        for x in laned
    }
    return {x: in_tile_form(form) if x in images else form for x, form in forms.items()}


def fills_of(laned: list[Node], rows: Rows) -> dict[Node, int]:
    """Return the halo's value of each image of bytes: the zero point with which the first convolution reads it or a
    concat of it.
    """
    fills: dict[Node, int] = {}
    for node, row in rows.items():
        if row.fill:
            fills.setdefault(node.operands[0], row.fill(node))
    for node in reversed(laned):
        if isinstance(node.op, Concat):
            for x in node.operands:
                fills.setdefault(x, fills.get(node, 0))
    return fills


def lanes_of(x: Node, target: Target) -> int:
    """Return the number of channels in a block; indices of elements have the layout of the elements."""
    return target.channels_of(code_of((x.operands[0] if isinstance(x.op, MaxPoolIndices) else x).dtype))


def widest(a: Halo, b: Halo) -> Halo:
    return tuple(max(x, y) for x, y in zip(a, b))  # type: ignore[return-value]
