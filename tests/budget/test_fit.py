"""The means of a budget: what each is given, their order, when they stop, and which plan is returned."""

from types import SimpleNamespace

import pytest

from cgraph.budget import fit
from cgraph.budget.budget import Budget
from cgraph.budget.fit import fit_plan
from cgraph.memory.problem import Plan
from cgraph.ops.physical.ports import RowSource


def choice(name, nbytes, steps=()):
    """A plan of so many bytes; only its name and its steps are looked at."""
    return SimpleNamespace(name=name, layout=SimpleNamespace(steps=steps)), Plan((), nbytes)


WHOLE, PLANNER, SEARCH = choice("whole", 100), object(), object()
"""The plan without means, and two objects that are only passed on."""


@pytest.fixture
def tried(monkeypatch):
    """Replaces the means by ones that return plans of the bytes in `sizes`, in turn, and note their arguments."""
    sizes: dict[str, list[int]] = {}
    calls = []

    def means(name):
        def run(given, *arguments):
            calls.append((name, given[0].name, *arguments))
            return choice(f"{name} of {given[0].name}", sizes[name].pop(0))

        return run

    class Reruns:
        def __init__(self, whole, planner):
            self.given = whole, planner

        def cheap(self, share):
            return means("cheap")(self.given[0], share, self.given[1])

    for name in ("fit_bands", "rematerialise", "fit_row_streams"):
        monkeypatch.setattr(fit, name, means(name))
    monkeypatch.setattr(fit, "Rematerialisation", Reruns)
    return sizes, calls


def test_nothing_is_tried_without_a_budget_or_an_option_or_where_the_whole_graph_fits(tried):
    for budget in (Budget(), Budget(100), Budget(101), Budget(best_effort=True)):
        assert fit_plan(WHOLE, budget, PLANNER, SEARCH) is WHOLE
    assert tried[1] == []


@pytest.mark.parametrize(
    ("bands", "reruns", "both", "count", "best"),
    [
        (60, 0, 0, 1, "fit_bands of whole"),
        (61, 60, 0, 2, "rematerialise of whole"),
        (61, 62, 60, 3, "fit_bands of rematerialise of whole"),
        (70, 80, 90, 3, "fit_bands of whole"),
        (80, 70, 90, 3, "rematerialise of whole"),
        (90, 80, 70, 3, "fit_bands of rematerialise of whole"),
        (110, 120, 130, 3, "whole"),
        (100, 100, 100, 3, "whole"),
    ],
)
def test_means_are_tried_until_one_meets_the_budget_and_the_smallest_plan_is_returned(
    tried, bands, reruns, both, count, best
):
    sizes, calls = tried
    sizes |= {"fit_bands": [bands, both], "rematerialise": [reruns]}
    assert fit_plan(WHOLE, Budget(60), PLANNER, SEARCH)[0].name == best
    assert (
        calls
        == [
            ("fit_bands", "whole", 60, None, PLANNER, SEARCH),
            ("rematerialise", "whole", 60, PLANNER),
            ("fit_bands", "rematerialise of whole", 60, None, PLANNER),
        ][:count]
    )


@pytest.mark.parametrize("recompute", [True, 90])
def test_segments_that_are_asked_for_run_twice_first_and_not_again_for_the_budget(tried, recompute):
    sizes, calls = tried
    sizes |= {"fit_bands": [70], "rematerialise": [80]}
    best = fit_plan(WHOLE, Budget(60, recompute=recompute), PLANNER, SEARCH)
    assert best[0].name == "fit_bands of rematerialise of whole" and best[1].nbytes == 70
    assert calls == [
        ("rematerialise", "whole", recompute, PLANNER),
        ("fit_bands", "rematerialise of whole", 60, None, PLANNER, SEARCH),
    ]


def test_a_share_of_the_work_is_cheap_values_and_segments_follow_for_the_budget(tried):
    sizes, calls = tried
    sizes |= {"cheap": [90, 90], "fit_bands": [80, 75], "rematerialise": [70]}
    assert fit_plan(WHOLE, Budget(recompute=0.25), PLANNER)[0].name == "cheap of whole"
    assert fit_plan(WHOLE, Budget(60, recompute=0.25), PLANNER)[1].nbytes == 70
    assert calls == [
        *2 * [("cheap", "whole", 0.25, PLANNER)],
        ("fit_bands", "cheap of whole", 60, None, PLANNER, None),
        ("rematerialise", "whole", 60, PLANNER),
        ("fit_bands", "rematerialise of whole", 60, None, PLANNER),
    ]


def test_bands_that_are_asked_for_have_their_pixels_with_and_without_reruns(tried):
    sizes, calls = tried
    sizes |= {"fit_bands": [90, 90, 80], "rematerialise": [85]}
    assert fit_plan(WHOLE, Budget(bands=448), PLANNER)[1].nbytes == 90
    assert fit_plan(WHOLE, Budget(60, bands=448), PLANNER)[1].nbytes == 80
    assert calls == [
        ("fit_bands", "whole", None, 448, PLANNER),
        ("fit_bands", "whole", 60, 448, PLANNER),
        ("rematerialise", "whole", 60, PLANNER),
        ("fit_bands", "rematerialise of whole", 60, 448, PLANNER),
    ]


def test_both_options_begin_with_the_reruns(tried):
    sizes, calls = tried
    sizes |= {"rematerialise": [80], "fit_bands": [70]}
    assert fit_plan(WHOLE, Budget(recompute=True, bands=448), PLANNER)[1].nbytes == 70
    assert calls == [
        ("rematerialise", "whole", True, PLANNER),
        ("fit_bands", "rematerialise of whole", None, 448, PLANNER),
    ]


@pytest.mark.parametrize("nbytes", [None, 60])
def test_rows_that_are_streamed_have_bands_only(tried, nbytes):
    sizes, calls = tried
    sizes["fit_row_streams"] = [90]
    step = SimpleNamespace(op=object.__new__(RowSource))
    best = fit_plan(choice("rows", 100, (step,)), Budget(nbytes), PLANNER)
    assert best[1].nbytes == 90 and calls == [("fit_row_streams", "rows", nbytes, PLANNER)]
