"""Calls with one wrong argument answer what the record says: which are refused, with which words and numbers.

After a change that is meant, ``python -m tests.language.recorded_answers`` writes the record anew.
"""

from tests.language.recorded_answers import RECORD, recorded


def test_answers_are_those_of_the_record():
    answers, expected = recorded(), RECORD.read_text().splitlines()
    changed = [line for line in answers if line not in set(expected)]
    assert not changed, "calls that answer otherwise, shown by python -m tests.language.recorded_answers TEXT"
    assert answers == expected
