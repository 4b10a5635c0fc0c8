"""Schedules, plans and kernel calls of a set of graphs are those that were recorded.

A test that compares results notices no fault that makes a plan larger, a kernel slower or a pass rarer. A change that
is meant: write the record anew, and read its difference (`recorded.py` says how).
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.planning.recorded import GRAPHS, RECORD, cases, compiled, facts, line

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_compiled_is_what_was_recorded(name):
    want = [x for x in RECORD.read_text().splitlines() if x.startswith(f"{name},")]
    assert [line(*case) for case in cases() if case[0] == name] == want[:-1]


def test_pictures_and_texts_are_what_was_recorded():
    """In a process of its own: names that pictures find in sources depend on what a process has read."""
    command = [sys.executable, "-m", "tests.planning.recorded", "--shown"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert found.splitlines() == RECORD.read_text().splitlines()[-len(GRAPHS) :]


def test_nothing_else_is_recorded():
    assert [x.split(":")[0] for x in RECORD.read_text().splitlines()] == [
        *(", ".join(case) for case in cases()),
        *(f"{name}, shown" for name in GRAPHS),
    ]


def test_the_same_graph_has_the_same_facts_each_time():
    case = "training", "avx512", "as it is"
    assert facts(compiled(*case)) == facts(compiled(*case))
