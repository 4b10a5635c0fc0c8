"""Plan sizes of the known networks are exact numbers; `python -m benchmarks.plan_sizes` writes the file anew."""

from pathlib import Path

import pytest

from benchmarks.plan_sizes import GRAPHS, HEAD, NETWORKS, row

LINES = (Path(__file__).parent / "plan_sizes.txt").read_text().splitlines()
ROWS = {tuple(line.split()[:2]): line for line in LINES[1:]}
BUILT = [(name, "built") for name in NETWORKS]
LOWERED = [pytest.param(name, "lowered", marks=pytest.mark.slow) for name in NETWORKS]


def test_every_network_has_its_rows():
    assert LINES[0] == HEAD
    assert list(ROWS) == [(name, graph) for name in NETWORKS for graph in GRAPHS]


@pytest.mark.parametrize(("name", "graph"), [*BUILT, *LOWERED])
def test_plan_sizes_are_those_of_the_file(name, graph):
    assert row(name, graph) == ROWS[name, graph]


def test_every_plan_is_as_small_as_its_schedule_allows():
    assert {line.split()[5] for line in ROWS.values()} == {"1.000"}
