"""Interfaces of loaded code: a program, and its instances with memory of their own.

Identity tells Vars and outputs apart: they are nodes of a graph, or stand-ins where there is no graph.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from cgraph.errors import PositionError
from cgraph.kernels.control import NO_EIGENVALUES, NO_SINGULAR_VALUES, NOT_FINITE, NOT_POSITIVE, SINGULAR
from cgraph.record import Record
from cgraph.storage.cell import CellValue

DirectRun = Callable[[tuple], list[Any] | None]


class Share(Record):
    """Tasks of one step that one thread ran.

    Fields
        step: its number
        thread: 0 is the calling thread
        first, last: the tasks of one of the step's kernel calls, the last one excluded
        begin, end: nanoseconds of a monotonic clock
    """

    step: int
    thread: int
    first: int
    last: int
    begin: int
    end: int


class Instance(Protocol):
    """A program with memory of its own. It runs once at a time."""

    @property
    def waited(self) -> float:
        """Seconds that its runs waited for weights from a file."""

    def bind(self, inputs: Mapping[Any, np.ndarray], cells: Mapping[Any, CellValue], done: np.ndarray) -> None:
        """Set the memory of Vars for the runs that follow.

        Parameters
            inputs: the arrays of inputs
            cells: the other Vars' values, and those of all Vars with an update edge, which receive the new values
            done: an int64 word that is set to 1 when all of them have been written
        """

    @property
    def results(self) -> Collection[Any]:
        """The outputs that a full run may compute outside of this instance's memory."""

    def write_to(self, arrays: Mapping[Any, np.ndarray]) -> None:
        """Let the next run compute some of `results` in these aligned arrays; `read` does not return them.

        It must run all steps. The next call of `bind` ends it.
        """

    def run(
        self, steps: tuple[int, ...] | None = None, write: bool = True, complete: Callable[[Any], None] | None = None
    ) -> None:
        """Run all steps, or some of them in order; then execute the remaining update edges unless `write` is False.

        `complete` is called with outputs that are complete while later steps have not run yet: some outputs, or none.

        If an exception is raised before the first Var is written, no Var has been written. From the first write on, no
        Python code runs until all are written.
        """

    def recorded(self) -> tuple[Share, ...]:
        """Run all steps without update edges, and return the record of each thread; empty if the engine does not
        record.
        """

    def makes(self, output: Any) -> bool:
        """Return True if a run computes the output's value, which then exists only afterwards."""

    def owns(self, output: Any) -> bool:
        """Return True if the output's value lies in this instance's memory, not in a Var, an input or a constant."""

    def direct_run(
        self, inputs: Sequence[Any], outputs: Sequence[Any], steps: tuple[int, ...] | None
    ) -> DirectRun | None:
        """Return a function that binds the arrays of these inputs, runs these steps (None: all) and returns copies of
        these outputs; None if this instance needs more than that.

        It takes a tuple. It returns None, without a run, unless that holds a contiguous array of the shape and dtype of
        each input, none of them in this memory.
        """

    def read(self, output: Any) -> np.ndarray:
        """Return an output's value in place, read-only: after the run if a run computes it, else before."""


class Program(Protocol):
    """Code with its kernels, shared by all instances."""

    @property
    def code(self) -> Any:
        """The code that the program was made from."""

    @property
    def on_host(self) -> tuple[tuple[str, int], ...]:
        """Steps that run on the host: the label of each, and the bytes copied to the host and back."""

    @property
    def own_array(self) -> Callable[[Any], Any] | None:
        """A function that converts an array in the device's memory to one that `bind` accepts, and returns None for
        other arrays.

        None if the device has no memory of its own. The function raises InputError for a device array that cannot be
        read in place.
        """

    def instance(self, memory: np.ndarray | None = None) -> Instance:
        """Return an instance with memory of its own or, where the program supports it, with `memory` that others share
        in turn.
        """


def failure(stop: int, label: str) -> Exception:
    """Return the exception for the word that a kernel set to end its run."""
    if stop in LINEAR_ALGEBRA:
        return np.linalg.LinAlgError(f"{label}: {LINEAR_ALGEBRA[stop]}")
    return PositionError(f"{label}: a position is outside its axis. Check the indices")


LINEAR_ALGEBRA = {  # NumPy's messages, and what to do
    SINGULAR: "Singular matrix. Use np.linalg.pinv or lstsq, or add to its diagonal",
    NOT_POSITIVE: "Matrix is not positive definite. Add to its diagonal",
    NO_EIGENVALUES: "Eigenvalues did not converge. Check the operand for NaN and infinities",
    NO_SINGULAR_VALUES: "SVD did not converge. Check the operand for NaN and infinities",
    NOT_FINITE: "Array must not contain infs or NaNs. Use np.nan_to_num",
}
"""The end of the message for each word of a matrix without a result."""
