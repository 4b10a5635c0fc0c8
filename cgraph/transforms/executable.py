"""Executable: the Function for one structure of arguments, and the cache that all functions of `jit` share."""

import itertools
from collections.abc import Callable, Hashable
from contextlib import suppress
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary, finalize

import numpy as np

from cgraph.errors import GraphError
from cgraph.function import Function
from cgraph.ir.graph import Node
from cgraph.record import Record
from cgraph.storage.function_cache import FUNCTION_NBYTES, FunctionCache, nbytes_of
from cgraph.transforms.leaves import SETTINGS
from cgraph.transforms.tracer import Tracer
from cgraph.transforms.trees import LEAF, unflatten

MOST, MOST_NBYTES = 256, 2 << 30
SERIALS = itertools.count()
CONSTANTS = (np.ndarray, np.generic, bool, int, float, complex, *SETTINGS)
"""Classes of results that are returned as they are."""


class Executable:
    """A Function with the structure of its results.

    Fields
        function: the Function; None if nothing that the user's function returns has to be computed
        run: calls it with all leaves of the arguments, and returns its outputs
        structure: of the result
        leaves: per leaf of the result its position among the Function's outputs, or a constant in a list of one
        streams: number of random streams among the arguments, whose new keys are the last outputs
    """

    __slots__ = ("function", "is_plain", "run", "leaves", "streams", "structure")

    def __init__(self, function: Function | None, structure: Any, leaves: list[Any], streams: int) -> None:
        self.function, self.structure, self.leaves, self.streams = function, structure, leaves, streams
        self.run: Callable[..., list[np.ndarray]] = no_outputs if function is None else function
        self.is_plain = structure is LEAF and leaves == [0] and not streams

    def result(self, values: list[np.ndarray]) -> Any:
        """Return the result that a user gets from the Function's outputs."""
        if self.is_plain:
            value = values[0]
            return value if value.ndim else value[()]
        return unflatten(self.structure, iter([self._leaf(x, values) for x in self.leaves]))

    def _leaf(self, leaf: Any, values: list[np.ndarray]) -> Any:
        if type(leaf) is list:
            return leaf[0].copy() if isinstance(leaf[0], np.ndarray) else leaf[0]
        value = values[leaf]
        return value if value.ndim else value[()]


def no_outputs(*_: Any) -> list[np.ndarray]:
    """Run nothing."""
    return []


class CacheInfo(Record):
    """The cache of all functions of `jit`.

    Fields
        entries, nbytes: compiled Functions, and the bytes of their arenas, steps and constants
        most, most_nbytes: limits, beyond which the least recently used ones are dropped
        compilations: Functions compiled by this process
    """

    entries: int
    nbytes: int
    most: int
    most_nbytes: int
    compilations: int


class Executables(FunctionCache):
    """Executables by the function's number and the structure of its arguments. Mutable, shared by threads."""

    def __init__(self, most: int, most_nbytes: int) -> None:
        super().__init__(most, most_nbytes)
        self.compilations = 0

    def add(self, key: Hashable, executable: Executable) -> None:
        """Add an executable that has just been compiled."""
        function = executable.function
        self.compilations += function is not None
        planned = function is not None and function.compiled is not None
        self.keep(key, executable, nbytes_of(function) if planned else FUNCTION_NBYTES)

    def drop(self, number: int) -> None:
        """Remove the executables of one function."""
        for key in [key for key in list(self._entries) if key[0] == number]:  # type: ignore[index]
            with suppress(KeyError):  # another thread has removed it
                del self._entries[key]

    def info(self) -> CacheInfo:
        """Return counts and limits."""
        return CacheInfo(len(self), self.nbytes, self.most, self.most_nbytes, self.compilations)


EXECUTABLES = Executables(MOST, MOST_NBYTES)
NUMBERS: "WeakKeyDictionary[Callable, dict[Hashable, int]]" = WeakKeyDictionary()
"""For each function the numbers of its transformations, so that ``cg.grad(f)`` written twice is compiled once."""


def number_of(f: Any, recipe: Hashable) -> int:
    """Return the number of a function under a recipe of transformations and options; it ends with the function."""
    if type(f) is not FunctionType:
        return next(SERIALS)
    numbers = NUMBERS.setdefault(f, {})
    try:
        number = numbers.get(recipe)
    except TypeError:  # an option that is not hashable
        return next(SERIALS)
    if number is None:
        number = numbers[recipe] = next(SERIALS)
        finalize(f, EXECUTABLES.drop, number).atexit = False
    return number


def node_or_constant(x: Any) -> Any:
    """Return a leaf of a result as a node; a leaf that is not computed as a list with a copy of it.

    GraphError for an object that may hide traced arrays, such as an iterator or a set.
    """
    if isinstance(x, Tracer):
        return x.node
    if isinstance(x, Node):
        return x
    if not isinstance(x, CONSTANTS):
        raise GraphError(
            f"the function returns {x!r:.60} of {type(x).__name__}, which is neither an array nor a tuple, list, dict "
            "or dataclass of arrays; return one of these, such as list(x) of an iterator, or the arrays of an object"
        )
    return [x.copy() if isinstance(x, np.ndarray) else x]
