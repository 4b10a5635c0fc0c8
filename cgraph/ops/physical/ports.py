"""Streamed rows: images that are never complete in memory, read from a row source or written to a row sink."""

from typing import Any

from cgraph.errors import NoMeaningError
from cgraph.ir.cut import ROWS, Cut, row_by_row
from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.callback import port_call
from cgraph.kernels.target import Target
from cgraph.record import Record, replace


class RowPort(Record, eq=False):
    """Images ``[n, c, h, w]`` that a run delivers by rows.

    Fields
        name: for messages
        spec: of all rows
    """

    name: str
    spec: Spec


class RowSource(Op, eq=False):
    """Images whose bands of rows are requested when they are needed.

    Fields
        port: the key of the row source in the instance: the Var that is fed
        spec: of these rows
    """

    port: Any
    spec: Spec
    pure = False
    can_fail = True

    def infer(self) -> Spec:
        return self.spec

    def meaning(self):
        raise NoMeaningError("streamed rows have no value before a run; run the compiled function with a row source")

    def work(self, target: Target) -> Work:
        return Work(lambda out: [port_call(self.port, out, True)], strided=True)

    def cut(self) -> Cut:
        n, c, _, w = self.spec.shape
        return Cut((), lambda first, stop: replace(self, spec=Spec((n, c, stop - first, w), self.spec.dtype)))


class RowSink(Op, eq=False):
    """Images whose bands of rows are delivered as they are computed; the value itself is an array of no images.

    Fields
        port: the key of the row sink in the instance
    """

    port: RowPort
    pure = False
    can_fail = True

    def infer(self, x: Spec) -> Spec:
        return Spec((0, *x.shape[1:]), x.dtype)

    def meaning(self, x):
        return x[:0]

    def work(self, target: Target, x: Spec) -> Work:
        return Work(lambda out, x: [port_call(self.port, x, False)], strided=True)

    def cut(self, x: Spec) -> Cut:
        return Cut((row_by_row(x.shape[ROWS]),), lambda first, stop: self)
