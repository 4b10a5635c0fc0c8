"""Results of dynamic length: a run computes them at their maximum, and the lengths to which they are cut."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from cgraph.errors import InputError
from cgraph.ir.spec import Spec
from cgraph.record import Record
from cgraph.running.results import Results
from cgraph.running.runner import Runner
from cgraph.running.string_codes import StringCodes, strings_for

OBJECT = np.dtype(object)  # of arrays of strings


class Case(Record):
    """One array that an output may be, by indices of the program's outputs.

    Fields
        condition: of the condition under which it is; None for the last case
        place: of the array
        cut: of the length of each axis of dynamic length
    """

    condition: int | None
    place: int
    cut: Mapping[int, int]


class Trims(Record, eq=False):
    """How the outputs of a program become those of a model.

    A program computes the outputs of the model at their maximum length, then lengths, conditions and arrays that may
    replace an output, then the conditions that a run checks.

    Fields
        cases: for each output of the model, the arrays that it may be; the first whose condition holds is returned
        texts: messages of the conditions that a run checks, for an InputError
        strings: inputs and outputs of strings, or None
    """

    cases: Sequence[Sequence[Case]]
    texts: Sequence[str]
    strings: StringCodes | None = None


class Trimming(Runner):
    """A Runner whose calls return the first `length` elements along axes of dynamic length.

    Fields
        trims: how its outputs become those of the model
    """

    trims: Trims

    @property
    def results(self) -> list[Spec]:
        """The specs of the values that a call returns, with the maximum of each length known only at run time."""
        return [self.outputs[cases[-1].place].spec for cases in self.trims.cases]

    def _value(self, x: Any, value: Any) -> Any:
        """Return an input's value as an instance takes it; strings stay strings until the run."""
        if self.trims.strings is None or x not in self.trims.strings.inputs:
            return super()._value(x, value)
        return self.trims.strings.strings(x, value)

    def _arrays_for(self, out: Sequence[np.ndarray] | None) -> None:
        """Refuse `out`: the lengths are unknown before the run."""
        if out is not None:
            raise InputError("out= is not supported for results of dynamic length. Call the function without out=")

    def run_each(self, *_: Any) -> None:
        """Refuse: the lengths are unknown before the run is over."""
        raise InputError("run_each is not supported for results of dynamic length. Call the function")

    def _run(self, inputs: Any, out: Sequence[np.ndarray] | None, copy: bool) -> Any:
        """Run the function, with codes in place of strings."""
        more: dict[str, int] = {}
        if self.trims.strings is not None:
            strings = self.trims.strings
            inputs = {x: strings.encode(x, v, more) if x in strings.inputs else v for x, v in inputs.items()}
        return Results(self._trimmed(super()._run(inputs, out, copy), more), self.names)

    def fits(self, arrays: Sequence[Any]) -> bool:
        """Return True if these are contiguous arrays of exactly the shapes and dtypes of the inputs, or of strings."""
        if self.trims.strings is None:
            return super().fits(arrays)
        strings = self.trims.strings
        for x, array, (dtype, shape) in zip(self.inputs, arrays, self._usual):
            if x in strings.inputs:
                dtype, shape = OBJECT, strings.shape_of(x)
            if type(array) is not np.ndarray or array.dtype != dtype or array.shape != shape:
                return False
            if not array.flags.c_contiguous:
                return False
        return len(arrays) == len(self.inputs)

    def results_directly(self, arrays: tuple) -> list[Any] | None:
        """Return the outputs of a call on the fast path, with codes in place of strings."""
        more: dict[str, int] = {}
        if self._string_inputs:
            codes = self._encoded(arrays, more) if self._may_run_directly else None
            if codes is None:
                return None
            arrays = codes
        results = super().results_directly(arrays)
        return None if results is None else self._trimmed(results, more)

    @cached_property
    def _string_inputs(self) -> tuple[tuple[int, Any, tuple[int, ...]], ...]:
        """The numbers of the inputs of strings, these inputs, and their shapes."""
        strings = self.trims.strings
        if strings is None:
            return ()
        return tuple((i, x, strings.shape_of(x)) for i, x in enumerate(self.inputs) if x in strings.inputs)

    @cached_property
    def _readers(self) -> tuple[Callable[[Sequence[Any]], Any], ...]:
        """For each output, the function that reads it from those of the program."""
        return tuple(map(reader_of, self.trims.cases))

    def _encoded(self, arrays: tuple, more: dict[str, int]) -> tuple | None:
        """Return arrays with codes in place of strings; None if these are not arrays of objects of their shapes."""
        strings, encoded = self.trims.strings, list(arrays)
        if strings is None or len(arrays) != len(self.inputs):
            return None
        for i, x, shape in self._string_inputs:
            array = arrays[i]
            if type(array) is not np.ndarray or array.dtype != OBJECT or array.shape != shape:
                return None
            encoded[i] = strings.encode(x, array, more)
        return tuple(encoded)

    def _trimmed(self, results: Sequence[Any], more: Mapping[str, int]) -> list[Any]:
        """Return the outputs at their lengths. InputError if a condition does not hold.

        Parameters
            more: codes of strings that the model does not have
        """
        trims, strings = self.trims, self.trims.strings
        if trims.texts and not all(results[-len(trims.texts) :]):
            raise InputError(next(text for holds, text in zip(results[-len(trims.texts) :], trims.texts) if not holds))
        outputs = [read(results) for read in self._readers]
        if strings is not None and strings.outputs:
            words = strings.words_with(more) if more else strings.words
            for i in strings.outputs:
                outputs[i] = strings_for(outputs[i], words)
        return outputs


def reader_of(cases: Sequence[Case]) -> Callable[[Sequence[Any]], Any]:
    """Return the function that reads one output from a program's outputs: the first array whose condition holds.

    It is called in each run, so what the cases decide is decided here.
    """
    readers = [(x.condition, cut_reader(x)) for x in cases]
    if readers[0][0] is None:
        return readers[0][1]

    def read(results: Sequence[Any]) -> Any:
        return next(read for condition, read in readers if condition is None or results[condition].item())(results)

    return read


def cut_reader(case: Case) -> Callable[[Sequence[Any]], Any]:
    """Return the function that reads one array from a program's outputs, cut to its lengths."""
    place, cuts = case.place, tuple(case.cut.items())
    if not cuts:
        return itemgetter(place)
    if [axis for axis, _ in cuts] == [0]:
        number = cuts[0][1]

        def first_elements(results: Sequence[Any]) -> Any:
            x, count = results[place], results[number].item()
            if not 0 <= count <= len(x):
                check_lengths(x, {0: count})
            return x[:count]

        return first_elements

    def read(results: Sequence[Any]) -> Any:
        x, counts = results[place], {axis: results[i].item() for axis, i in cuts}
        check_lengths(x, counts)
        return x[tuple(slice(counts.get(axis)) for axis in range(x.ndim))]

    return read


def check_lengths(x: Any, counts: Mapping[int, int]) -> None:
    """Raise InputError if a length is larger than the maximum of its axis."""
    for axis, count in counts.items():
        if not 0 <= count <= x.shape[axis]:
            raise InputError(
                f"{count} elements along axis {axis} of a result whose maximum is {x.shape[axis]}. Raise maximum="
            )
