"""What each op asks for and calls on machines that nothing runs on is what was recorded.

A test that compares results notices no lost permission to overwrite, no workspace that is too large, and no kernel that
is chosen where a faster one would do. A change that is meant: write the record anew, and read its difference
(`recorded_work.py` says how).
"""

import pytest

from tests.ops.recorded_work import RECORD, SECTIONS, line

LINES = RECORD.read_text().splitlines()
WANT = {x.rpartition(": ")[0]: x for x in LINES}


@pytest.mark.parametrize("name", SECTIONS)
def test_an_op_asks_for_and_calls_what_was_recorded(name):
    assert line(name) == WANT[name]


def test_nothing_else_is_recorded():
    assert [*WANT] == [*SECTIONS]
