"""The calls of the driver that Functions make are those that were recorded: which, in which order, with what.

A change that is meant: write the record anew, and read its difference (`recorded.py` says how).
"""

import pytest

from tests.engine.cuda.recorded import RECORD, SCRIPTS, line

RECORDED = {x.partition(":")[0]: x for x in RECORD.read_text().splitlines()}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_calls_of_a_script_are_those_that_were_recorded(name):
    assert line(name).split(", ") == RECORDED[name].split(", ")


def test_nothing_else_is_recorded():
    assert list(RECORDED) == list(SCRIPTS)
