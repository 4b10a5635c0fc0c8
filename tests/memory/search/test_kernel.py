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
