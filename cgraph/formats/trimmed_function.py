"""TrimmedFunction: a Function that trims outputs of dynamic length to their length in each run."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from cgraph.errors import FormatError, InputError
from cgraph.formats.string_codes import StringCodes, array_of_strings, codes_of, strings_for
from cgraph.function import Function
from cgraph.record import Record
from cgraph.running.results import Results


class Case(Record):
    """One array that an output may be, by indices of graph outputs.

    Fields
        condition: of the condition under which it is; None for the last case
        place: of the array
        cut: of the length of each axis of dynamic length
    """

    condition: int | None
    place: int
    cut: Mapping[int, int]


class TrimmedFunction(Function):
    """A Function whose calls return the first `length` elements along axes of dynamic length.

    The outputs of its graph are those of the model at their maximum length, then lengths, conditions and arrays that
    may replace an output, then the conditions that a run checks.

    Fields
        cases: for each output of the model, the arrays that it may be; the first whose condition holds is returned
        texts: messages of the conditions that a run checks, for an InputError
        strings: inputs and outputs of strings, or None
    """

    cases: Sequence[Sequence[Case]]
    texts: Sequence[str]
    strings: StringCodes | None

    @classmethod
    def of(
        cls,
        function: Function,
        cases: Sequence[Sequence[Case]],
        texts: Sequence[str],
        strings: StringCodes | None = None,
    ) -> Self:
        """Return the Function with trimmed outputs."""
        trimmed = cls.__new__(cls)
        fields = {"cases": cases, "texts": texts, "strings": strings, "names": function.names[: len(cases)]}
        trimmed.__dict__ |= {**function.__dict__, **fields}
        return trimmed

    def _value(self, x: Any, value: Any) -> Any:
        """Return an input's value as an instance takes it; strings stay strings until the run."""
        if self.strings is None or x not in self.strings.inputs:
            return super()._value(x, value)
        return array_of_strings(value, x.shape, x.name)

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
        if self.strings is not None:
            numbers = self.strings.numbers
            inputs = {x: codes_of(v, numbers, more) if x in self.strings.inputs else v for x, v in inputs.items()}
        return self._trimmed(super()._run(inputs, out, copy), more)

    def _run_directly(self, args: tuple) -> Any:
        """Run in the short way, unless strings must be encoded."""
        results = super()._run_directly(args) if self.strings is None else None
        return None if results is None else self._trimmed(results, {})

    def _trimmed(self, results: Sequence[Any], more: Mapping[str, int]) -> Results:
        """Return the outputs at their lengths. InputError if a condition does not hold.

        Parameters
            more: codes of strings that the model does not have
        """
        first = len(results) - len(self.texts)
        for holds, text in zip(results[first:], self.texts):
            if not holds.item():
                raise InputError(text)
        outputs = [self._output(cases, results) for cases in self.cases]
        if self.strings is not None and self.strings.outputs:
            words = [*self.strings.numbers, *more]
            outputs = [strings_for(x, words) if i in self.strings.outputs else x for i, x in enumerate(outputs)]
        return Results(outputs, self.names)

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

    def save(self, folder: str | os.PathLike, **_: Any) -> None:
        """Refuse: a saved function returns arrays of fixed shape."""
        raise FormatError(
            "a function of strings, or whose results have a length that is known only at run time, is not saved. "
            "Load with shapes= that fix it, or compile model.outputs, where strings are numbers"
        )

    def __reduce__(self) -> tuple:
        raise FormatError(
            "a function of strings, or whose results have a length that is known only at run time, is not pickled. "
            "Load with shapes= that fix it, or compile model.outputs, where strings are numbers"
        )
