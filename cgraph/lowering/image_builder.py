"""The physical graph under construction: each node as a plain value, channel-blocked, or both."""

from collections.abc import Callable, Hashable, Mapping

import numpy as np

from cgraph.dtypes.convert import code_of
from cgraph.ir.graph import Node, apply
from cgraph.kernels.conv.transpose_calls import TransposedShape
from cgraph.kernels.target import Target
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.lowering.options import LoweringOptions
from cgraph.ops.leaf import Const, ConstOp
from cgraph.ops.physical.form import Form, Halo
from cgraph.ops.physical.lanes import ToBlocked, ToPlain


class ImageBuilder:
    """The physical graph under construction. Changes: nodes are added in running order.

    Fields
        forms: the form of each channel-blocked logical node
        target: the target of the kernels
        tiles: the geometry of each convolution on tile registers
    """

    def __init__(
        self,
        forms: dict[Node, Form],
        target: Target,
        options: LoweringOptions,
        tiles: Mapping[Node, ConvShape | TransposedShape] | None = None,
    ) -> None:
        self.forms, self.target, self.options, self.tiles = forms, target, options, tiles or {}
        self._plain: dict[Node, Node] = {}
        self._laned: dict[Node, Node] = {}
        self._packed: dict[Hashable, Node] = {}

    def add(self, node: Node, physical: Node) -> None:
        """Add the physical node of a logical one."""
        (self._laned if node in self.forms else self._plain)[node] = physical

    def plain(self, node: Node) -> Node:
        """Return the node's value as ``[n, c, h, w]``, converted once."""
        if node not in self._plain:
            self._plain[node] = apply(ToPlain(self.forms[node]), self._laned[node])
        return self._plain[node]

    def laned(self, node: Node) -> Node:
        """Return the value of a channel-blocked node in its own form."""
        return self._laned[node]

    def in_form(self, node: Node, form: Form) -> Node:
        """Return the node's value in a blocked form; converted once per form."""
        if self.forms.get(node) == form:
            return self._laned[node]
        x = self.plain(node)
        return (
            Const(form.to_blocked(x.op.array), copy=False) if isinstance(x.op, ConstOp) else apply(ToBlocked(form), x)
        )

    def packed(self, key: Hashable, pack: Callable[[], np.ndarray]) -> Node:
        """Return a packed constant, shared by all layers that read the same filters in the same order.

        Parameters
            key: everything that determines the constant
        """
        if key not in self._packed:
            self._packed[key] = Const(self.options.keep(pack()), copy=False)
        return self._packed[key]

    def form_of(self, x: Node, halo: Halo) -> Form:
        """Return the form in which `x` is read: its own, or one with this halo."""
        if x in self.forms:
            return self.forms[x]
        code = code_of(x.dtype)
        return Form(*x.shape, self.target.channels_of(code), code, halo)  # type: ignore[call-arg,arg-type]


def array_of(node: Node | None) -> np.ndarray | None:
    """Return the value of a constant; None for None."""
    return None if node is None else node.op.array  # type: ignore[attr-defined]
