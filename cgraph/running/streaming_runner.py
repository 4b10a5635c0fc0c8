"""A Runner whose images are streamed by rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cgraph.ir.spec import Spec
from cgraph.running.output_arrays import check_output, output_list
from cgraph.running.runner import Runner
from cgraph.storage.cell import Variable
from cgraph.storage.row_streams import RowSink, RowSource


class ByRows(Runner):
    """A Runner with row sources as inputs and row sinks as outputs.

    Fields
        pictures: the streamed outputs, by position; each has a name and a spec
        fed: the streamed inputs
    """

    pictures: Mapping[int, Any]
    fed: frozenset[Any]

    @property
    def results(self) -> list[Spec]:
        return [self.pictures[i].spec if i in self.pictures else x.spec for i, x in enumerate(self.outputs)]

    def _value(self, x: Any, value: Any) -> Any:
        return RowSource(value, x.spec, x.name) if x in self.fed else super()._value(x, value)

    def _arrays_for(self, out: Any) -> Sequence[Any] | None:
        """Return the array or function that takes each output; None for one that gets a new array."""
        if out is None:
            return None
        is_one = self.single and (isinstance(out, np.ndarray) or callable(out))
        places = output_list(out, is_one, len(self.outputs), "arrays or functions")
        for i, (place, spec) in enumerate(zip(places, self.results)):
            if i not in self.pictures or not callable(place):
                check_output(place, spec)
        return places

    def _run_on(
        self,
        record: Any,
        inputs: dict[Variable, Any],
        out: Sequence[Any] | None,
        copy: bool,
        complete: Callable[[int, np.ndarray], None] | None = None,
    ) -> list[Any]:
        to = {i: new_array(x.spec) if out is None else out[i] for i, x in self.pictures.items()}
        ports: dict[Any, Any] = {self.pictures[i]: RowSink(room) for i, room in to.items()}
        rest: list[Any] | None = (
            None if out is None else [new_array(x.spec) if i in to else out[i] for i, x in enumerate(self.outputs)]
        )
        results: list[Any] = super()._run_on(record, {**inputs, **ports}, rest, copy)
        for i, room in to.items():
            results[i] = room if isinstance(room, np.ndarray) else None
        return results


def new_array(spec: Spec) -> np.ndarray:
    """Return an uninitialised array for a value."""
    return np.empty(spec.shape, spec.dtype)
