"""The code that engines make is what was recorded: for another processor, and for a device that is not there.

A change that is meant: write the record anew, and read its difference (`recorded.py` says how).
"""

import pytest

from tests.engine.recorded import CASES, RECORD, line

RECORDED = {x.partition(":")[0]: x for x in RECORD.read_text().splitlines()}


@pytest.mark.parametrize("name", CASES)
def test_the_code_of_a_graph_is_what_was_recorded(name):
    assert line(name).split(", ") == RECORDED[name].split(", ")


def test_nothing_else_is_recorded():
    assert list(RECORDED) == list(CASES)
