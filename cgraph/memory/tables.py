"""Tables of a plan for incremental evaluation: the bytes of values, and the steps that read them."""

from collections.abc import Collection, Sequence

import numpy as np

from cgraph.record import Record


class Lists(Record, eq=False):
    """Concatenated lists of numbers: list i is ``items[starts[i]:starts[i + 1]]``; both int64."""

    starts: np.ndarray
    items: np.ndarray

    @staticmethod
    def of(lists: Sequence[Collection[int]]) -> "Lists":
        starts = np.cumsum([0, *map(len, lists)])
        return Lists(starts, np.array([x for one in lists for x in one], np.int64))

    def tolist(self) -> list[list[int]]:
        items, edges = self.items.tolist(), self.starts.tolist()
        return [items[a:b] for a, b in zip(edges, edges[1:])]


class Tables(Record, eq=False):
    """A plan's bytes, in segments between any two addresses where a value begins or ends.

    Values are numbered as in `cgraph.memory.layout.Layout`: the results of the steps, then the workspaces.

    Fields
        segments: for each value and workspace ``low, high`` (excluded), int64 ``[values, 2]``
        reads: for each step, the values that it reads
        parts: for each value, the values computed inside it
        workspace: for each step, the number of its workspace, -1 if it has none
        lasting: values that callers read after a run
        depends: bits, uint8 ``[steps, bytes]``: the Vars that a step depends on; the next bit: an impure op
    """

    segments: np.ndarray
    reads: Lists
    parts: Lists
    workspace: np.ndarray
    lasting: np.ndarray
    depends: np.ndarray
