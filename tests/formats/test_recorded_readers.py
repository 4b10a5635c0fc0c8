"""What readers make of files, and what they charge for it, is what was recorded; `recorded_readers.py` says how."""

import pytest

from tests.formats.recorded_readers import READERS, RECORD, line_of
from tests.support.recorded_texts import read_sections

WANT = read_sections(RECORD)


@pytest.mark.parametrize("name", READERS)
def test_nodes_and_charges_are_what_was_recorded(name):
    assert line_of(name) == WANT[name]


def test_nothing_else_is_recorded():
    assert list(WANT) == list(READERS)
