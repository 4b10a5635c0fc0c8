"""How far something is that takes longer than a second, where somebody looks and where nobody does."""

import io
import sys

import numpy as np
import pytest

from cgraph.cli import main
from cgraph.memory.strategies.exact import exact
from cgraph.planning.strategy import strategy_named
from cgraph.system import progress
from cgraph.system.progress import CLEAR, Bars, bounds_progress, line_start, silent, with_progress
from tests.support.problems import random_problem


class Terminal(io.StringIO):
    def isatty(self):
        return True

    @property
    def lines(self):
        return [line for line in self.getvalue().split(CLEAR) if line]


def test_a_stage_has_a_line_once_it_takes_longer_than_a_second():
    now, shown = [0.0], Terminal()
    found = Bars(shown, lambda: now[0])
    for i in range(11):
        now[0] = 0.3 * i
        found("ranges", i, 10)
    assert shown.lines[0] == "ranges 4/10  2 s left" and len(shown.lines) == 6
    assert shown.getvalue().endswith(CLEAR)
    quiet = io.StringIO()
    found = Bars(quiet, lambda: now[0])
    for i in range(11):
        now[0] += 0.01
        found("ranges", i, 10)
    assert quiet.getvalue() == ""


def test_a_log_has_a_line_of_text_each_five_seconds_and_nothing_is_cleared():
    now, shown = [0.0], io.StringIO()
    bars = Bars(shown, lambda: now[0])
    for i in range(13):
        now[0] = 100 + i
        bars("rows", i, 12)
    assert shown.getvalue() == "rows 5/12  7 s left\nrows 10/12  2 s left\n"


def test_each_stage_has_a_time_of_its_own_and_its_line_is_cleared_once():
    now, shown = [0.0], Terminal()
    bars = Bars(shown, lambda: now[0])
    bars("one", 0, 4)
    now[0] = 2.0
    bars("one", 1, 4)
    bars("one", 2, 4)  # 0.2 seconds have not passed
    bars("one", 4, 4)
    assert shown.getvalue() == f"{CLEAR}one 1/4  6 s left{CLEAR}"
    bars("two", 0, 2)
    now[0] = 2.9
    bars("two", 1, 2)
    bars.clear()
    assert shown.getvalue() == f"{CLEAR}one 1/4  6 s left{CLEAR}"


def test_items_are_told_of_after_each_is_done():
    told: list[object] = []
    for item in with_progress("rows", "ab", lambda *x: told.append(x)):
        told.append(item)
    assert told == [("rows", 0, 2), "a", ("rows", 1, 2), "b", ("rows", 2, 2)]
    told.clear()
    assert list(with_progress("rows", "", lambda *x: told.append(x))) == [] and told == [("rows", 0, 0)]
    assert list(with_progress("rows", [7], silent)) == [7]


def test_a_line_is_cleared_where_bars_stand_and_nowhere_else():
    assert line_start(Terminal()) == CLEAR and line_start(io.StringIO()) == "" and line_start(None) == ""


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_a_search_says_what_is_known_on_a_terminal_alone_and_leaves_no_line(stream):
    now = [0.0]
    with pytest.raises(KeyboardInterrupt), bounds_progress("search", stream, lambda: now[0]) as tell:
        for upper in (4096, 3072, 2048):
            now[0] += 0.9
            tell(1024, upper)
        raise KeyboardInterrupt
    said = ["search: at least 1 KiB, found 3 KiB  2 s", "search: at least 1 KiB, found 2 KiB  3 s"]
    assert stream.getvalue() == ("".join(CLEAR + x for x in said) + CLEAR if stream.isatty() else "")


def test_nothing_is_written_where_there_is_no_stream(monkeypatch):
    """Programs without a console have none."""
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(progress, "QUICK", -1.0)
    monkeypatch.setattr(progress, "LONG_PAUSE", -1.0)
    Bars()("stage", 1, 2)
    with bounds_progress("search") as tell:
        tell(1, 2)


def test_the_exact_search_tells_what_narrows_and_plans_the_same():
    problem, told = random_problem(seed=23, count=120), []
    plan = exact(problem, seconds=None, nodes=100_000, tell=lambda *known: told.append(known))
    assert told and plan == exact(problem, seconds=None, nodes=100_000)
    lower, upper = np.array(told).T
    assert (np.diff(lower) >= 0).all() and (np.diff(upper) <= 0).all()
    assert (lower <= upper).all() and plan.nbytes <= upper[-1]


def test_an_exact_search_of_a_command_or_of_compile_has_a_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(progress, "QUICK", -1.0)
    monkeypatch.setattr(progress, "PAUSE", -1.0)
    problem, shown = random_problem(seed=23, count=120), Terminal()
    rows = (f"{i},{x.interval.first},{x.interval.last},{x.nbytes}" for i, x in enumerate(problem.operands))
    path = tmp_path / "records.csv"
    path.write_text("id,first_op,last_op,size_bytes\n" + "\n".join(rows) + "\n")
    monkeypatch.setattr(sys, "stderr", shown)
    assert main(["plan", str(path), "--strategy", "exact"]) == 0
    assert shown.lines[0].startswith("exact search: at least ") and shown.getvalue().endswith(CLEAR)
    before = len(shown.lines)
    assert strategy_named("exact")(problem).strategy == "exact" and len(shown.lines) > before


def test_what_ends_a_command_begins_where_a_bar_has_stood(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    assert main(["plan", "tests.cli.test_main:interrupted"]) == 130
    assert shown.getvalue() == f"{CLEAR}cgraph: interrupted\n"


def test_runs_have_a_line(monkeypatch, capsys):
    monkeypatch.setattr(progress, "QUICK", -1.0)
    monkeypatch.setattr(progress, "PAUSE", -1.0)
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    assert main(["bench", "tests.cli.test_run_model:nodes", "--runs", "2"]) == 0
    assert shown.lines[0].startswith("turns 1/") and shown.getvalue().endswith(CLEAR)
