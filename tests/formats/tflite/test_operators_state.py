"""Handles of variables: each name has a number, and operators find its variable by it."""

import numpy as np

from cgraph.formats.tflite import load
from tests.support.tflite_cases import floats, initialised
from tests.support.tflite_models import Network


def test_handles_of_one_name_are_of_one_variable():
    net = Network()
    net.act("CALL_ONCE", [], graph=net.subgraph(lambda inner: initialised(inner, np.full((2,), 3.0), "b")))
    first, second, third = (net.handle(name) for name in ("a", "b", "b"))
    x = net.input((2,))
    net.act("ASSIGN_VARIABLE", [first, x])
    values = [net.op("READ_VARIABLE", [handle], floats(2)) for handle in (first, second, third)]
    found = load(net.bytes(*values)).compile()(np.float32([1, 2]))
    assert [y.tolist() for y in found] == [[1, 2], [3, 3], [3, 3]]


def test_a_second_graph_of_initial_values_adds_to_the_first():
    net = Network()
    for name, value in (("a", 1.0), ("b", 2.0), ("a", 5.0)):
        net.act(
            "CALL_ONCE", [], graph=net.subgraph(lambda inner, n=name, v=value: initialised(inner, np.full((2,), v), n))
        )
    total = net.op("ADD", [net.op("READ_VARIABLE", [net.handle(name)], floats(2)) for name in "ab"])
    model = load(net.bytes(net.op("ADD", [total, net.input((2,))])))
    assert model.compile()(np.zeros(2, "f4"))[0].tolist() == [7, 7]
    assert model.updates == {}
