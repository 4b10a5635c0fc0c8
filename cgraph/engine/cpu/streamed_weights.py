"""Instances whose large constants are read from a file during a run."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cgraph.engine.cpu.code import Ring
from cgraph.engine.cpu.instance import CpuInstance, LoadedCode
from cgraph.engine.cpu.reader import Reader
from cgraph.engine.cpu.ring import ControlledTable, with_control_rows
from cgraph.engine.cpu.rows import TableRows
from cgraph.kernels.control import READ_FAILED
from cgraph.storage.cell import CellValue
from cgraph.storage.weight_file import place_of
from cgraph.system.addresses import address_of


class StreamedRows(TableRows):
    """Rows whose first part waits for weights."""

    def __init__(self, table: np.ndarray, split: int, numbers: np.ndarray, first: ControlledTable) -> None:
        super().__init__(table, split, numbers)
        self.waiting = first


class StreamedInstance(CpuInstance):
    """A program with an arena and a ring of weights. Mutable: as any instance, and the ring's contents.

    Raises
        WeightsError: the file has changed since the function was compiled or cannot be opened, or a constant that stays
            in memory does not match its checksum
    """

    _whole: StreamedRows

    def __init__(self, program: LoadedCode, ring: Ring) -> None:
        self.reader, self.pieces = Reader(ring, program.poison), {p.constant: p for p in ring.pieces}
        self._copies: list[np.ndarray] = []
        super().__init__(program)

    @property
    def whole(self) -> ControlledTable:
        """The rows of a whole run except those of update edges, with the pieces that they wait for."""
        return self._whole.waiting

    @property
    def waited(self) -> float:  # type: ignore[override]
        return float(self.reader.waits.sum())

    def _address_of_constant(self, number: int) -> int:
        """Return the address in the ring, or in memory if the file's constant is not streamed."""
        piece, array = self.pieces.get(number), self.code.constants[number]
        if piece is not None:
            return self.reader.address + piece.at
        place = place_of(array) if isinstance(array, np.ndarray) else None
        if place is not None:
            array = array.copy()
            self.reader.check_sum(place[1], array)
            self._copies.append(array)
        return address_of(array)

    def bind(self, inputs: Mapping[Any, np.ndarray], cells: Mapping[Any, CellValue], done: np.ndarray) -> None:
        """Bind memory as any instance.

        Raises
            WeightsError: the file has changed since the function was compiled
        """
        self.reader.check_file()
        super().bind(inputs, cells, done)

    def _rows_among(self, numbers: np.ndarray | None, split: int) -> StreamedRows:
        numbers = np.arange(len(self.table)) if numbers is None else numbers
        words, pieces = self.reader.words.ctypes.data, tuple(self.pieces.values())
        first = with_control_rows(self.table, numbers[:split], pieces, words, self.reader.address)
        table = np.concatenate([first.table, self.table[numbers[split:]]])
        return StreamedRows(table, len(first.table), np.concatenate([first.numbers, numbers[split:]]), first)

    def _run(self, rows: TableRows) -> None:
        assert isinstance(rows, StreamedRows)
        self.reader.begin(rows.waiting)
        super()._run(rows)
        self.reader.order(self._whole.waiting)  # read ahead for the next run

    def _run_first(self, rows: TableRows) -> None:
        """Run the first part; if the file has changed meanwhile, raise before any Var is written."""
        super()._run_first(rows)
        self.reader.check_file()

    def _completed_by(self, rows: TableRows) -> Iterator[tuple[Any, int]]:
        """Yield nothing: control rows are among the rows, and the file is checked at the end."""
        return iter(())

    def direct_run(self, *_: Any) -> None:
        """Return None: a run reads weights."""

    def _stopped(self, ran: int, rows: TableRows) -> Exception:
        if self.stop[0] == READ_FAILED:
            return self.reader.problem()
        self.reader.check_file()  # other numbers may be why
        return super()._stopped(ran, rows)
