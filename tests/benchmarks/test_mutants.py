"""The faults that a mutation run makes: each is a module that still reads, and differs in one place."""

import ast

import pytest

from benchmarks import mutants
from benchmarks.mutants import TESTS, drawn, faults_of

SOURCE = '''"""Words that stay."""


def largest(xs, limit: int | None = 3):
    """Text that stays."""
    best = 0
    for i, x in enumerate(xs):
        if x > best and not x < 0:  # μ: columns are bytes
            best = x
            note(f"{x + 1}")
    if best > limit:
        raise ValueError(best)
    return best + 1 if best else None
'''


def changed(fault):
    return SOURCE[: fault.start] + fault.text + SOURCE[fault.end :]


def test_every_fault_is_another_program():
    texts = [changed(fault) for fault in faults_of(SOURCE)]
    trees = [ast.dump(ast.parse(text)) for text in texts]
    assert ast.dump(ast.parse(SOURCE)) not in trees and len(set(trees)) == len(trees)
    assert all("Words that stay" in text and "Text that stay" in text for text in texts)


@pytest.mark.parametrize(
    "line",
    [
        "        if (x >= best) and not x < 0:  # μ: columns are bytes",
        "        if (x > best or not x < 0):  # μ: columns are bytes",
        "        if (not x < 0):  # μ: columns are bytes",
        "        if x > best and (x < 0):  # μ: columns are bytes",
        "        if (False):  # μ: columns are bytes",
        "            pass",
        "        pass",
        "    return None",
        "    return (best - 1) if best else None",
        "    best = (1)",
        "def largest(xs, limit: int | None = (4)):",
    ],
)
def test_the_faults_that_people_make_are_among_them(line):
    assert any(line in changed(fault).splitlines() for fault in faults_of(SOURCE))


def test_messages_are_left_alone():
    assert not any("x - 1" in changed(fault) for fault in faults_of(SOURCE))


def test_as_many_faults_are_drawn_as_asked_for_the_same_for_a_seed_and_each_in_a_place_of_its_own():
    faults = faults_of(SOURCE)
    some = drawn(faults, 5, 1)
    assert some == drawn(faults, 5, 1) != drawn(faults, 5, 2)
    assert len({(x.start, x.end) for x in some}) == 5 and set(some) <= set(faults)
    places = {(x.start, x.end) for x in faults}
    assert len(drawn(faults, 1000, 0)) == len(places)


def test_the_tests_of_a_module_are_those_of_its_longest_beginning():
    assert mutants.tests_of("kernels/calls/conv_shape") == TESTS["kernels/calls/conv"]
    assert mutants.tests_of("kernels/mapped") == TESTS["kernels"]
    assert mutants.tests_of("record") == TESTS[""]


def test_annotations_are_left_alone():
    assert not any("int & None" in changed(fault) for fault in faults_of(SOURCE))
