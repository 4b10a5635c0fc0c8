"""Results of dynamic length: a run computes them at their maximum, and the lengths to which they are cut."""

from collections.abc import Mapping, Sequence
from functools import cached_property
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

    def _rooms(self, out: Sequence[np.ndarray] | None) -> None:
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
    def _plain_places(self) -> tuple[int, ...] | None:
        """The places of the outputs among those of the program; None if lengths or conditions decide."""
        plain = all(len(cases) == 1 and not cases[0].cut for cases in self.trims.cases)
        return tuple(cases[0].place for cases in self.trims.cases) if plain else None

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
        trims, places, strings = self.trims, self._plain_places, self.trims.strings
        if trims.texts and not all(results[-len(trims.texts) :]):
            raise InputError(next(text for holds, text in zip(results[-len(trims.texts) :], trims.texts) if not holds))
        if places is None:
            outputs = [self._output(cases, results) for cases in trims.cases]
        else:
            outputs = [results[i] for i in places]
        if strings is not None and strings.outputs:
            words = strings.words_with(more) if more else strings.words
            for i in strings.outputs:
                outputs[i] = strings_for(outputs[i], words)
        return outputs

    def _output(self, cases: Sequence[Case], results: Sequence[Any]) -> Any:
        """Return one output: the array whose condition holds, cut to its lengths."""
        case = next(x for x in cases if x.condition is None or results[x.condition].item())
        return self._cut(results[case.place], {axis: results[i].item() for axis, i in case.cut.items()})

    def _cut(self, x: Any, counts: Mapping[int, int]) -> Any:
        """Return the first elements along some axes."""
        for axis, count in counts.items():
            if not 0 <= count <= x.shape[axis]:
                raise InputError(
                    f"{count} elements along axis {axis} of a result whose maximum is {x.shape[axis]}. Raise maximum="
                )
        return x[tuple(slice(counts.get(axis)) for axis in range(x.ndim))] if counts else x
