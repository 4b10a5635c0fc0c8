"""How small networks fit into budgets is what was recorded: bytes, steps, regions, bands, slides, and what is refused.

Results are the same in any plan, so a test that compares them notices no region that is lost or larger than it must be.
A change that is meant: write the record anew, and read its difference (`recorded_budgets.py` says how).
"""

import pytest

from tests.budget.recorded_budgets import NETWORKS, RECORD, lines_of

LINES = RECORD.read_text().splitlines()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_fits_into_each_budget_as_was_recorded(name):
    assert lines_of(name) == [x for x in LINES if x.startswith(f"{name},")]


def test_nothing_else_is_recorded():
    assert {x.split(",")[0] for x in LINES} == set(NETWORKS)
