"""Figures of a report: ratios and sums, and the JSON in which every record is a dictionary."""

import json

import pytest

from cgraph.record import replace
from cgraph.view.figures import Alive, Figures, Kernels, PieceRow, RegionRow, RingRow, StepRow, WeightFigures

STEPS = (
    StepRow(0, "exp", "float32[2]", "a.py:1", 8, 24),
    StepRow(1, "sum", "float32[]", "a.py:2", 4, 12),
)
PLAIN = Figures(
    steps=STEPS, peak=0, peak_nbytes=24, alive=(Alive(8, "exp", "a.py:1"),), nbytes=30, unshared_nbytes=40,
    lower_bound=24, plain_lower_bound=32, var_nbytes=16, const_nbytes=4, order="depth_first", strategy="greedy",
    proved=False, kernels=None,
)  # fmt: skip
WEIGHTS = WeightFigures("w", 100, (PieceRow("a", 30), PieceRow("b", 50, 1.0, 2.0, 3.0)))
REGION = RegionRow(1, "conv2d", 64, (RingRow("x", 10, 100), RingRow("y", 20, 300)), 5, 2, 40, 0.5)


def test_the_ratio_is_of_the_plan_to_its_bound():
    assert PLAIN.ratio == 1.25
    assert replace(PLAIN, nbytes=0, lower_bound=0).ratio == 1.0


def test_times_are_added_and_unknown_where_none_was_measured():
    assert PLAIN.seconds is None
    timed = replace(PLAIN, steps=(replace(STEPS[0], seconds=0.25), replace(STEPS[1], seconds=0.5)))
    assert timed.seconds == 0.75
    assert replace(PLAIN, steps=(STEPS[0], replace(STEPS[1], seconds=0.0))).seconds == 0.0


def test_sums_over_pieces_and_rings():
    assert WEIGHTS.nbytes == 80 and replace(WEIGHTS, pieces=()).nbytes == 0
    assert REGION.whole_nbytes == 400


def test_the_dictionary_has_every_field_and_what_is_computed():
    fields = PLAIN.as_dict()
    assert fields.keys() == vars(PLAIN).keys() | {"ratio", "seconds"}
    assert fields["steps"][1] == {
        "step": 1, "op": "sum", "spec": "float32[]", "where": "a.py:2", "nbytes": 4, "in_use": 12, "seconds": None,
    }  # fmt: skip
    assert fields["alive"] == [{"nbytes": 8, "name": "exp", "where": "a.py:1"}]
    assert (fields["kernels"], fields["weights"], fields["regions"], fields["inner"]) == (None, None, [], [])
    assert (fields["ratio"], fields["nbytes"], fields["var_nbytes"], fields["const_nbytes"]) == (1.25, 30, 16, 4)


def test_records_inside_records_are_dictionaries_too():
    kernels = Kernels(1, 2, 3, 4, 0.5)
    whole = replace(
        PLAIN, kernels=kernels, weights=WEIGHTS, regions=(REGION,), inner=(("loop", PLAIN),), on_host=(("sort", 7),)
    )
    fields = json.loads(whole.json())
    assert fields["kernels"] == {"kernels": 1, "calls": 2, "loaded": 3, "compiled": 4, "compile_seconds": 0.5}
    assert fields["weights"]["ring"] == 100 and fields["weights"]["pieces"][1] == {
        "name": "b", "nbytes": 50, "read": 1.0, "predicted": 2.0, "measured": 3.0,
    }  # fmt: skip
    assert fields["regions"][0]["rings"][1] == {"name": "y", "nbytes": 20, "whole_nbytes": 300}
    assert fields["inner"] == [["loop", json.loads(PLAIN.json())]] and fields["on_host"] == [["sort", 7]]


@pytest.mark.parametrize("figures", [PLAIN, replace(PLAIN, weights=WEIGHTS)])
def test_the_json_is_indented_by_one(figures):
    assert figures.json().splitlines()[1].startswith(' "steps"') and json.loads(figures.json()) == json.loads(
        json.dumps(figures.as_dict())
    )
