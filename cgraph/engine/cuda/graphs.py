"""CUDA graphs of launches: a segment that runs repeatedly with the same addresses costs one driver call.

The first runs launch the table row by row; the third run with the same addresses captures a graph. Arguments are part
of a graph, so new addresses (for example of a Var that was assigned again) start over.
"""

from cgraph.engine.cuda.device import Graph, Queue
from cgraph.engine.cuda.segments import Segment

CAPTURED = 3  # which run
MOST = 8  # that are kept


class Graphs:
    """Run counts and graphs of an instance. Mutable: every run; the eight entries used last stay."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.entries: dict[tuple[Segment, tuple[int, ...]], int | Graph] = {}  # the number of runs, later the graph

    def run(self, segment: Segment, addresses: tuple[int, ...]) -> None:
        """Queue a segment's launches. LaunchError or EngineError if the driver refuses one."""
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
        """Launch the table, or capture a graph and launch it."""
        graph = self.queue.captured(segment.table) if runs >= CAPTURED else None
        if graph is None:
            self.queue.run(segment.table)
            return runs
        graph.launch()
        return graph
