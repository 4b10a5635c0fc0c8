"""The kernel calls of a step: their workspace, their parts, and what is dead behind the last."""

from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.errors import PlanError
from cgraph.ir.work import Part, PlacedStep, Work

NODE = SimpleNamespace(name="sort", where="train.py:7")


def listed(out, *xs, **named) -> list:
    return [(out, xs, named)]


def room(nbytes: int) -> np.ndarray:
    return np.empty(nbytes, "uint8")


def test_work_without_a_workspace_is_called_without_one():
    assert Work(listed).placed("out", ("a", "b"), room(64)) == [("out", ("a", "b"), {})]


def test_work_gets_a_workspace_of_at_least_its_bytes():
    workspace = room(8)
    (call,) = Work(listed, nbytes=8).placed("out", ("a",), workspace)
    assert call[:2] == ("out", ("a",)) and call[2]["workspace"] is workspace


@pytest.mark.parametrize("workspace, available", [(None, 0), (room(7), 7)])
def test_a_workspace_that_is_too_small_is_refused_with_both_numbers(workspace, available):
    with pytest.raises(PlanError, match=f"sort needs a workspace of 8 bytes, but has {available};"):
        list(Work(listed, nbytes=8).parts("sort", "out", (), workspace))
    with pytest.raises(PlanError, match=f"^a step needs a workspace of 8 bytes, but has {available};"):
        Work(listed, nbytes=8).placed("out", (), workspace)


def test_the_exact_bytes_of_these_views_count_instead_of_the_most():
    work = Work(listed, nbytes=8, exact=lambda out, *xs: len(xs))
    assert (work.needs("out", ()), work.needs("out", "abc"), Work(listed, nbytes=8).needs("out", "abc")) == (0, 3, 8)
    assert work.placed("out", ()) == [("out", (), {})]
    with pytest.raises(PlanError, match="3 bytes, but has 2"):
        work.placed("out", "abc", room(2))


def test_a_list_of_calls_is_one_part_and_parts_of_an_op_stay_as_they_are():
    (part,) = Work(listed).parts("sort", "out", ())
    assert (part.label, part.calls, part.times, list(part.dead), list(part.places)) == (
        "sort",
        [("out", (), {})],
        1,
        [],
        [],
    )
    own = [Part("inner", ["first", "second"], times=3), Part("last", ["third"])]
    assert list(Work(lambda out, *xs: iter(own)).parts("sort", "out", ())) == own
    assert Work(lambda out, *xs: iter(own)).placed("out", ()) == ["first", "second", "third"]


def test_a_step_ends_with_what_is_dead_behind_its_last_call():
    asked = []

    def dead():
        asked.append("dead")
        return ["a"]

    step = PlacedStep(NODE, Work(listed), "out", ("a", "b"), None, dead)
    parts = step.parts()
    first = next(parts)
    assert (first.label, first.calls, list(first.dead)) == ("sort at train.py:7", [("out", ("a", "b"), {})], [])
    assert not asked
    (last,) = parts
    assert (last.label, last.calls, last.dead) == ("sort at train.py:7", [], ["a"])


def test_nothing_is_dead_unless_it_is_said():
    *_, last = PlacedStep(NODE, Work(listed), "out", (), None).parts()
    assert last.calls == [] and list(last.dead) == []


def test_a_step_passes_its_workspace_on_and_names_itself_where_it_is_too_small():
    with pytest.raises(PlanError, match="^sort at train.py:7 needs a workspace of 8 bytes, but has 4;"):
        list(PlacedStep(NODE, Work(listed, nbytes=8), "out", (), room(4)).parts())
