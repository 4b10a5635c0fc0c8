"""What a layer of Keras is made of: its arrays, its operands and masks, and what it returns."""

from collections.abc import Callable
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from cgraph.errors import FormatError
from cgraph.ir.graph import OPS, Node
from cgraph.kernels.mapped import in_c_order
from cgraph.ops import activation
from cgraph.ops.arithmetic import maximum
from cgraph.ops.elementary import exp, sqrt
from cgraph.ops.leaf import Const
from cgraph.ops.softmax import softmax
from cgraph.record import Record

Options = dict[str, Any]
Weights = dict[str, np.ndarray]
ACTIVATIONS = {
    **{name: OPS[name] for name in ("relu", "relu6", "sigmoid", "tanh", "elu", "selu", "softplus", "softsign")},
    "exponential": exp,
    "gelu": activation.gelu,
    "hard_sigmoid": lambda x: activation.hard_sigmoid(x, 1 / 6),
    "hard_sigmoid of Keras 2": activation.hard_sigmoid,
    "hard_silu": activation.hard_swish,
    "hard_swish": activation.hard_swish,
    "leaky_relu": lambda x: activation.leaky_relu(x, 0.2),
    "mish": activation.mish,
    "silu": activation.swish,
    "softmax": lambda x: softmax(x, axis=axis_of(-1, x)),
    "swish": activation.swish,
}
SMALLEST_LENGTH = 1e-24  # the square of the smallest length of a vector that is divided by its length
SWITCHES = {"gamma": "scale", "beta": "center", "bias": "use_bias", "scale": "use_scale"}
"""Options of a layer without which it lacks an array."""


class LayerUse(Record):
    """One use of a layer.

    Fields
        options: its settings
        weights: its arrays by name
        xs: its operands
        named: further arguments: a node, a tuple of nodes, or True
        masks: for each operand which steps count, ``[n, t]`` of bools, or None
        named_masks: those of arguments by name that have one
    """

    options: Options
    weights: Weights
    xs: list[Node]
    named: dict[str, Any]
    masks: list[Node | None]
    named_masks: dict[str, Node]


class LayerResults(Record):
    """The results of a layer, and which of their steps count: ``[n, t]`` of bools, or None."""

    values: tuple[Node, ...]
    mask: Node | None = None


class KerasRule(Record):
    """How a layer becomes nodes: one of the classes below."""

    arrays: ClassVar[tuple[str, ...]] = ()
    takes_numbers: ClassVar[bool] = False

    def arrays_of(self, options: Options) -> list[str]:
        """Return the names of the arrays that a layer with these options has."""
        return [x for x in self.arrays if options.get(SWITCHES.get(x.rpartition("/")[2], ""), True)]

    def named(self, arrays: Weights) -> Weights:
        """Return a layer's arrays by the names of `arrays`, from those in its group of an HDF5 file by path."""
        return {path: x for path, x in arrays.items() if "/" not in path}

    def results(self, use: LayerUse) -> LayerResults:
        """Return what the layer returns. FormatError for arguments that it does not take."""
        raise NotImplementedError


class LayerRule(KerasRule):
    """How a layer with one result becomes a node.

    Fields
        build: returns the node, from the options, the arrays by name, and the operands
        arrays: names of its arrays, in the order of an archive; those of inner layers as ``cell/kernel``
        takes_numbers: if operands may be numbers
        keeps_mask: if the steps that count are those of its operands
    """

    build: Callable[[Options, Weights, list[Node]], Node]
    arrays: tuple[str, ...] = ()  # type: ignore[misc]
    takes_numbers: bool = False  # type: ignore[misc]
    keeps_mask: bool = False

    def results(self, use: LayerUse) -> LayerResults:
        """Return what the layer returns. FormatError for arguments that it does not take."""
        check_named(use, ())
        value = activate(self.build(use.options, use.weights, use.xs), activation_of(use.options))
        return LayerResults((value,), merged_mask(use.masks, use.options) if self.keeps_mask else None)


class SequenceRule(KerasRule):
    """How a layer with masks, named arguments or several results becomes nodes.

    Fields
        run: returns the results
        arrays: as in `LayerRule`
        names: arguments that it takes by name
        inner: the name of its inner layer in an archive, if it has one inner layer with all arrays
        groups: names of inner layers in an archive, by their names in an HDF5 file
    """

    run: Callable[[LayerUse], LayerResults]
    arrays: tuple[str, ...] = ()  # type: ignore[misc]
    names: tuple[str, ...] = ()
    inner: str = ""
    groups: dict[str, str] = {}  # noqa: RUF012 # nobody changes it

    def named(self, arrays: Weights) -> Weights:
        """Return a layer's arrays by the names of `arrays`, from those in its group of an HDF5 file by path."""
        weights: Weights = {}
        for path, x in arrays.items():
            group, _, name = path.rpartition("/")
            group = self.inner or self.groups.get(group, group)
            weights[f"{group}/{name}" if group else name] = x
        return {path: x for path, x in weights.items() if path in self.arrays}

    def results(self, use: LayerUse) -> LayerResults:
        """Return what the layer returns. FormatError for arguments that it does not take."""
        check_named(use, self.names)
        return self.run(use)


def check_named(use: LayerUse, names: tuple[str, ...]) -> None:
    """Raise FormatError if the layer is called with a named argument that is not in `names`."""
    for name in use.named:
        if name not in names:
            raise FormatError(f"its argument {name}= is not supported. Pass {', '.join(names) or 'none'} by name")


def is_keras3(options: Options) -> bool:
    """Return if Keras 3 has written the settings of a layer."""
    dtype = options.get("dtype")
    return isinstance(dtype, dict) and dtype.get("class_name") == "DTypePolicy"


def merged_mask(masks: list[Node | None], options: Options) -> Node | None:
    """Return the steps of a result that count.

    Keras 3: those that count in some operand, all if one has no mask. Keras 2: those that count in all that have one.
    """
    present = [x for x in masks if x is not None]
    if is_keras3(options):
        return reduce(OPS["logical_or"], present) if present and len(present) == len(masks) else None
    return reduce(OPS["logical_and"], present) if present else None


def activation_of(options: Options, option: str = "activation", default: str | None = None) -> str | None:
    """Return the name of an activation. The hard sigmoid of Keras 2 has another slope than that of Keras 3."""
    name = options.get(option, default)
    return f"{name} of Keras 2" if name == "hard_sigmoid" and not is_keras3(options) else name


def activate(x: Node, name: str | None) -> Node:
    if name in (None, "linear"):
        return x
    if name not in ACTIVATIONS:
        raise FormatError(f"activation {name!r} is not supported. Use {', '.join(ACTIVATIONS)} or linear")
    return ACTIVATIONS[name](x)


# -- the order of axes ------------------------------------------------------------------------------------------------


def channels_first(shape: list[Any]) -> tuple[Any, ...]:
    """Return a shape without the batch in the graph's order: images and volumes have their channels first."""
    return (shape[-1], *shape[:-1]) if len(shape) > 2 else tuple(shape)


def channels_last(x: Node) -> Node:
    """Return a value in Keras' order of axes."""
    return x.transpose((0, *range(2, x.ndim), 1)) if x.ndim > 3 else x


def from_channels_last(x: Node) -> Node:
    """Return a value in Keras' order of axes in the graph's order."""
    return x.transpose((0, x.ndim - 1, *range(1, x.ndim - 1))) if x.ndim > 3 else x


def axis_of(axis: int, x: Node) -> int:
    """Return an axis in the graph's order from one in Keras' order."""
    axis %= x.ndim
    if x.ndim < 4 or axis == 0:
        return axis
    return 1 if axis == x.ndim - 1 else axis + 1


def constant(x: np.ndarray) -> Node:
    """Return a Const of an array in a mapped file; an array in another order is copied piece by piece."""
    return Const(in_c_order(x), copy=False)


def per_channel(array: np.ndarray, x: Node) -> Node:
    """Return one number for each channel, or one for all, in a shape that broadcasts with `x`."""
    return Const(array.reshape(-1, *[1] * (x.ndim - 2)) if x.ndim > 3 else array.reshape(-1))


def with_bias(x: Node, weights: Weights) -> Node:
    bias = weights.get("bias")
    return x if bias is None else x + per_channel(bias, x)


def unit_length(x: Node, axes: tuple[int, ...]) -> Node:
    """Return vectors divided by their length, or by a small number where that is larger."""
    return x / sqrt(maximum((x * x).sum(axes, keepdims=True), SMALLEST_LENGTH))
