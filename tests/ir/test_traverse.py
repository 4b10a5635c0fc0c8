"""Walks over a graph: where nodes come from that are made meanwhile."""

import pytest

import cgraph as cg
from cgraph.ir.graph import made_at
from cgraph.ir.traverse import rebuild


def test_an_exception_in_the_middle_of_a_walk_leaves_the_users_line_as_it_was():
    def fails(node, operands):
        raise ValueError(node.name)

    first = cg.exp(cg.Var((3,)))
    kept = []
    for attempt in (lambda: rebuild((first,), fails), lambda: inside_a_file()):
        with pytest.raises(ValueError) as error:
            attempt()
        kept.append(error)  # as tracebacks keep what was going on
    here = cg.sin(first)
    assert here.origin[0] == __file__
    assert here.origin[1] != first.origin[1]


def inside_a_file():
    with made_at("net.cfg", 7):
        raise ValueError
