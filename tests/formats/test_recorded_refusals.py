"""What readers answer to files that they refuse is what was recorded; `recorded_refusals.py` says how."""

import pytest

from tests.formats.recorded_refusals import RECORD, TABLES, answers
from tests.support.recorded_texts import read_sections

WANT = read_sections(RECORD)


@pytest.mark.parametrize("table", TABLES)
def test_a_reader_answers_what_was_recorded(table, tmp_path):
    assert answers(table, tmp_path).splitlines() == WANT[table].splitlines()


def test_every_recorded_file_is_refused():
    assert list(WANT) == list(TABLES)
    assert not [line for text in WANT.values() for line in text.splitlines() if line.endswith("-- is read")]
