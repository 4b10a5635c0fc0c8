"""Building the physical graph: every node as a plain value, a blocked one, or both where both are read."""

from dataclasses import replace

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.kernels.calls.window import Window
from cgraph.kernels.calls.winograd_rule import winograd_rule
from cgraph.kernels.target import Target
from cgraph.ops.family import Pointwise
from cgraph.ops.join import Concat
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.physical.blocked import BlockedConcat, BlockedPool, ClearFrame, ToBlocked, ToPlain
from cgraph.ops.physical.conv import BlockedConv, ConvEpilogue, pack_filters, packed_bias
from cgraph.ops.physical.form import NO_HALO, Form
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.pool import MaxPool
from cgraph.ops.reduce import Sum
from cgraph.ops.shape import BroadcastTo, reshape
from cgraph.ops.slicing import Slice
from cgraph.passes.conv_layer import layer_of, reads_plain


class Builder:
    """The physical graph under construction. Changes: nodes are added in running order.

    Fields
        forms: the form of each logical node that lies in blocks
    """

    def __init__(self, forms: dict[Node, Form], target: Target, winograd: bool) -> None:
        self.forms, self.target, self.winograd = forms, target, winograd
        self._plain: dict[Node, Node] = {}
        self._blocked: dict[Node, Node] = {}

    def add_plain(self, node: Node, made: Node) -> None:
        self._plain[node] = made

    def plain(self, node: Node) -> Node:
        """The node's value as ``[n, c, h, w]``, converted once."""
        if node not in self._plain:
            self._plain[node] = apply(ToPlain(self.forms[node]), self._blocked[node])
        return self._plain[node]

    def in_form(self, node: Node, form: Form) -> Node:
        """The node's value in blocks, of this form; converted once per form."""
        if node in self._blocked and self.forms[node] == form:
            return self._blocked[node]
        if node in self._blocked:
            return apply(ToBlocked(form), self.plain(node))
        x = self._plain[node]
        return apply(ToBlocked(form), x)

    def add_blocked(self, node: Node) -> None:
        """A node whose result lies in blocks."""
        if isinstance(node.op, ConvEpilogue):
            self._blocked[node] = self._conv(node)
        elif isinstance(node.op, Concat):
            self._blocked[node] = self._concat(node)
        elif isinstance(node.op, Pointwise):
            self._blocked[node] = self._pointwise(node)
        else:
            self._blocked[node] = self._pool(node)

    def add_pixel_sum(self, node: Node) -> None:
        """The sum over all pixels of a blocked value: its frame is zero, so the frame may be summed too."""
        x = node.operands[0]
        form = self.forms[x]
        total = apply(Sum((2, 3)), self._blocked[x])
        flat = reshape(total, (form.n, total.shape[1] * form.lanes))
        sliced = apply(Slice((0, 0), (1, 1), (form.n, form.c)), flat) if flat.shape[1] != form.c else flat
        self._plain[node] = reshape(sliced, node.shape)

    # -- one op each ----------------------------------------------------------------------------------------------
    def _conv(self, node: Node) -> Node:
        op, x, f = node.op, node.operands[0], node.operands[1]
        assert isinstance(op, ConvEpilogue)
        scale, bias, residual = op.operands(node.operands)
        plain = reads_plain(node) and x not in self._blocked
        shape = layer_of(node, self.target, plain)
        result = self.forms[node]
        if plain:
            source, images = None, self.plain(x)
        else:
            source = self._source_form(x, shape.window)
            images = self.in_form(x, source)
        tile = winograd_rule(shape, x.shape[0]) if self.winograd else 0
        values = f.op.array if scale is None else f.op.array * scale.op.array[:, None, None, None]  # type: ignore[attr-defined]
        filters = Const(pack_filters(shape, x.shape[0], tile, values), copy=False)
        packed = Const(packed_bias(shape, None if bias is None else bias.op.array), copy=False)
        operands = [images, filters, packed]
        kept = None
        if residual is not None:
            kept = self.forms.get(residual, replace(result, halo=NO_HALO))
            operands.append(self.in_form(residual, kept))
        made = BlockedConv(shape, tile, x.shape[0], source, result, kept, op.activation)
        return apply(made, *operands)

    def _source_form(self, x: Node, window: Window) -> Form:
        if x in self.forms:
            return self.forms[x]
        like = next(iter(self.forms.values()))
        return Form(*x.shape, like.lanes, like.dtype, window.halo(*x.shape[2:]))  # type: ignore[call-arg,arg-type]

    def _pool(self, node: Node) -> Node:
        op, x = node.op, node.operands[0]
        assert isinstance(op, MaxPool | AvgPool)
        window = Window(op.window, op.stride, op.pad, op.dilation)  # type: ignore[arg-type]
        kind, include = ("mean", op.count_pad) if isinstance(op, AvgPool) else ("max", False)
        made = BlockedPool(kind, window, include, self.forms[x], self.forms[node])
        return apply(made, self._blocked[x])

    def _concat(self, node: Node) -> Node:
        forms = [self.forms[x] for x in node.operands]
        blocks = [self._blocked[x] for x in node.operands]
        if all(f.c % f.lanes == 0 for f in forms[:-1]):
            return apply(Concat(1), *blocks)
        return apply(BlockedConcat(tuple(forms), self.forms[node]), *blocks)

    def _pointwise(self, node: Node) -> Node:
        form = self.forms[node]
        operands = [self._operand(x, form) for x in node.operands]
        made = apply(node.op, *operands)
        if form.halo == NO_HALO or keeps_zero(node):
            return made
        return apply(ClearFrame(form), made)

    def _operand(self, x: Node, form: Form) -> Node:
        """An operand of a pointwise op in blocks: whole, or spread over pixels."""
        if x in self.forms or not isinstance(x.op, BroadcastTo):
            return self.in_form(x, form)
        source = x.operands[0]
        if source in self.forms:
            thin = self.forms[source]
            return apply(BroadcastTo(form.shape), self.in_form(source, replace(thin, halo=NO_HALO)))
        if source.size == 1:
            return apply(BroadcastTo(form.shape), reshape(self.plain(source), ()))
        if isinstance(source.op, ConstOp):
            array = source.op.array.reshape((1,) * (4 - source.ndim) + source.shape)
            thin = replace(form, n=1, h=1, w=1, halo=NO_HALO)
            return apply(BroadcastTo(form.shape), Const(thin.block(array)))
        thin = replace(form, n=1, h=1, w=1, halo=NO_HALO)
        channels = apply(ToBlocked(thin), reshape(self.plain(source), thin.logical))
        return apply(BroadcastTo(form.shape), channels)


def keeps_zero(node: Node) -> bool:
    """The op gives 0 where its operands in blocks are 0, whatever those that are spread hold."""
    op = node.op
    assert isinstance(op, Pointwise)
    rng = np.random.default_rng(0)
    for _ in range(2):
        values = [operand_at_frame(x, rng) for x in node.operands]
        with np.errstate(all="ignore"):
            if np.any(np.asarray(op.meaning(*values)) != 0):
                return False
    return True


def operand_at_frame(x: Node, rng: np.random.Generator) -> np.ndarray:
    """What an operand holds in the frame: 0, or the constant or some value that is spread."""
    if not isinstance(x.op, BroadcastTo):
        return np.zeros(1, x.dtype)
    source = x.operands[0]
    if isinstance(source.op, ConstOp) and source.size == 1:
        return source.op.array.reshape(1)
    return rng.normal(size=1).astype(x.dtype)
