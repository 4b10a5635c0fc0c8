"""Cache: keys and values of earlier tokens for a decoder's layers, changed in place by update edges."""

from itertools import count
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import Node, Var
from cgraph.storage.cell import assign_all
from nn.deprecation import renamed_method


class Cache:
    """Keys and values of every attention layer for a batch of sequences. Changes: Vars are added, and their values.

    Fields
        batch, length: number of sequences, and the maximum number of tokens of each
        start: int64 ``[batch]``, number of cached tokens of each sequence
        rows: Vars ``[batch, heads, length, d]`` by layer, name and number of the use: a layer may occur twice
    """

    def __init__(self, batch: int, length: int) -> None:
        self.batch, self.length = batch, length
        self.start = Var((batch,), "int64", "start").assign(np.zeros(batch, np.int64))
        self.rows: dict[tuple[object, str, int], Var] = {}

    def append(self, layer: object, name: str, x: Node, mode: Any) -> Node:
        """Append the rows of `x` ``[batch, heads, t, d]`` to the cached rows of a layer, and return all rows."""
        use = next(i for i in count() if self.rows.get((layer, name, i)) not in mode.updates)
        key = layer, name, use
        if key not in self.rows:
            shape = (self.batch, x.shape[1], self.length, x.shape[3])
            self.rows[key] = Var(shape, x.dtype, name).assign(np.zeros(shape, x.dtype))
        rows = self.rows[key]
        new = cg.set_rows(rows, self.start, x, axis=2)
        mode.update(rows, new)
        return new

    extended = renamed_method("extended", "append")

    def forget(self) -> None:
        """Begin new sequences. Old rows are not cleared, because nothing reads them."""
        assign_all(self.beginning())

    def beginning(self) -> dict[Var, np.ndarray]:
        """Return the values of the cache's Vars before the first token."""
        return {self.start: np.zeros(self.batch, np.int64)}
