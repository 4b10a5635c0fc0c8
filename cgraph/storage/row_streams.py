"""Row sources and row sinks: streams of image rows into and out of a run."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cgraph.errors import InputError
from cgraph.ir.cut import ROWS
from cgraph.ir.spec import Spec
from cgraph.kernels.mapped import release_rows
from cgraph.storage.cell import fitting_array

Sink = Callable[[np.ndarray], Any]


class RowSource:
    """The rows of one input in one run. Mutable: they are read from first to last.

    Parameters
        value: an array of the input's spec, perhaps in a mapped file, which is read some rows at a time; or an iterable
            of rows: arrays ``[n, c, w]`` of one row or ``[n, c, rows, w]`` of some
        spec, name: spec and name of the input
    Raises
        InputError: it is neither; later, an array of another shape or dtype, too few rows or too many
        whatever the iterator raises, with a note that names the input
    """

    def __init__(self, value: Any, spec: Spec, name: str) -> None:
        if isinstance(value, np.ndarray):
            fitting_array(value, spec, name, exact=True)
        elif not isinstance(value, Iterable):
            raise InputError(f"{name} expects {spec} or an iterator of its rows, got {value!r:.60}. Pass one of these")
        self.spec, self.name, self.position = spec, name, 0
        self.parts = iter([value] if isinstance(value, np.ndarray) else value)
        self.part: np.ndarray | None = None

    def __call__(self, band: np.ndarray) -> None:
        """Fill a band ``[n, c, rows, w]`` with the next rows; after the last ones, check that there are no more."""
        rows, whole = band.shape[ROWS], self.spec.shape[ROWS]
        filled = 0
        while filled < rows:
            if self.part is None:
                self.part = self.next_rows()
            if self.part is None:
                raise InputError(
                    f"{self.name} {self.spec}: its rows end after {self.position} of {whole}. Yield all rows"
                )
            some = self.part[:, :, : rows - filled]
            count = some.shape[ROWS]
            np.copyto(band[:, :, filled : filled + count], some)
            release_rows(some)
            self.part = self.part[:, :, count:] if count < self.part.shape[ROWS] else None
            filled, self.position = filled + count, self.position + count
        if self.position == whole and (self.part is not None or self.next_rows() is not None):
            raise InputError(
                f"{self.name} {self.spec} got more than its {whole} rows. Stop the iterator after the last row"
            )

    def next_rows(self) -> np.ndarray | None:
        """Return more rows ``[n, c, rows, w]``; None if there are none."""
        try:
            rows = next(self.parts, None)
        except Exception as error:
            error.add_note(f"while reading rows of {self.name}")
            raise
        return None if rows is None else self.fitting(rows)

    def fitting(self, rows: Any) -> np.ndarray:
        """Return rows as ``[n, c, rows, w]``. InputError if they do not fit."""
        n, c, _, w = self.spec.shape
        if not isinstance(rows, np.ndarray):
            raise InputError(
                f"the iterator of {self.name} {self.spec} must yield arrays, got {rows!r:.60}. Yield NumPy arrays"
            )
        shape = rows.shape if rows.ndim != ROWS + 1 else (*rows.shape[:ROWS], 1, *rows.shape[ROWS:])
        if rows.dtype != self.spec.dtype or len(shape) != ROWS + 2 or shape[ROWS] < 1:
            shape = ()
        if not shape or (*shape[:ROWS], *shape[ROWS + 1 :]) != (n, c, w):
            actual = f"{rows.dtype}[{','.join(map(str, rows.shape))}]"
            kind = self.spec.dtype
            raise InputError(
                f"rows of {self.name} {self.spec} must be {kind}[{n},{c},{w}] or {kind}[{n},{c},rows,{w}], "
                f"got {actual}. Reshape or convert them"
            )
        return rows.reshape(shape)


class RowSink:
    """The destination of one output's rows in one run. Mutable: they arrive from first to last.

    Parameters
        to: an array for the rows, perhaps in a mapped file; or a function that is called with each band of rows, a new
            array ``[n, c, rows, w]``
    """

    def __init__(self, to: np.ndarray | Sink) -> None:
        self.to, self.position = to, 0

    def __call__(self, band: np.ndarray) -> None:
        if not isinstance(self.to, np.ndarray):
            self.to(band.copy())
            return
        room = self.to[:, :, self.position : self.position + band.shape[ROWS]]
        np.copyto(room, band)
        release_rows(room)
        self.position += band.shape[ROWS]
