"""Graphs of launches: captured by the third run with the same addresses, the eight used last stay."""

import pytest

from cgraph.engine.cuda.graphs import CAPTURED, MOST, Graphs
from cgraph.errors import EngineError


class Table:
    """A segment with a table that tells its name."""

    def __init__(self, name: str) -> None:
        self.table = name


class Recording:
    """A queue that notes what is queued; graphs of it may be refused. Changes: `done`."""

    def __init__(self, has_graphs: bool = True) -> None:
        self.done, self.has_graphs, self.refuses = [], has_graphs, False

    def run(self, table) -> None:
        self.done.append(("run", table))

    def captured(self, table):
        self.done.append(("capture", table))
        return self if self.has_graphs else None

    def launch(self) -> None:
        if self.refuses:
            raise EngineError("refused")
        self.done.append(("launch", None))


def names(queue: Recording) -> list[str]:
    return [kind for kind, _ in queue.done]


def test_the_third_run_captures_and_later_ones_launch():
    queue, segment = Recording(), Table("s")
    graphs = Graphs(queue)
    for _ in range(5):
        graphs.run(segment, (1, 2))
    assert CAPTURED == 3 and names(queue) == ["run", "run", "capture", "launch", "launch", "launch"]


def test_other_addresses_and_other_segments_count_for_themselves():
    queue, one, other = Recording(), Table("one"), Table("other")
    graphs = Graphs(queue)
    for segment, addresses in ((one, (1,)), (one, (2,)), (other, (1,)), (one, (1,)), (one, (2,)), (other, (1,))):
        graphs.run(segment, addresses)
    assert names(queue) == ["run"] * 6
    graphs.run(other, (1,))
    assert queue.done[6:] == [("capture", "other"), ("launch", None)]


def test_a_device_without_graphs_runs_the_table_each_time():
    queue, segment = Recording(has_graphs=False), Table("s")
    graphs = Graphs(queue)
    for _ in range(4):
        graphs.run(segment, ())
    assert names(queue) == ["run", "run", "capture", "run", "capture", "run"]


def test_the_entry_that_was_not_used_for_longest_makes_way():
    queue, segment = Recording(), Table("s")
    graphs = Graphs(queue)
    for i in range(MOST):
        for _ in range(3):
            graphs.run(segment, (i,))
    graphs.run(segment, (0,))
    graphs.run(segment, (MOST,))
    assert len(graphs.entries) == MOST and (segment, (0,)) in graphs.entries and (segment, (1,)) not in graphs.entries


def test_a_graph_that_fails_is_dropped_and_counted_anew():
    queue, segment = Recording(), Table("s")
    graphs = Graphs(queue)
    for _ in range(3):
        graphs.run(segment, ())
    queue.refuses = True
    with pytest.raises(EngineError, match="refused"):
        graphs.run(segment, ())
    queue.refuses = False
    graphs.run(segment, ())
    assert names(queue)[-1] == "run"
