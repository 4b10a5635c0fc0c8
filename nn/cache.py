"""Cache: what a decoder's layers keep of the tokens that they have seen, changed in place by update edges."""

from itertools import count
from typing import Any

import numpy as np

import cgraph as cg
from cgraph import Node, Var
from cgraph.storage.cell import assign_all


class Cache:
    """Keys and values of every attention layer for a batch of sequences. Changes: Vars are added, and what they hold.

    Fields
        batch, length: sequences, and the most tokens of each
        start: int64 ``[batch]``, how many tokens of each sequence have been seen
        rows: ``[batch, heads, length, d]`` by layer, name and number of the use: a layer may occur twice
    """

    def __init__(self, batch: int, length: int) -> None:
        self.batch, self.length = batch, length
        self.start = Var((batch,), "int64", "start").assign(np.zeros(batch, np.int64))
        self.rows: dict[tuple[object, str, int], Var] = {}

    def extended(self, layer: object, name: str, x: Node, mode: Any) -> Node:
        """All rows of a layer with those of `x` ``[batch, heads, t, d]`` behind the ones that it has seen."""
        use = next(i for i in count() if self.rows.get((layer, name, i)) not in mode.updates)
        key = layer, name, use
        if key not in self.rows:
            shape = (self.batch, x.shape[1], self.length, x.shape[3])
            self.rows[key] = Var(shape, x.dtype, name).assign(np.zeros(shape, x.dtype))
        rows = self.rows[key]
        new = cg.set_rows(rows, self.start, x, axis=2)
        mode.update(rows, new)
        return new

    def forget(self) -> None:
        """Begin new sequences: rows that are not seen need not be cleared."""
        assign_all(self.beginning())

    def beginning(self) -> dict[Var, np.ndarray]:
        """What the cache's Vars hold before the first token."""
        return {self.start: np.zeros(self.batch, np.int64)}
