"""Scenarios of transactions: an act that is cut off at any line, and what must hold afterwards."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cgraph as cg
from cgraph.engine.cpu import threads as threads_module
from cgraph.engine.reference import evaluate
from tests.support.injection import Lines, ends_of_lines
from tests.support.patience import PATIENCE
from tests.support.tolerance import assert_near

SAMPLED = 17  # every such line in the quick loop
OF_THE_DEVICE = 97  # every such line of the simulated device, whose kernels take thousands


class Scenario:
    """Vars, an act on them, and Functions that read them. Changes: the Vars, by each act.

    Fields
        act: what is cut off: a Function, or something else without arguments
        updates: Vars, and what each holds after the act: a node, or an array
        reads: nodes over the Vars
        reader: their Function
        kept: what holds always
    """

    def __init__(
        self,
        act: Callable[[], Any],
        updates: Mapping[cg.Var, Any],
        reads: Sequence[cg.Node],
        reader: cg.Function | None = None,
        kept: Callable[[], bool] = lambda: True,
    ) -> None:
        self.act, self.updates, self.reads, self.kept = act, updates, list(reads), kept
        self.reader = reader or cg.compile(self.reads)

    def outcomes(self) -> tuple[list[Any], list[Any]]:
        """The Vars' values when the act does not happen, and when it does; readers know the present ones."""
        now = values_of(self.updates)
        if all(v is not None for v in now):
            self.reader()
        nodes = [x for x in self.updates.values() if isinstance(x, cg.Node)]
        found = dict(zip(nodes, (np.array(v) for v in evaluate(nodes))))
        return now, [found[x] if isinstance(x, cg.Node) else x for x in self.updates.values()]

    def check(self, outcomes: tuple[list[Any], list[Any]]) -> None:
        """What holds after the act, cut off or not."""
        now = values_of(self.updates)
        assert any(same(now, outcome) for outcome in outcomes), "some Vars have moved and others have not"
        if all(v is not None for v in now):
            got, want = in_time(self.reader), evaluate(self.reads)
            for a, b in zip(got, want):
                assert_near(a, b, "float32 formulas")
        assert self.kept()
        assert threads_module._pool._free == threads_module._pool.size


def values_of(held: Iterable[cg.Var]) -> list[np.ndarray | None]:
    return [x.value if x.is_assigned else None for x in held]


def same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return all((x is None and y is None) or (x is not None and y is not None and (x == y).all()) for x, y in zip(a, b))


def in_time(call: Callable[[], Any]) -> Any:
    """What it returns in another thread, which would wait for ever for a turn, a lock or a core that was lost."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(timeout=PATIENCE)
    assert found, "a call fails, or waits for ever"
    return found[0]


def var(n: int, value: float, dtype: str = "float64") -> cg.Var:
    return cg.Var((n,), dtype).assign(np.full(n, value, dtype))


def cut_off(scenario: Scenario, at: int) -> None:
    """The act with an exception at one event, then what must hold; and after a whole one again."""
    outcomes = scenario.outcomes()
    Lines(at).during(scenario.act)
    scenario.check(outcomes)
    _, whole = scenario.outcomes()
    scenario.act()
    scenario.check((whole, whole))


def check_lines(make: Callable[[], Scenario], each: int) -> None:
    """Cut the act off: each one that follows others, and every fourth time the first of its Function.

    At every so many events; with 1 at each line, in its first two rounds and the last.
    """
    scenario = make()
    first = chosen_events(scenario.act, each)
    scenario.outcomes()
    for at, line in chosen_events(scenario.act, each):
        check_cut(scenario, at, line)
    for at, line in first[::4]:
        check_cut(make(), at, line)


def chosen_events(act: Callable[[], Any], each: int) -> list[tuple[int, tuple[str, int]]]:
    """Numbers of events of a call, with their lines; few of the simulated device's."""
    lines, ends = ends_of_lines(act)
    numbers = range(1, len(lines) + 1, each) if each > 1 else ends
    return [
        (at, lines[at - 1])
        for at in numbers
        if "simulator" not in Path(lines[at - 1][0]).parts or at // each % OF_THE_DEVICE == 0
    ]


def check_cut(scenario: Scenario, at: int, line: tuple[str, int]) -> None:
    try:
        cut_off(scenario, at)
    except BaseException as error:
        error.add_note(f"cut off at event {at}: {line}")
        raise
