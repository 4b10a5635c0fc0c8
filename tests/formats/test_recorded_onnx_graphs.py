"""Graphs, costs and refusals of drawn ONNX operators are those recorded; `recorded_onnx_graphs.py` says how."""

import onnx
import pytest

from tests.formats.recorded_onnx_graphs import PACKAGE, RECORD, WRITTEN, facts, package_facts, written_facts
from tests.support.onnx_draws import DRAWN
from tests.support.recorded_texts import read_sections

WANT = read_sections(RECORD)


@pytest.mark.parametrize("kind", DRAWN)
def test_an_operator_has_the_graphs_costs_and_refusals_that_were_recorded(kind):
    assert facts(kind).splitlines() == WANT[kind].splitlines()


def test_every_drawn_operator_is_recorded():
    assert list(WANT) == [*sorted(DRAWN), PACKAGE, WRITTEN]


def test_the_packages_cases_have_the_graphs_costs_and_refusals_that_were_recorded():
    want = WANT[PACKAGE].splitlines()
    if onnx.__version__ != want[0]:
        pytest.skip(f"onnx {onnx.__version__} has other cases than {want[0]}")
    assert package_facts().splitlines() == want


def test_written_nodes_attributes_and_values_are_those_recorded():
    assert written_facts().splitlines() == WANT[WRITTEN].splitlines()
