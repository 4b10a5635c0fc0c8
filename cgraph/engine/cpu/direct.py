"""Direct runs: calls whose arrays native code checks and binds; see `cgraph.kernels.interpret.arrays_emit`."""

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from cgraph.dtypes.convert import dtype_of_code
from cgraph.engine.cpu.code import Relocation
from cgraph.engine.cpu.rows import TableRows
from cgraph.engine.cpu.threads import SLICE_NANOSECONDS, cores_address, native
from cgraph.engine.instance import DirectRun
from cgraph.kernels.control import ARRAYS
from cgraph.kernels.kernel import View
from cgraph.record import Record
from cgraph.system.addresses import address_of
from cgraph.system.array_fields import HEAD, ITEMS, word_of
from cgraph.system.result_memory import result_array

COPY = methodcaller("copy")
Addresses = dict[str, int]


class InputView(Record, eq=False):
    """An output that is a view of an input: its number and that of the input, and where the view lies in it."""

    output: int
    input: int
    view: View

    def of(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Return the view for the arrays of a call."""
        view = self.view
        return np.ndarray(view.shape, dtype_of_code(view.dtype), arrays[self.input], view.at.offset, view.strides)


class NewResult(Record, eq=False):
    """A result that a call computes in a new array.

    Fields
        number: of the output; two outputs of one value are copied from the arena
        layout: its shape, dtype and number of bytes
        move: writes the address of the array into the arguments
    """

    number: int
    layout: tuple[tuple[int, ...], np.dtype, int]
    move: Callable[[int], None]


class NewResults:
    """The new arrays in which a call computes results. Mutable: holds the arrays of the present call.

    Fields
        places: of the results
        clear: called before addresses change
        numbers: of the outputs that are among them
    """

    def __init__(self, places: Sequence[NewResult], clear: Callable[[], None]) -> None:
        self.places, self.clear, self._arrays = places, clear, list[np.ndarray]()
        self.numbers = frozenset(x.number for x in places)

    def bind(self) -> None:
        """Make the arrays of a call, and write their addresses into the arguments."""
        self.clear()
        self._arrays = [result_array(*x.layout) for x in self.places]
        for x, array in zip(self.places, self._arrays):
            x.move(address_of(array))

    def put(self, results: list[Any]) -> None:
        """Put the arrays among the results of the call."""
        for x, array in zip(self.places, self._arrays):
            results[x.number] = array
        self._arrays = []


def direct_run(
    words: np.ndarray,
    count: int,
    before: Callable[[], None],
    finish: Callable[[int], bool],
    results_of: Callable[[Sequence[np.ndarray]], list[Any]],
) -> DirectRun:
    """Return the function of a call.

    Parameters
        words: those of `entry_words`
        count: number of rows that the native code runs
        before: called before addresses change
        finish: runs the other rows, given the result of the native code; returns False if arrays do not fit
        results_of: returns the outputs, given the arrays
    """
    enter, at = native().enter, words.ctypes.data

    def run(arrays: tuple) -> list[Any] | None:
        before()
        ran = enter(at, id(arrays))
        if ran != count and not finish(ran):
            return None
        return results_of(arrays)

    run.words = words  # type: ignore[attr-defined]  # native code reads them as long as the function lives
    return run


def entry_words(
    inputs: Sequence[Any], places: Sequence[Relocation | None], rows: TableRows, count: int, memory: Addresses
) -> np.ndarray:
    """Return the words of a call: see `cgraph.kernels.control.ARRAYS`.

    Parameters
        places: for each input, where its addresses go
        count: number of rows to run
        memory: the addresses of the stop word, the arguments, and of the arena's first byte and end
    """
    fields = memory | {
        "alone": native().address("alone"),
        "cores": cores_address(),
        "table": rows.first,
        "rows": count,
        "slice": SLICE_NANOSECONDS,
        "count": len(inputs),
        "kind": id(np.ndarray),
        "head": HEAD,
        "items": ITEMS,
    }
    words = [fields[name] for name in ARRAYS]
    for x, place in zip(inputs, places):
        pairs = [] if place is None else list(zip(place.positions.tolist(), place.offsets.tolist()))
        words += [
            word_of(x.spec.dtype),
            len(x.spec.shape),
            len(pairs),
            *x.spec.shape,
            *(n for pair in pairs for n in pair),
        ]
    return np.array(words, np.int64)


def results_reader(
    views: Sequence[np.ndarray], shown: Sequence[InputView], new: NewResults
) -> Callable[[Sequence[np.ndarray]], list[Any]]:
    """Return a function that returns copies of views, and of views of a call's arrays, and new arrays."""
    if not shown and not new.places and all(view.ndim for view in views):
        return lambda _: list(map(COPY, views))

    def read(arrays: Sequence[np.ndarray]) -> list[Any]:
        results = [view.copy() if view.ndim else view[()] for view in views]
        new.put(results)
        for x in shown:
            value = x.of(arrays)
            results[x.output] = value.copy() if value.ndim else value[()]
        return results

    return read
