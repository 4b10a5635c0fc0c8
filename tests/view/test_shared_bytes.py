"""Values that share bytes: whose line, whose views and which reserved bytes a report and a picture show."""

from collections import Counter

import numpy as np
import pytest

import cgraph as cg
from cgraph.record import replace
from cgraph.view.planned import memory_of
from cgraph.view.report import _alive


@pytest.fixture(scope="module")
def function() -> cg.Function:
    """A view on a line of its own, values that overwrite one another, and parts made inside a concat."""
    x = cg.Var((16, 16), name="x")
    product = x @ np.ones((16, 16), "float32")
    turned = product.T
    soft = cg.softmax(product)
    parts = [cg.sort(soft, 1), turned @ soft]
    whole = cg.concat(parts, 0)
    return cg.compile([cg.softmax(whole), cg.sum(turned, 1)], x, order="least_memory")


def test_of_values_in_the_same_bytes_the_line_is_that_of_the_last(function):
    compiled, memory = function.compiled, memory_of(function)
    several = 0
    for step in range(len(compiled.layout.steps)):
        held: dict[int, list[int]] = {}
        for i in sorted(memory.alive(step)):
            held.setdefault(memory.boxes[i].operand, []).append(i)
        rows = Counter((x.name, x.where) for x in _alive(compiled, replace(memory, peak=step)))
        for numbers in held.values():
            boxes = [memory.boxes[i] for i in numbers]
            rows[", ".join(f"{x.name} {x.spec}".rstrip() for x in boxes), boxes[-1].where] -= 1
            several += boxes[0].where != boxes[-1].where
        assert all(name.startswith("reserved for") for name, _ in +rows) and not -rows
    assert several > 0


def test_a_view_is_told_with_its_own_line(function):
    boxes = [x for x in memory_of(function).boxes if x.views]
    lines = {node.where for node in function.compiled.layout.views}
    apart = [(view.rpartition(" at ")[2], box.where) for box in boxes for view in box.views]
    assert {line for line, _ in apart} <= lines and any(line != where for line, where in apart)


def test_all_bytes_that_several_values_share_are_reserved(function):
    """Two values are several, too."""
    usage, memory = function.compiled.usage, memory_of(function)
    counts = Counter(usage.operand_of)
    assert 2 in counts.values()
    assert {x.operand for x in memory.reserved} == {operand for operand, n in counts.items() if n > 1}


def test_bytes_in_which_no_value_lies_are_reserved_for_their_operand(function):
    compiled, memory = function.compiled, memory_of(function)
    rows = _alive(compiled, replace(memory, boxes=()))
    assert len(rows) == len({x.name for x in rows}) > 1
    assert all(x.name.startswith("reserved for ") and x.where == "" for x in rows)
    assert sum(x.nbytes for x in rows) == sum(x.nbytes for x in _alive(compiled, memory))
