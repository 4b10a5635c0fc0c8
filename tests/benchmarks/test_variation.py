"""Recorded modules compute what they compute otherwise, and record the cases that each place has met."""

import json

import pytest

from benchmarks import variation
from benchmarks.variation import CASES, PREFIX, RECORDERS, instrumented, unmet

SOURCE = '''"""A module."""


def bounded(values, low=0, *, high=9, names=()):
    """Return the numbers between two bounds, doubled."""
    inside = [2 * x for x in values if x >= low and not x > high]
    if not inside or low:
        return low, len(inside)
    return inside[0] + low, max(len(values), 2)


class Table:
    size: int = 3

    def is_full(self, more):
        return self.size <= more

    def first(self, entries):
        for entry in entries:
            if entry is not None and entry != 0:
                return entry
        return 0 or None
'''


@pytest.fixture
def module(monkeypatch):
    """The names of a recorded module, with a function that returns the cases that a place has met."""
    monkeypatch.setattr(variation, "sites", [])
    monkeypatch.setattr(variation, "met", [])
    names = {PREFIX + x.__name__: x for x in RECORDERS}
    exec(instrumented(SOURCE, "module.py", "module.py"), names)

    def met(kind, text):
        (i,) = (i for i, x in enumerate(variation.sites) if x[3:] == (kind, text))
        return {name for k, name in enumerate(CASES[kind]) if variation.met[i] >> k & 1}

    return names, met


def test_results_are_those_of_the_module(module):
    names, plain = module[0], {}
    exec(SOURCE, plain)
    for arguments in ([[]], [[1]], [[3, 10, 4]], [[3, -1], 1], [[7, 8], 0]):
        assert names["bounded"](*arguments) == plain["bounded"](*arguments)
    assert names["bounded"].__doc__ == plain["bounded"].__doc__
    assert [names["Table"]().is_full(x) for x in (2, 3, 4)] == [False, True, True]
    assert [names["Table"]().first(x) for x in ([], [0, None, 5, 6])] == [None, 5]


def test_each_kind_of_place_records_its_cases(module):
    names, met = module
    names["bounded"]([4])
    assert met("comparison", "x >= low") == {"larger"} and met("condition", "x >= low") == {"true"}
    assert met("comparison", "x > high") == {"smaller"} and met("loop", "values") == {"one round"}
    assert met("default", "low=0") == met("default", "high=9") == {"the default"}
    assert met("index", "inside[0]") == {"one element"} and met("choice", "max(len(values), 2)") == {"smaller"}
    assert met("term", "low in inside[0] + low") == {"0"} and met("factor", "x in 2 * x") == {"another number"}
    names["bounded"]([4, 9, 0, -1], high=8)
    assert met("comparison", "x >= low") == {"smaller", "equal", "larger"}
    assert met("condition", "x >= low") == {"true", "false"} and met("comparison", "x > high") == {"smaller", "larger"}
    assert met("loop", "values") == {"one round", "several rounds"}
    assert met("index", "inside[0]") == {"one element", "several elements"}
    assert met("default", "high=9") == {"the default", "another value"} and met("default", "low=0") == {"the default"}
    names["bounded"]([1], 1)
    assert met("condition", "inside") == {"true"} and met("condition", "low") == {"true", "false"}
    assert met("factor", "x in 2 * x") == {"1", "another number"}


def test_places_that_only_arrays_reach_have_all_cases(module):
    names, met = module
    np = pytest.importorskip("numpy")
    names["Table"]().is_full(np.int64(2))
    assert met("comparison", "self.size <= more") == {"smaller", "equal", "larger"}


def test_a_loop_that_ends_early_counts_its_rounds(module):
    names, met = module
    names["Table"]().first([5, 6, 7])
    assert met("loop", "entries") == {"one round"}
    names["Table"]().first([None, 6, 7])
    assert met("loop", "entries") == {"one round", "several rounds"}


def test_a_case_is_missing_if_no_process_has_met_it(tmp_path):
    places = [
        ["a.py", 3, "f", "condition", "x"],
        ["a.py", 2, "f", "loop", "xs"],
        ["b.py", 1, "g", "comparison", "a < b"],
        ["b.py", 2, "g", "default", "p=1"],
    ]
    for name, cases in {"1": (1, 1, 1, 2), "2": (2, 2, 4, 2)}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps([[*x, case] for x, case in zip(places, cases)]))
    assert list(unmet(tmp_path)) == [
        ("a.py", 2, "a.py:2 f: loop xs: never several rounds"),
        ("b.py", 1, "b.py:1 g: comparison a < b: never equal"),
        ("b.py", 2, "b.py:2 g: default p=1: never the default"),
    ]
