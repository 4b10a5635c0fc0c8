"""The calls that ops make for each target, and the LLVM text of their kernels, are those that were recorded.

Tests of results run on this machine's targets; here each processor has its calls and texts. A change that is meant:
write the record anew, and read its difference (`recorded.py` says how).
"""

import pytest

from tests.kernels.recorded import FAMILIES, GRAPHS, RECORD, graph_line, listed_line
from tests.kernels.test_signatures import FAMILIES as SIGNATURES

RECORDED = {x.rpartition(": ")[0]: x for x in RECORD.read_text().splitlines()}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_calls_and_kernels_of_a_graph_are_those_that_were_recorded(name):
    assert graph_line(name).split(", ") == RECORDED[name].split(", ")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_text_of_the_kernels_of_a_family_is_what_was_recorded(family):
    assert listed_line(family) == RECORDED[family]


def test_nothing_else_is_recorded():
    assert list(RECORDED) == [*GRAPHS, *FAMILIES]


def test_kernels_of_each_family_are_listed():
    assert {x.family for x in SIGNATURES if not x.family.startswith("user.")} <= set(FAMILIES)
