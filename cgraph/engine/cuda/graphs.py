"""Graphs of launches: what runs again and again with the same addresses costs one call of the driver, not one each.

The first runs go by the table; the third with the same addresses is captured. Arguments are part of a graph, so other
addresses, as those of a Var that was assigned anew, begin from the start.
"""

from cgraph.engine.cuda.device import Graph, Queue
from cgraph.engine.cuda.segments import Segment

CAPTURED = 3  # which run
MOST = 8  # that are kept


class Graphs:
    """What an instance has run. Changes: with every run; the eight used last are kept."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.entries: dict[tuple[Segment, tuple[int, ...]], int | Graph] = {}  # the number of runs, later the graph

    def run(self, segment: Segment, addresses: tuple[int, ...]) -> None:
        """Queue a segment's launches. LaunchError or EngineError when one is refused."""
        key = (segment, addresses)
        entry = self.entries.pop(key, 0)
        if isinstance(entry, int):
            entry = self._counted(segment, entry + 1)
        else:
            entry.launch()
        while len(self.entries) >= MOST:
            del self.entries[next(iter(self.entries))]
        self.entries[key] = entry

    def _counted(self, segment: Segment, runs: int) -> int | Graph:
        """Run by the table, or capture and launch."""
        graph = self.queue.captured(segment.table) if runs >= CAPTURED else None
        if graph is None:
            self.queue.run(segment.table)
            return runs
        graph.launch()
        return graph
