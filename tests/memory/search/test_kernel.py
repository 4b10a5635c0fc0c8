"""The search in plain Python: its state at each choice, what is chosen, and what a step back takes back."""

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cgraph.memory import search
from cgraph.memory.bounds import lower_bound
from cgraph.memory.search.instance import instance_of, unit_of
from cgraph.memory.search.state import FEWEST, LOWEST, TIGHTEST, new_state
from tests.support.problems import random_problem

FRAMES = [(7, 0, 1, 0, 10), (3, 2, 2, 0, 4), (5, 4, 3, 4, 10), (2, 6, 4, 0, 4)]  # operand, trail, serial, range


def plain_kernel() -> dict[str, Any]:
    """Return the names of the kernel's module, whose functions Numba does not compile."""
    tree = ast.parse(Path(search.__path__[0], "kernel.py").read_text(encoding="utf-8"))
    for x in tree.body:
        if isinstance(x, ast.FunctionDef):
            x.decorator_list = []
    names: dict[str, Any] = {}
    exec(compile(tree, "kernel.py", "exec"), names)
    return names


@pytest.mark.parametrize(
    ("failed", "parent"),
    [((0, 4), 3), ((4, 10), 2), ((9, 10), 2), ((3, 5), 3), ((10, 11), -1), ((4, 5), 2), ((3, 4), 3)],
)
def test_a_step_back_goes_to_the_last_choice_in_the_range_that_failed_and_on_in_that_choices_range(failed, parent):
    kernel, undone = plain_kernel(), []
    kernel["undo"] = lambda instance, state, operand, mark: undone.append((operand, mark))
    counters = np.zeros(7, np.int64)
    depth, begin, end = (kernel[name] for name in ("DEPTH", "RANGE_BEGIN", "RANGE_END"))
    counters[depth], counters[begin], counters[end] = len(FRAMES), *failed
    state = SimpleNamespace(counters=counters, frames=np.array(FRAMES))
    operand = kernel["pop_to_parent"](None, state)
    if parent < 0:
        assert operand == kernel["NONE"] and not undone
        return
    assert operand == FRAMES[parent][0]
    assert undone == [frame[:2] for frame in reversed(FRAMES[parent:])]
    assert counters[depth] == parent and (counters[begin], counters[end]) == FRAMES[parent][3:]


@pytest.mark.parametrize("method", [LOWEST, TIGHTEST, FEWEST])
@pytest.mark.parametrize("seed", range(4))
def test_state_and_choice_are_what_their_definitions_say_at_every_step(seed, method):
    """Sums, bounds and the choice are worked out anew from the operands that wait and the places of the others."""
    problem = random_problem(seed, 16)
    positions = np.flatnonzero(problem.nbytes)
    unit = unit_of(problem.nbytes[positions])
    instance = instance_of(problem, positions, unit)
    capacity = -(-lower_bound(problem) // unit)
    state = new_state(
        instance, np.random.default_rng(seed).permutation(len(positions)), np.ones(len(instance.member_start) - 1)
    )
    kernel, seen = plain_kernel(), []
    choose = kernel["choose"]

    def checked(instance, state, capacity, method):
        check_state(kernel, instance, state, capacity)
        b = choose(instance, state, capacity, method)
        begin, end = (state.counters[kernel[x]] for x in ("RANGE_BEGIN", "RANGE_END"))
        assert state.waiting[b] and begin <= instance.begin[b] and instance.end[b] <= end
        below = [i for i in neighbours(instance, b) if state.waiting[i] and top(instance, state, i) <= state.lowest[b]]
        assert not below, "a neighbour that waits fits below"
        seen.append(b)
        return b

    kernel["choose"] = checked
    kernel["advance"](instance, state, capacity, method, 100)
    assert len(seen) >= 10


def top(instance, state, i) -> int:
    return state.lowest[i] + instance.size[i]


def neighbours(instance, i) -> list[int]:
    return instance.neighbour[instance.neighbour_start[i] : instance.neighbour_start[i + 1]].tolist()


def check_state(kernel, instance, state, capacity) -> None:
    waiting = state.waiting
    assert state.counters[kernel["WAITING"]] == waiting.sum()
    for i in np.flatnonzero(waiting):
        placed = [top(instance, state, j) for j in neighbours(instance, i) if not waiting[j]]
        assert state.base[i] == max(placed, default=0) <= state.lowest[i]
    for s in range(len(state.total)):
        members = instance.member[instance.member_start[s] : instance.member_start[s + 1]]
        left = members[waiting[members]]
        assert state.total[s] == instance.size[left].sum()
        assert state.crossing[s] == (waiting & (instance.begin < s) & (s < instance.end)).sum()
        if len(left):
            assert state.floor[s] == state.lowest[left].min() <= capacity - state.total[s]
            assert state.firsts[s] == (state.lowest[left] <= capacity - state.total[s]).sum()


def test_sizes_and_borders_that_are_crossed_are_those_of_the_operands_that_wait():
    """Operands are placed and taken back at random; the range of a choice is the part that they join."""
    kernel, rng = plain_kernel(), np.random.default_rng(0)
    begin = rng.integers(0, 18, 12)
    instance = SimpleNamespace(begin=begin, end=begin + rng.integers(1, 5, 12), size=rng.integers(1, 9, 12))
    counters, sections = np.zeros(7, np.int64), 24
    state = SimpleNamespace(
        waiting=np.zeros(12, bool), counters=counters, trail=np.zeros((0, 3), np.int64), value=None, stamp=None,
        total=np.zeros(sections, np.int64), crossing=np.zeros(sections, np.int64), frames=np.zeros((9, 5), np.int64),
    )  # fmt: skip
    found = set()
    for b in rng.integers(0, 12, 200):
        if state.waiting[b]:
            kernel["count"](instance, state, b, -1)
        else:
            kernel["undo"](instance, state, b, 0)
        spans = [range(instance.begin[i], instance.end[i]) for i in np.flatnonzero(state.waiting)]
        assert counters[kernel["WAITING"]] == len(spans)
        sizes = instance.size[state.waiting]
        assert state.total.tolist() == [sum(n for x, n in zip(spans, sizes) if s in x) for s in range(sections)]
        crossed = [sum(x.start < s < x.stop for x in spans) for s in range(sections)]
        assert state.crossing.tolist() == crossed
        counters[kernel["DEPTH"]] = 0
        kernel["push"](instance, state, b)
        low = max(s for s in range(begin[b] + 1) if not crossed[s])
        high = min(s for s in range(instance.end[b], sections) if not crossed[s])
        frame = state.frames[0]
        assert (frame[kernel["OPERAND"]], frame[kernel["BEGIN"]], frame[kernel["END"]]) == (b, low, high)
        assert (counters[kernel["RANGE_BEGIN"]], counters[kernel["RANGE_END"]]) == (low, high)
        found.add(high - low)
    assert len(found) > 5
