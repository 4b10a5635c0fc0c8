"""Layer: a record of parameters and layers. Calling it on nodes builds its part of the graph.

A model is a tree of layers. It holds no graph and no state of its own: values live in its Vars, whose names are their
paths in the tree. A layer that occurs twice is one layer with one set of weights.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import numpy as np

from cgraph import Node, Record, Var
from cgraph.storage.cell import commit, new_value
from nn.init import GLOROT_UNIFORM, Initialiser
from nn.mode import Mode
from nn.torch_names import TorchNames

L = TypeVar("L", bound="Layer")


class Sample(NamedTuple):
    """Shape and dtype of one sample of an input, without the batch axis."""

    shape: tuple[int, ...]
    dtype: str = "float32"


class Parameter(Var):
    """A Var of a layer, which knows how it starts.

    Fields
        start: its initialiser, asked once by `initialise`
        trained: gradients change it; otherwise update edges do (running statistics)
    """

    __slots__ = ("start", "trained")

    def __init__(
        self, shape: Any, start: Initialiser = GLOROT_UNIFORM, trained: bool = True, name: str | None = None
    ) -> None:
        super().__init__(shape, "float32", name)
        self.start, self.trained = start, trained

    def rename(self, name: str) -> None:
        """Give it the name that messages and pictures show."""
        object.__setattr__(self.op, "label", name)


class Layer(Record, eq=False):
    """A part of a network. A subclass has its sizes as fields, makes its Parameters (declared by
    ``field(init=False)``) in ``__post_init__``, and has `build`.

    ``layer(x)`` builds for inference, ``layer(x, mode=Mode(training=True))`` for training.
    """

    def build(self, *xs: Node, mode: Mode) -> Any:
        """The result's node, or a tuple of them."""
        raise NotImplementedError(f"{type(self).__name__} has no build")

    def __call__(self, *xs: Node, mode: Mode | None = None) -> Any:
        mode = mode or Mode()
        result = self.build(*xs, mode=mode)
        mode.on_build(self, xs, result)
        return result

    def hold(self, **members: Any) -> None:
        """Set fields of a frozen layer while it is being made."""
        for name, value in members.items():
            object.__setattr__(self, name, value)

    def from_torch(self, names: TorchNames) -> dict[str, np.ndarray]:
        """Values by path, of the PyTorch module of the same kind; a layer with other names there says which.

        KeyError with the whole name of an array that is not there.
        """
        return {path: x for name, value in vars(self).items() for path, x in torch_values(value, name, names)}

    @property
    def samples(self) -> tuple[Sample, ...] | None:
        """One sample of each input; None when several sizes will do."""
        return None

    def variables(self) -> dict[str, Parameter]:
        """Every Parameter by its path, each once."""
        by_path: dict[str, Parameter] = {}
        visited: set[int] = set()
        for path, value in members(self):
            if isinstance(value, Parameter) and id(value) not in visited:
                visited.add(id(value))
                by_path[path] = value
        return by_path

    def parameters(self, frozen: tuple[str, ...] = ()) -> dict[str, Parameter]:
        """Every trained Parameter by its path, but for those whose path begins as one of `frozen`."""
        return {path: x for path, x in self.variables().items() if x.trained and not path.startswith(frozen)}

    def layers(self) -> dict[str, "Layer"]:
        """Every layer below this one, and this one with the empty path, each at its first path."""
        by_identity: dict[int, tuple[str, Layer]] = {id(self): ("", self)}
        for path, value in members(self):
            if isinstance(value, Layer):
                by_identity.setdefault(id(value), (path, value))
        return dict(by_identity.values())

    @property
    def size(self) -> int:
        """Trained values."""
        return sum(x.size for x in self.parameters().values())


def members(layer: Layer, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Parameters and layers of a tree with their paths, depth first in the order in which each layer was given them."""
    for name, value in vars(layer).items():
        yield from members_in(value, prefix + name)


def members_in(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Parameter):
        yield path, value
    elif isinstance(value, Layer):
        yield path, value
        yield from members(value, path + ".")
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from members_in(item, f"{path}.{i}")


def torch_values(value: Any, name: str, names: TorchNames) -> Iterator[tuple[str, np.ndarray]]:
    """Values of a field: a Parameter's, or those of all layers in it."""
    if isinstance(value, Parameter):
        yield name, names[name]
    elif isinstance(value, Layer):
        yield from ((f"{name}.{path}", x) for path, x in value.from_torch(names.below(name)).items())
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from torch_values(item, f"{name}.{i}", names)


def initialise(layer: L, weights: int | str | None = 0) -> L:
    """Give every Parameter without a value its first one, all at once; values that are there stay.

    Parameters
        weights: a seed; ``"zeros"`` for zeros (quick, for measuring); None leaves the Parameters empty, which is
            enough to build and plan a graph
    A weight's value depends on the seed and its path alone, so adding a layer does not change the others. The path also
    becomes the Parameter's name in messages and pictures.
    """
    variables = layer.variables()
    for path, x in variables.items():
        x.rename(path)
    if weights is not None:
        empty = [(path, x) for path, x in variables.items() if not x.is_assigned]
        commit(
            [x.cell for _, x in empty], [new_value(first_value(x, path, weights), x.spec, path) for path, x in empty]
        )
    return layer


def first_value(x: Parameter, path: str, weights: int | str) -> np.ndarray:
    if weights == "zeros":
        return np.zeros(x.shape, x.dtype)
    if isinstance(weights, str):
        raise ValueError(f"weights is {weights!r}; give a seed, 'zeros' or None")
    return x.start(x.shape, np.random.default_rng([weights, crc32(path.encode())]))


def map_parameters(layer: L, change: Callable[[Parameter], Any]) -> L:
    """The same tree with ``change(parameter)`` in place of every Parameter; shared layers stay shared."""
    return _map_parameters(layer, change, {})


def _map_parameters(value: Any, change: Callable[[Parameter], Any], copies: dict[int, Any]) -> Any:
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, Parameter):
        copies[id(value)] = change(value)
    elif isinstance(value, Layer):
        copy = copies[id(value)] = object.__new__(type(value))
        copy.hold(**{name: _map_parameters(x, change, copies) for name, x in vars(value).items()})
    elif isinstance(value, tuple):
        return tuple(_map_parameters(x, change, copies) for x in value)
    else:
        return value
    return copies[id(value)]
