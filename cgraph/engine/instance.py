"""What an engine makes of code: a program, and instances of it with memory of their own.

Vars and outputs are told apart by identity: nodes of a graph, or what stands for them where there is none.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from cgraph.record import Record
from cgraph.storage.cell import CellValue


class Share(Record):
    """Tasks of a step that one thread has run.

    Fields
        step: its number
        thread: 0 is the one that called
        first, last: the tasks of one of the step's kernel calls, the last one excluded
        begin, end: nanoseconds of a clock that only goes forward
    """

    step: int
    thread: int
    first: int
    last: int
    begin: int
    end: int


class Instance(Protocol):
    """A program with memory of its own. One run at a time."""

    @property
    def waited(self) -> float:
        """Seconds that its runs have waited for weights from a file."""

    def bind(self, inputs: Mapping[Any, np.ndarray], cells: Mapping[Any, CellValue], done: np.ndarray) -> None:
        """The memory of Vars for the runs that follow.

        Parameters
            inputs: the arrays of inputs
            cells: the other Vars' values, and those of all Vars with an update edge, which take the new values
            done: an int64 word that is set to 1 when all of them have been written
        """

    def run(self, steps: tuple[int, ...] | None = None, write: bool = True) -> None:
        """Run all steps, or some of them in their order; then write what update edges are left, unless told not to.

        What raises an exception before the first Var is written has written none. From then on no Python code runs
        until all are written.
        """

    def recorded(self) -> tuple[Share, ...]:
        """Run all steps, write no update edge, and say what each thread ran when; nothing where that is not known."""

    def makes(self, output: Any) -> bool:
        """A run computes the value of an output, which is there only afterwards."""

    def owns(self, output: Any) -> bool:
        """The value of an output lies in this instance's memory, not in a Var, an input or a constant."""

    def read(self, output: Any) -> np.ndarray:
        """The value of an output where it lies, not to be written: if a run makes it, after the run, else before it."""


class Program(Protocol):
    """Code with its kernels: what all instances share."""

    @property
    def code(self) -> Any:
        """What it was made of."""

    @property
    def on_host(self) -> tuple[tuple[str, int], ...]:
        """Steps that leave the device: what each is, and the bytes that are carried to the host and back."""

    @property
    def own_array(self) -> Callable[[Any], Any] | None:
        """Gives an array that lies in the device's own memory already as what `bind` takes, and None for any other one;
        None where there is no such memory. InputError for one there that cannot be read where it lies.
        """

    def instance(self, memory: np.ndarray | None = None) -> Instance:
        """A program with memory of its own; or, where it can, with some that others run in by turns."""
