"""Building the physical graph: every node as a plain value, a blocked one, or both where both are read."""

import numpy as np

from cgraph.ir.graph import Node, apply
from cgraph.kernels.calls.conv_transpose import pack_transposed
from cgraph.kernels.calls.filter_grad import FilterGrad
from cgraph.kernels.calls.window import Window
from cgraph.kernels.calls.winograd_rule import winograd_rule
from cgraph.kernels.expression import code_of
from cgraph.kernels.target import Target
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.family import Pointwise
from cgraph.ops.join import Concat
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.physical.blocked import (
    BlockedConcat,
    BlockedPlaces,
    BlockedPool,
    BlockedSpread,
    ClearFrame,
    ToBlocked,
    ToPlain,
)
from cgraph.ops.physical.conv import BlockedConv, ConvEpilogue, pack_filters, packed_bias
from cgraph.ops.physical.conv_transpose import BlockedConvTranspose, BlockedResize, transposed_bias
from cgraph.ops.physical.filters import BlockedConvFilters, PackFilters
from cgraph.ops.physical.form import NO_HALO, Form, Halo
from cgraph.ops.physical.regions import BlockedRoiAlign, BlockedRoiAlignGrad
from cgraph.ops.pool import MaxPool, MaxPoolPlaces, SpreadToPlaces
from cgraph.ops.regions import RoiAlign, RoiAlignGrad
from cgraph.ops.resize import Resize
from cgraph.ops.shape import BroadcastTo, broadcast_to, reshape
from cgraph.ops.slicing import Slice
from cgraph.passes.conv_layer import (
    PLAIN_CHANNELS,
    gradient_layer_of,
    is_transposed,
    layer_of,
    reads_plain,
    transposed_of,
)
from cgraph.record import replace


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
        return Const(form.block(x.op.array), copy=False) if isinstance(x.op, ConstOp) else apply(ToBlocked(form), x)

    def add_blocked(self, node: Node) -> None:
        """A node whose result lies in blocks."""
        if is_transposed(node):
            self._blocked[node] = self._transposed(node)
        elif isinstance(node.op, ConvEpilogue):
            self._blocked[node] = self._conv(node)
        elif isinstance(node.op, Resize):
            x = node.operands[0]
            resized = BlockedResize(node.op, self.forms[x], self.forms[node])
            self._blocked[node] = apply(resized, self._blocked[x])
        elif isinstance(node.op, MaxPoolPlaces | SpreadToPlaces):
            self._blocked[node] = self._places(node)
        elif isinstance(node.op, Concat):
            self._blocked[node] = self._concat(node)
        elif isinstance(node.op, Pointwise):
            self._blocked[node] = self._pointwise(node)
        elif isinstance(node.op, RoiAlign | RoiAlignGrad):
            self._blocked[node] = self._regions(node)
        else:
            self._blocked[node] = self._pool(node)

    def add_pixel_sum(self, node: Node) -> None:
        """The sum over all pixels, perhaps of all images, of a blocked value; its frame is zero and is summed too."""
        x = node.operands[0]
        form = self.forms[x]
        total = apply(node.op, self._blocked[x])
        flat = reshape(total, (-1, form.shape[1] * form.lanes))
        sliced = apply(Slice((0, 0), (1, 1), (flat.shape[0], form.c)), flat) if flat.shape[1] != form.c else flat
        self._plain[node] = reshape(sliced, node.shape)

    def add_filter_grad(self, node: Node) -> None:
        """The gradient of a convolution for its filters, which is a plain value."""
        x, g = node.operands
        plain = x.shape[1] <= PLAIN_CHANNELS and x not in self._blocked
        shape = gradient_layer_of(node, self.target, plain)
        source = None if plain else self._source_form(x, shape.window.halo(*x.shape[2:]))
        given = self._source_form(g, NO_HALO)
        images = self.plain(x) if source is None else self.in_form(x, source)
        made = BlockedConvFilters(FilterGrad(shape, x.shape[0]), source, given)
        self._plain[node] = apply(made, images, self.in_form(g, given))

    # -- one op each ----------------------------------------------------------------------------------------------
    def _conv(self, node: Node) -> Node:
        op, x = node.op, node.operands[0]
        assert isinstance(op, ConvEpilogue)
        scale, bias, residual = op.operands(node.operands)
        plain = reads_plain(node) and x not in self._blocked
        shape = layer_of(node, self.target, plain)
        result = self.forms[node]
        if plain:
            source, images = None, self.plain(x)
        else:
            source = self._source_form(x, shape.window.halo(*x.shape[2:]))
            images = self.in_form(x, source)
        given = node.operands[1].op
        tile = winograd_rule(shape, x.shape[0]) if self.winograd and isinstance(given, ConstOp) else 0
        if isinstance(given, ConstOp):
            packed = pack_filters(shape, x.shape[0], tile, given.array, array_of(scale))
            filters: Node = Const(packed, copy=False)
        else:
            filters = apply(PackFilters(shape), self.plain(node.operands[1]))
        operands = [images, filters, Const(packed_bias(shape, array_of(bias)), copy=False)]
        kept = None
        if residual is not None:
            kept = self.forms.get(residual, replace(result, halo=NO_HALO))
            operands.append(self.in_form(residual, kept))
        made = BlockedConv(shape, tile, x.shape[0], source, result, kept, op.activation)
        return apply(made, *operands)

    def _transposed(self, node: Node) -> Node:
        op, x = node.op, node.operands[0]
        assert isinstance(op, ConvEpilogue)
        scale, bias, _ = op.operands(node.operands)
        shape = transposed_of(node, self.target)
        source = self._source_form(x, shape.halo())
        if isinstance(node.operands[1].op, ConstOp):
            packed = pack_transposed(shape, node.operands[1].op.array, array_of(scale))
            filters: Node = Const(packed, copy=False)
        else:
            filters = apply(PackFilters(shape), self.plain(node.operands[1]))
        made = BlockedConvTranspose(shape, source, self.forms[node], op.activation)
        biases = Const(transposed_bias(shape, array_of(bias)), copy=False)
        return apply(made, self.in_form(x, source), filters, biases)

    def _source_form(self, x: Node, halo: Halo) -> Form:
        """The form in which a convolution reads `x`: the one it has, or one with the frame that is read."""
        if x in self.forms:
            return self.forms[x]
        code = code_of(x.dtype)
        return Form(*x.shape, self.target.lanes_of(code), code, halo)  # type: ignore[call-arg,arg-type]

    def _pool(self, node: Node) -> Node:
        op, x = node.op, node.operands[0]
        assert isinstance(op, MaxPool | AvgPool)
        window = Window(op.window, op.stride, op.pad, op.dilation)  # type: ignore[arg-type]
        kind, include = ("mean", op.count_pad) if isinstance(op, AvgPool) else ("max", False)
        made = BlockedPool(kind, window, include, self.forms[x], self.forms[node])
        return apply(made, self._blocked[x])

    def _places(self, node: Node) -> Node:
        """Where windows have their largest elements, or elements added up there."""
        op, form, x = node.op, self.forms[node], node.operands[0]
        assert isinstance(op, MaxPoolPlaces | SpreadToPlaces)
        window = Window(op.window, op.stride, op.pad, op.dilation)  # type: ignore[arg-type]
        if isinstance(op, MaxPoolPlaces):
            return apply(BlockedPlaces(window, self.forms[x], form), self._blocked[x])
        g = node.operands[1]
        given = self._source_form(g, NO_HALO)
        return apply(BlockedSpread(window, self.forms[x], given, form), self._blocked[x], self.in_form(g, given))

    def _regions(self, node: Node) -> Node:
        """What boxes see of images of several sizes, or the gradient for those of one."""
        op, (boxes, images) = node.op, (node.operands[:3], node.operands[3:])
        operands = [*(self.plain(x) for x in boxes), *(self._blocked[x] for x in images)]
        forms = tuple(self.forms[x] for x in images)
        if isinstance(op, RoiAlign):
            return apply(BlockedRoiAlign(op, forms, self.forms[node]), *operands)
        assert isinstance(op, RoiAlignGrad)
        return apply(BlockedRoiAlignGrad(op, forms[0], self.forms[node]), *operands)

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
        shape = (1,) * (4 - source.ndim) + source.shape
        thin = replace(form, n=shape[0], h=1, w=1, halo=NO_HALO)
        if isinstance(source.op, ConstOp):
            channels = Const(thin.block(np.broadcast_to(source.op.array.reshape(shape), thin.logical)))
        else:
            channels = apply(ToBlocked(thin), broadcast_to(reshape(self.plain(source), shape), thin.logical))
        return apply(BroadcastTo(form.shape), channels)


def array_of(node: Node | None) -> np.ndarray | None:
    """The value of a constant, None for no node."""
    return None if node is None else node.op.array  # type: ignore[attr-defined]


def keeps_zero(node: Node) -> bool:
    """The op gives 0 where its operands in blocks are 0, whatever those that are spread hold."""
    return all(np.all(value_at_zero(node, spread) == 0) for spread in (0.7, -1.3))


def is_finite_beyond(node: Node) -> bool:
    """The op gives a number where there is no channel: filters of zeros make 0 of it, but NaN of anything else."""
    return bool(np.all(np.isfinite(value_at_zero(node, 0.0))))


def value_at_zero(node: Node, spread: float) -> np.ndarray:
    """The op's value where operands in blocks are 0, constants of one number are that, and others are `spread`."""
    values = []
    for x in node.operands:
        source = x.operands[0] if isinstance(x.op, BroadcastTo) else None
        one = source is not None and isinstance(source.op, ConstOp) and source.size == 1
        held = source.op.array.reshape(1) if one else np.full(1, 0.0 if source is None else spread)  # type: ignore[union-attr]
        values.append(held.astype(x.dtype))
    with np.errstate(all="ignore"):
        return np.asarray(node.op.meaning(*values))
