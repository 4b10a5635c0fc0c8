"""A step back of the search, in plain Python: which choice is taken back, and in which range the search goes on."""

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cgraph.memory import search

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
