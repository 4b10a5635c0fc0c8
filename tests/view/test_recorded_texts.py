"""Pictures, pages, reports and traces of records by hand are those that were recorded; `recorded_texts.py` says how."""

import pytest

from tests.support.recorded_texts import read_sections
from tests.view.recorded_texts import RECORD, TEXTS, text_of

WANT = read_sections(RECORD)


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_shown_is_what_was_recorded(name):
    assert text_of(name) == WANT[name]


def test_nothing_else_is_recorded():
    assert list(WANT) == list(TEXTS)
