"""Instances that exchange images with row sources and row sinks during a run."""

import ctypes
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from cgraph.engine.cpu.instance import CpuInstance, LoadedCode
from cgraph.engine.cpu.rows import TableRows
from cgraph.kernels.callback import array_at
from cgraph.kernels.kernel import Callback
from cgraph.storage.cell import CellValue


class RowsInstance(CpuInstance):
    """A program with an arena. Mutable: as any instance, and the row sources and sinks of the next run."""

    def __init__(self, program: LoadedCode, memory: np.ndarray | None = None) -> None:
        super().__init__(program, memory)
        callbacks = program.code.callbacks
        self._ports: dict[Any, Callable[[np.ndarray], Any]] = {}
        self._port_names = {c.port for c in callbacks if c.port is not None}
        self.functions = [c.function if c.port is None else partial(self._exchange, c) for c in callbacks]

    def bind(self, inputs: Mapping[Any, Any], cells: Mapping[Any, CellValue], done: np.ndarray) -> None:
        """Bind memory as any instance; `inputs` also has the function that fills or reads each port's bands."""
        super().bind({x: value for x, value in inputs.items() if x not in self._port_names}, cells, done)
        self._ports = {x: value for x, value in inputs.items() if x in self._port_names}

    def _exchange(self, callback: Callback, args: int) -> None:
        """Call the port's function on its rows."""
        (address,) = (ctypes.c_int64 * 1).from_address(args)
        self._ports[callback.port](array_at(address, callback.views[0], bool(callback.results)))

    def _run(self, rows: TableRows) -> None:
        try:
            super()._run(rows)
        finally:
            self._ports = {}

    def _run_first(self, rows: TableRows) -> None:
        """Run the rows; a loop's rows run as often as it says."""
        again = self.code.again
        if again is None:
            super()._run_first(rows)
            return
        first, last = again.first, again.last
        if rows.numbers is not None:
            first, last = map(int, np.searchsorted(rows.numbers, (first, last)))
        self._run_some(rows, 0, first)
        for _ in range(again.times if first < last else 0):
            self._run_some(rows, first, last)
        self._run_some(rows, last, rows.count)
