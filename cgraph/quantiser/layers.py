"""The layers that are quantised: convolutions of images and matrix products with constant weights."""

from collections.abc import Mapping, Sequence

import numpy as np

from cgraph.ir.graph import Node
from cgraph.ops.arithmetic import Add
from cgraph.ops.conv import Conv2d
from cgraph.ops.linear import Matmul
from cgraph.ops.shape import unbroadcast
from cgraph.passes.fold_constants import constant_of
from cgraph.passes.fuse_epilogues import Chain, extend
from cgraph.passes.integers.patterns import IsInner, bound
from cgraph.passes.layer_names import layer_name
from cgraph.record import Record


class WeightLayer(Record, eq=False):
    """A convolution or product, with the factors and terms of its channels downstream.

    Fields
        name: its weights' name, or its op's and a number
        core: the node of the op
        end: the node whose value is ``op(x, weights) + bias``
        last: the last node of the bounds (relu, clip) that follow
        weights: float32, ``[k, c, r, s]`` or ``[inputs, outputs]``
        bias: float32, one for each channel of the result
    """

    name: str
    core: Node
    end: Node
    last: Node
    weights: np.ndarray
    bias: np.ndarray

    @property
    def x(self) -> Node:
        """The value that the layer reads."""
        return self.core.operands[0]

    @property
    def axis(self) -> int:
        """The axis of the weights that counts the result's channels."""
        return 0 if isinstance(self.core.op, Conv2d) else 1


def layers_of(order: Sequence[Node], users: Mapping[Node, Sequence[Node]], is_inner: IsInner) -> list[WeightLayer]:
    """Return the layers of float32 with constant weights, in running order."""
    layers: list[WeightLayer] = []
    for core in order:
        if not isinstance(core.op, Conv2d | Matmul) or core.dtype != np.float32 or core.size == 0:
            continue
        right = core.operands[1] if isinstance(core.op, Conv2d) else unbroadcast(core.operands[1])
        weights = constant_of(right)
        if weights is None or weights.ndim != (4 if isinstance(core.op, Conv2d) else 2):
            continue
        fold = fold_conv if isinstance(core.op, Conv2d) else fold_product
        end, weights, bias = fold(core, weights, users, is_inner)
        name = layer_name(right, core.op.name, {x.name for x in layers})
        layers.append(WeightLayer(name, core, end, last_bound(end, users, is_inner), weights, bias))
    return layers


def fold_conv(
    core: Node, weights: np.ndarray, users: Mapping[Node, Sequence[Node]], is_inner: IsInner
) -> tuple[Node, np.ndarray, np.ndarray]:
    """Return the last of the factors and terms of a convolution's channels, and filters and bias with all of them."""
    chain = Chain(core, core)
    while is_inner(chain.last):
        longer = extend(chain, users[chain.last][0])
        if longer is None or not longer.is_open:
            break
        chain = longer
    if chain.scale is not None:
        weights = weights * chain.scale.astype("float32")[:, None, None, None]
    bias = np.zeros(len(weights)) if chain.shift is None else chain.shift
    return chain.last, weights, bias.astype("float32")


def fold_product(
    core: Node, weights: np.ndarray, users: Mapping[Node, Sequence[Node]], is_inner: IsInner
) -> tuple[Node, np.ndarray, np.ndarray]:
    """Return the node that adds a row to a product, and weights and bias with it."""
    user = users[core][0] if is_inner(core) else core
    for row in user.operands if isinstance(user.op, Add) else ():
        source = unbroadcast(row)
        value = constant_of(source)
        if value is not None and source.shape[-1:] == (core.shape[-1],) and source.size == core.shape[-1]:
            return user, weights, value.reshape(-1).astype("float32")
    return core, weights, np.zeros(core.shape[-1], "float32")


def last_bound(node: Node, users: Mapping[Node, Sequence[Node]], is_inner: IsInner) -> Node:
    """Return the last of the bounds (relu, clip) downstream of a node that have no other consumer."""
    while is_inner(node) and (pair := bound(users[node][0])) and pair[0] is node:
        node = users[node][0]
    return node
