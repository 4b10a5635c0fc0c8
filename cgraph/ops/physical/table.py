"""Byte-to-byte tables, which the pass `integers` creates from chains of pointwise ops between bytes."""

from functools import partial

import numpy as np

from cgraph.errors import ShapeError
from cgraph.ir.cut import ROWS, Cut, row_by_row
from cgraph.ir.graph import Op
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.table8.calls import table_calls
from cgraph.kernels.target import Target
from cgraph.ops.family import ROWS_AXES

BYTES = Spec((256,), np.dtype("uint8"))


class ByteTable(Op):
    """``table[x]`` for each byte.

    Operands
        x: bytes of any shape
        table: 256 bytes
    """

    def infer(self, x: Spec, table: Spec) -> Spec:
        if x.dtype != BYTES.dtype or table != BYTES:
            raise ShapeError(f"table {table} does not fit {x}; pass uint8[256] and bytes")
        return x

    def meaning(self, x, table):
        return table[x]

    def work(self, target: Target, x: Spec, table: Spec) -> Work:
        return Work(partial(table_calls, target), overwrites=(0,), strided=True)

    def cut(self, x: Spec, table: Spec) -> Cut | None:
        if x.ndim < ROWS_AXES:
            return None
        return Cut((row_by_row(x.shape[ROWS]), None), lambda first, stop: self)
