"""Strings of a call: inputs become codes before a run, codes of outputs become strings after it."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import Any

import numpy as np

from cgraph.errors import InputError
from cgraph.record import Record
from cgraph.running.text_features import TextInput


class StringCodes(Record, eq=False):
    """The strings of a model.

    Fields
        numbers: code of each string
        inputs, outputs: the inputs, and the indices of outputs, that hold codes
        texts: those of the inputs whose strings a call splits or changes first
    """

    numbers: Mapping[str, int]
    inputs: frozenset[Any]
    outputs: frozenset[int]
    texts: Mapping[Any, TextInput] = field(default_factory=dict)

    @cached_property
    def words(self) -> np.ndarray:
        """The strings in the order of their codes."""
        return array_of(list(self.numbers))

    def words_with(self, more: Mapping[str, int]) -> np.ndarray:
        """Return the strings in the order of their codes, then those that only a call has."""
        return array_of([*self.numbers, *more])

    def strings(self, x: Any, value: Any) -> np.ndarray:
        """Return the strings of an input. InputError if it has another shape or other elements."""
        return array_of_strings(value, self.shape_of(x), x.name)

    def shape_of(self, x: Any) -> tuple[int, ...]:
        """Return the shape of an input of strings."""
        return tuple(self.texts[x].shape) if x in self.texts else x.spec.shape

    def encode(self, x: Any, strings: np.ndarray, more: dict[str, int]) -> np.ndarray:
        """Return what a run reads of an input's strings, an array of objects of its shape.

        Parameters
            more: gains the strings that the model does not have
        Raises
            InputError: an element is not a string
        """
        if x in self.texts:
            codes = partial(codes_of, numbers=self.numbers, more=more, name=x.name)
            return self.texts[x].encode(self.strings(x, strings), codes)
        return codes_of(strings, self.numbers, more, x.name)


def array_of_strings(value: Any, shape: Sequence[int], name: str) -> np.ndarray:
    """Return an input of strings as an array of objects. InputError if it has another shape or other elements."""
    array = np.asarray(value, dtype=object)
    if array.shape != tuple(shape):
        raise InputError(f"{name} has shape {list(array.shape)}, not {list(shape)}: pass strings of that shape")
    for word in array.reshape(-1):
        check_string(word, name)
    return array


def check_string(word: Any, name: str) -> None:
    """Raise InputError unless an element of an input is a string."""
    if not isinstance(word, str):
        raise InputError(f"{name} holds {word!r:.40} of {type(word).__name__}, not a string: convert it with str")


def codes_of(array: np.ndarray, numbers: Mapping[str, int], more: dict[str, int], name: str) -> np.ndarray:
    """Return the codes of strings, int64. InputError if an object of the array is not a string.

    Parameters
        numbers: the codes of the strings that the model has
        more: gains the codes of others
        name: of the input
    """
    words = array.reshape(-1).tolist()
    try:
        codes: list[Any] = list(map(numbers.get, words))
    except TypeError:  # an object without a hash
        codes = [None] * len(words)
    if None in codes:
        first = len(numbers)
        for i, word in enumerate(words):
            if codes[i] is None:
                check_string(word, name)
                codes[i] = more.setdefault(word, first + len(more))
    return np.array(codes, np.int64).reshape(array.shape)


def strings_for(codes: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return the strings of codes, as an array of objects. InputError for a code without one."""
    flat = codes.ravel().tolist()
    if flat and not 0 <= min(flat) <= max(flat) < len(words):
        raise InputError(f"an output of strings has a number outside the {len(words)} strings of the file and the call")
    return words[codes] if codes.ndim else array_of([words[codes]]).reshape(())


def array_of(words: Sequence[str]) -> np.ndarray:
    """Return strings as an array of objects ``[n]``."""
    array = np.empty(len(words), object)
    array[:] = words
    return array
