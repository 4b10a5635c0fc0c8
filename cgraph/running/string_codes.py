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
    def words(self) -> list[str]:
        """The strings in the order of their codes."""
        return list(self.numbers)

    def strings(self, x: Any, value: Any) -> np.ndarray:
        """Return the strings of an input. InputError if it has another shape or other elements."""
        return array_of_strings(value, self.shape_of(x), x.name)

    def shape_of(self, x: Any) -> tuple[int, ...]:
        """Return the shape of an input of strings."""
        return tuple(self.texts[x].shape) if x in self.texts else x.spec.shape

    def encode(self, x: Any, strings: np.ndarray, more: dict[str, int]) -> np.ndarray:
        """Return what a run reads of an input's strings; `more` gains those that the model does not have."""
        codes = partial(codes_of, numbers=self.numbers, more=more)
        return self.texts[x].encode(strings, codes) if x in self.texts else codes(strings)


def array_of_strings(value: Any, shape: Sequence[int], name: str) -> np.ndarray:
    """Return an input of strings as an array of objects. InputError if it has another shape or other elements."""
    array = np.asarray(value, dtype=object)
    if array.shape != tuple(shape):
        raise InputError(f"{name} has shape {list(array.shape)}, not {list(shape)}: pass strings of that shape")
    for word in array.reshape(-1):
        if not isinstance(word, str):
            raise InputError(f"{name} holds {word!r:.40} of {type(word).__name__}, not a string: convert it with str")
    return array


def codes_of(array: np.ndarray, numbers: Mapping[str, int], more: dict[str, int]) -> np.ndarray:
    """Return the codes of strings, int64. `more` gains the strings that `numbers` lacks."""
    first = len(numbers)
    flat = [
        numbers[word] if word in numbers else more.setdefault(word, first + len(more)) for word in array.reshape(-1)
    ]
    return np.array(flat, np.int64).reshape(array.shape)


def strings_for(codes: Any, words: Sequence[str]) -> np.ndarray:
    """Return the strings of codes, as an array of objects. InputError for a code without one."""
    numbers = np.asarray(codes)
    flat = numbers.reshape(-1).tolist()
    if flat and not 0 <= min(flat) <= max(flat) < len(words):
        raise InputError(f"an output of strings has a number outside the {len(words)} strings of the file and the call")
    strings = np.empty(len(flat), object)
    strings[:] = [words[i] for i in flat]
    return strings.reshape(numbers.shape)
