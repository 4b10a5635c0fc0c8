"""Layer: a record of parameters and layers. Calling it on nodes builds its part of the graph.

A model is a tree of layers. It has no graph and no state of its own: its Vars store the values, and their names are
their paths in the tree. A layer that occurs twice is one layer with one set of weights.
"""

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar
from zlib import crc32

import numpy as np

from cgraph import Node, Record, Var
from cgraph.ir.origin import NAME, keeps_origin
from cgraph.storage.cell import commit, new_value
from nn.checks import check_kind
from nn.init import GLOROT_UNIFORM, Initialiser
from nn.methods import missing_method
from nn.mode import Mode
from nn.torch_names import TorchNames

L = TypeVar("L", bound="Layer")
PATHS: ContextVar[Mapping[int, str]] = ContextVar("paths", default=MappingProxyType({}))
"""Paths of the layers of the models that are built, by their identity."""
Weights = int | str | None
"""First values of Parameters: a seed, ``"zeros"``, or None for none; see `initialise`."""


class Sample(NamedTuple):
    """Shape and dtype of one sample of an input, without the batch axis."""

    shape: tuple[int, ...]
    dtype: str = "float32"


class Parameter(Var):
    """A Var of a layer, with its initialiser.

    Fields
        start: its initialiser, which `initialise` calls once
        trained: gradients change it; otherwise only update edges do (running statistics)
    """

    __slots__ = ("start", "trained")

    def __init__(
        self, shape: Any, start: Initialiser = GLOROT_UNIFORM, trained: bool = True, name: str | None = None
    ) -> None:
        super().__init__(shape, "float32", name)
        self.start, self.trained = start, trained

    def rename(self, name: str) -> None:
        """Set the name that messages and pictures show."""
        object.__setattr__(self.op, "label", name)


class Layer(Record, eq=False):
    """A part of a network. A subclass declares its sizes as fields and its Parameters with ``field(init=False)``,
    creates the Parameters in ``__post_init__``, and defines `build`.

    ``layer(x)`` builds for inference, ``layer(x, mode=Mode(training=True))`` for training.

    Raises
        InputError: a bool field has another value, such as a number of layers, which PyTorch takes in that position
    """

    _switches: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._switches += tuple(name for name, kind in cls.__annotations__.items() if kind is bool)

    def __new__(cls, *values: Any, **named: Any) -> Any:
        fields = dict(zip(cls._fields, values)) | named
        for name in cls._switches:
            check_kind(f"{cls.__name__}.{name}", fields.get(name, False), bool | np.bool_, "True or False")
        return super().__new__(cls)

    def build(self, *xs: Node, mode: Mode) -> Any:
        """Return the result node, or a tuple of nodes."""
        raise NotImplementedError(f"{type(self).__name__} has no build. Define build(self, *xs, mode).")

    def __call__(self, *xs: Node, mode: Mode | None = None) -> Any:
        mode = mode or Mode()
        result = self._named_build(xs, mode)
        mode.on_build(self, xs, result)
        return result

    @keeps_origin
    def _named_build(self, xs: tuple[Node, ...], mode: Mode) -> Any:
        """Build with this layer's path as the name of its nodes: its path below the layer that was called first."""
        paths = PATHS.get()
        if id(self) not in paths:
            paths = {id(x): path for path, x in self.layers().items()} | dict(paths)
            PATHS.set(paths)
        NAME.set(paths[id(self)] or NAME.get() or type(self).__name__)
        return self.build(*xs, mode=mode)

    if not TYPE_CHECKING:  # for a type checker, a layer would have every attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_method(type(self).__name__, name)

    def hold(self, **members: Any) -> None:
        """Set fields of a frozen layer in ``__post_init__``."""
        for name, value in members.items():
            object.__setattr__(self, name, value)

    def from_torch(self, names: TorchNames) -> dict[str, np.ndarray]:
        """Return values by path from a PyTorch module of the same kind. Layers with other names there override it.

        KeyError with the full name of a missing array.
        """
        return {path: x for name, value in vars(self).items() for path, x in torch_values(value, name, names)}

    @property
    def samples(self) -> tuple[Sample, ...] | None:
        """One sample of each input; None when the model accepts several shapes."""
        return None

    def variables(self) -> dict[str, Parameter]:
        """Return every Parameter by its path, each once."""
        by_path: dict[str, Parameter] = {}
        visited: set[int] = set()
        for path, value in members(self):
            if isinstance(value, Parameter) and id(value) not in visited:
                visited.add(id(value))
                by_path[path] = value
        return by_path

    def parameters(self, frozen: tuple[str, ...] = ()) -> dict[str, Parameter]:
        """Return every trained Parameter by its path, except those whose path begins with one of `frozen`."""
        return {path: x for path, x in self.variables().items() if x.trained and not path.startswith(frozen)}

    def input_dtype(self, dtype: Any) -> np.dtype:
        """Return the dtype in which the network takes arrays of `dtype`: float32 for float64, NumPy's default.

        A network with a Parameter of float64, or without Parameters, keeps float64.
        """
        kinds = {x.dtype for x in self.variables().values()}
        narrow = np.dtype(dtype) == np.float64 and kinds and np.dtype("float64") not in kinds
        return np.dtype("float32" if narrow else dtype)

    def layers(self) -> dict[str, "Layer"]:
        """Return this layer with the empty path and every layer below it, each at its first path."""
        by_identity: dict[int, tuple[str, Layer]] = {id(self): ("", self)}
        for path, value in members(self):
            if isinstance(value, Layer):
                by_identity.setdefault(id(value), (path, value))
        return dict(by_identity.values())

    @property
    def size(self) -> int:
        """Number of trained values."""
        return sum(x.size for x in self.parameters().values())


def members(layer: Layer, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield Parameters and layers of a tree with their paths, depth first, in the order of their fields."""
    for name, value in vars(layer).items():
        yield from members_in(value, prefix + name)


def members_in(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the Parameters and layers of a field."""
    if isinstance(value, Parameter):
        yield path, value
    elif isinstance(value, Layer):
        yield path, value
        yield from members(value, path + ".")
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from members_in(item, f"{path}.{i}")


def torch_values(value: Any, name: str, names: TorchNames) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the values of a field: a Parameter's, or those of all layers in it."""
    if isinstance(value, Parameter):
        yield name, names[name]
    elif isinstance(value, Layer):
        yield from ((f"{name}.{path}", x) for path, x in value.from_torch(names.below(name)).items())
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from torch_values(item, f"{name}.{i}", names)


def check_model(model: Any) -> None:
    """Raise InputError unless `model` is a Layer."""
    check_kind("model", model, Layer, "a Layer, with its Parameters")


def initialise(layer: L, weights: Weights = 0) -> L:
    """Assign an initial value to every Parameter that has none, to all at once; other values stay unchanged.

    Parameters
        weights: a seed; ``"zeros"`` for zeros (quick, for measuring); None leaves the Parameters empty, which is
            enough to build and plan a graph

    A weight's value depends only on the seed and its path, so adding a layer does not change the others. The path also
    becomes the Parameter's name in messages and pictures.
    """
    check_model(layer)
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
    """Return the first value of a Parameter for a seed, or zeros."""
    if weights == "zeros":
        return np.zeros(x.shape, x.dtype)
    if isinstance(weights, str):
        raise ValueError(f"weights is {weights!r}. Pass a seed, 'zeros' or None.")
    return x.start(x.shape, np.random.default_rng([weights, crc32(path.encode())]))


def map_parameters(layer: L, change: Callable[[Parameter], Any]) -> L:
    """Return the same tree with ``change(parameter)`` in place of every Parameter; shared layers stay shared."""
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
