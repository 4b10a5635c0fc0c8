"""Strategies from outside the library: functions, entry points and Python references."""

import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main
from cgraph.errors import GraphError, PlanError
from cgraph.memory.strategies.one_each import one_each
from cgraph.planning import strategy as strategies
from cgraph.planning.strategy import GROUP


def mine(problem: cg.Problem) -> cg.Plan:
    """One operand behind another, in falling order."""
    ends = np.cumsum(problem.nbytes[::-1])[::-1]
    return cg.Plan(tuple((ends - problem.nbytes).tolist()), int(problem.nbytes.sum()), "mine")


def wrong(problem: cg.Problem) -> cg.Plan:
    return cg.Plan((0,) * len(problem.operands), int(problem.nbytes.max()))


NUMBER = 3


def network() -> tuple[cg.Node, cg.Var]:
    x = cg.Var((16, 16), name="x")
    return cg.softmax(cg.cumsum(x, 0) @ np.ones((16, 8), "f4"), 1), x


def test_a_function_plans_a_graph_and_its_plan_computes_the_same():
    y, x = network()
    value = np.random.default_rng(0).normal(size=(16, 16)).astype("f4")
    own, usual = cg.compile(y, [x], memory=mine), cg.compile(y, [x])
    assert own.plan.strategy == "mine" and own.nbytes >= usual.nbytes
    np.testing.assert_array_equal(own(value), usual(value))


def test_a_wrong_plan_and_what_is_no_plan_are_refused():
    y, x = network()
    with pytest.raises(PlanError, match="share bytes, but both are in use at step"):
        cg.compile(y, [x], memory=wrong)
    with pytest.raises(PlanError, match=r"the memory strategy <lambda> returned 3. Return cg.Plan\(offsets, nbytes\)"):
        cg.compile(y, [x], memory=lambda problem: 3)


def test_a_strategy_keeps_its_name_and_text_and_may_return_a_plan_of_its_own_class():
    class OwnPlan(cg.Plan):
        """A plan with a field that only its strategy reads."""

        rounds: int = 3

    def counting(problem: cg.Problem) -> cg.Plan:
        """One operand behind another, with a count."""
        plan = mine(problem)
        return OwnPlan(plan.offsets, plan.nbytes, "counting")

    checked = strategies.returning_plans(counting)
    assert (checked.__name__, checked.__doc__) == ("counting", "One operand behind another, with a count.")
    assert checked(cg.Problem(())).rounds == 3
    y, x = network()
    assert cg.compile(y, [x], memory=counting).plan.strategy == "counting"


class Added:
    """An entry point."""

    name = "mine"

    @staticmethod
    def load():
        return mine


def test_an_installed_package_adds_a_strategy_by_name(monkeypatch, tmp_path, capsys):
    y, x = network()
    with pytest.raises(GraphError, match="there is no memory strategy 'mine'"):
        cg.compile(y, [x], memory="mine")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Added] if group == GROUP else [])
    assert cg.compile(y, [x], memory="mine").plan.strategy == "mine"
    with pytest.raises(GraphError, match="one_each, mine. Pass one as memory="):
        cg.compile(y, [x], memory="best")
    (tmp_path / "r.csv").write_text("id,lower,upper,size\na,0,3,100\nb,1,4,50\n")
    assert main(["plan", str(tmp_path / "r.csv"), "--strategy", "mine"]) == 0
    assert "mine" in capsys.readouterr().out


def no_plan(problem: cg.Problem) -> int:
    return 3


NAMELESS = partial(no_plan)


@pytest.mark.parametrize("strategy", [no_plan, NAMELESS, wrong], ids=["named", "nameless", "wrong"])
@pytest.mark.parametrize("way", ["function", "package", "command", "command of a package"])
def test_whatever_way_a_strategy_comes_what_it_returns_is_checked(strategy, way, monkeypatch, tmp_path, capsys):
    added = SimpleNamespace(name="added", load=lambda: strategy)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [added] if group == GROUP else [])
    name = "wrong" if strategy is wrong else "no_plan" if strategy is no_plan else "NAMELESS"
    says = (
        "share bytes"
        if strategy is wrong
        else r"functools\.partial\("
        if strategy is NAMELESS
        else "no_plan returned 3"
    )
    if way in ("function", "package"):
        y, x = network()
        with pytest.raises(PlanError, match=says):
            cg.compile(y, [x], memory="added" if way == "package" else strategy)
        return
    (tmp_path / "r.csv").write_text("id,lower,upper,size\na,0,3,100\nb,1,4,50\n")
    option = "added" if way == "command of a package" else f"tests.planning.test_strategy:{name}"
    assert main(["plan", str(tmp_path / "r.csv"), "--strategy", option]) == 2
    assert re.search(says, capsys.readouterr().err)


def test_the_command_takes_a_python_reference(tmp_path, capsys):
    (tmp_path / "r.csv").write_text("id,lower,upper,size\na,0,3,100\nb,1,4,50\n")
    here = "tests.planning.test_strategy"
    assert main(["plan", str(tmp_path / "r.csv"), "--strategy", f"{here}:mine"]) == 0
    assert f"{here}:mine" in capsys.readouterr().out
    assert main(["plan", str(tmp_path / "r.csv"), "--strategy", f"{here}:NUMBER"]) == 2
    assert "not a function of a Problem" in capsys.readouterr().err
    assert main(["plan", str(tmp_path / "r.csv"), "--strategy", f"{here}:missing"]) == 2
    with pytest.raises(SystemExit):
        main(["plan", str(tmp_path / "r.csv"), "--strategy", "best"])
    assert "there is no strategy 'best'. Use one of auto" in capsys.readouterr().err


def test_problems_and_plans_are_made_without_a_graph():
    operands = tuple(cg.ProblemOperand(n, cg.UsageInterval(i, i + 1)) for i, n in enumerate((100, 50)))
    problem = cg.Problem(operands, alignment=64)
    assert problem.nbytes.tolist() == [128, 64] and problem.first.tolist() == [0, 1] and problem.last.tolist() == [1, 2]
    assert mine(problem).nbytes == one_each(problem).nbytes == 192


@pytest.mark.parametrize("options", [{}, {"capacity": 7}])
def test_the_exact_strategy_by_its_name_has_a_capacity_and_a_line_of_progress(monkeypatch, options):
    asked = []
    monkeypatch.setattr(strategies, "exact", lambda problem, **given: asked.append((problem, given)) or "plan")
    assert strategies.strategy_named("exact")("problem", **options) == "plan"
    ((problem, given),) = asked
    assert problem == "problem" and given["capacity"] == options.get("capacity") and callable(given["tell"])
