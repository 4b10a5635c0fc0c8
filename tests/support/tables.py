"""Interpreter tables over NumPy arrays, without an engine."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cgraph.kernels.kernel import Call
from cgraph.kernels.store import store
from cgraph.kernels.target import host_target
from tests.support.kernels import argument


@dataclass(frozen=True)
class Table:
    """Rows for the interpreter, and the arrays whose addresses stand in them."""

    rows: np.ndarray
    keep: tuple


def table_of(calls: Sequence[Call]) -> Table:
    """The table of some calls whose Pointers name arrays."""
    addresses = store().load([c.kernel for c in calls], host_target())
    args = [np.array([argument(a) for a in c.args], np.int64) for c in calls]
    rows = [[addresses[c.kernel], a.ctypes.data, c.tasks, c.chunk] for c, a in zip(calls, args)]
    return Table(np.array(rows, np.int64).reshape(-1, 4), (args, calls))
