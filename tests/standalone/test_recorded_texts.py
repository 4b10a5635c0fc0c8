"""What an export writes of programs by hand is what was recorded; `recorded_texts.py` says how."""

import llvmlite.binding as llvm
import pytest

from tests.standalone.recorded_texts import RECORD, TEXTS, text_of
from tests.support.recorded_texts import read_sections

WANT = read_sections(RECORD)


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_written_is_what_was_recorded(name):
    assert text_of(name) == WANT[name]


@pytest.mark.parametrize("name", ["entry", "entry for memory of the caller", "entry of several runs"])
def test_a_recorded_entry_is_a_module(name):
    llvm.parse_assembly(WANT[name]).verify()


def test_nothing_else_is_recorded():
    assert list(WANT) == list(TEXTS)
