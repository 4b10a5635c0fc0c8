"""IF, WHILE and named graphs of TFLite files: what is refused; what they compute is in tflite_cases.py."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.tflite import load
from cgraph.ops.while_loop import WhileLoop
from tests.support.tflite_models import Network, results_of

BYTES, OTHERS = {"scale": 0.5, "zero": 0}, {"scale": 0.25, "zero": 0}


def identity(inner, count=1):
    return [inner.input((2,)) for _ in range(count)]


def unbounded(inner):
    inner.input((2,))
    return [inner.constant(np.array(True))]


def loop(condition, body, state=None):
    """The bytes of a file with one loop over two floats."""
    net = Network()
    x = net.input((2,)) if state is None else state(net)
    y = net.op("WHILE", [x], condition=net.subgraph(condition), body=net.subgraph(body))
    return net.bytes(y)


def bytes_input(how):
    def build(inner):
        inner.input((2,), "int8", **how)
        return inner.inputs

    return build


REFUSED = {
    "inputs": (unbounded, lambda inner: identity(inner, 2), "graph 2 has 2 inputs, not 1"),
    "conditions": (lambda inner: unbounded(inner) * 2, identity, "the condition has 2 outputs, not 1"),
    "outputs": (unbounded, lambda inner: identity(inner) * 2, "body has 2 outputs, not 1"),
    "another format": (unbounded, bytes_input(BYTES), "is quantised in another way than the value that it gets"),
    "another shape": (
        unbounded,
        lambda inner: [inner.op("CONCATENATION", identity(inner) * 2, axis=0)],
        "return the same structure, shapes and dtypes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_graphs_that_do_not_fit_the_state_are_refused(name):
    condition, body, text = REFUSED[name]
    with pytest.raises(FormatError, match=text):
        load(loop(condition, body))


def test_a_graph_that_contains_itself_is_refused():
    """Directly, and by way of another one; a graph that stands beside itself is read twice."""

    def itself(inner):
        (x,) = identity(inner)
        return [inner.op("WHILE", [x], condition=1, body=2)]

    with pytest.raises(FormatError, match="graph 2 contains itself"):
        load(loop(unbounded, itself))
    net = Network()
    x, condition, body = net.input((2,)), net.subgraph(unbounded), net.subgraph(identity)
    twice = net.op("WHILE", [net.op("WHILE", [x], condition=condition, body=body)], condition=condition, body=body)
    assert len(load(net.bytes(twice)).outputs) == 1


@pytest.mark.parametrize("outputs", [0, 2])
def test_a_named_graph_has_as_many_outputs_as_its_operator(outputs):
    net = Network()
    graph = net.subgraph(lambda inner: identity(inner) * outputs)
    y = net.op("STABLEHLO_COMPOSITE", [net.input((2,))], name="norm", graph=graph)
    with pytest.raises(FormatError, match=f"the graph has {outputs} outputs, not 1"):
        load(net.bytes(y))


def test_a_named_graph_keeps_the_format_of_its_results():
    net = Network()
    graph = net.subgraph(bytes_input(BYTES))
    y = net.op("STABLEHLO_COMPOSITE", [net.input((2,), "int8", **BYTES)], {"dtype": "int8", **OTHERS}, graph=graph)
    with pytest.raises(FormatError, match="output 0 of the graph is quantised in another way"):
        load(net.bytes(y))


def test_options_of_another_operator_are_refused():
    net = Network()
    y = net.op("STABLEHLO_COMPOSITE", [net.input((2,))], graph=net.subgraph(identity))
    net.operators[-1][11] = ("B", 20)
    with pytest.raises(FormatError, match="it has the options 20, not 21"):
        load(net.bytes(y))


@pytest.mark.parametrize("number", [-1, 3])
def test_a_graph_that_the_file_lacks_is_refused(number):
    net = Network()
    y = net.op("WHILE", [net.input((2,))], condition=net.subgraph(unbounded), body=number)
    with pytest.raises(FormatError, match=f"graph {number} is outside the 2 graphs of the file"):
        load(net.bytes(y))


def test_a_loop_of_constants_is_not_run_while_the_file_is_read():
    model = load(loop(unbounded, identity, lambda net: net.constant(np.ones(2, "f4"))))
    (y,) = model.outputs
    assert isinstance(y.operands[0].op, WhileLoop)


def test_branches_of_one_result_in_two_formats_are_refused():
    net = Network()
    x, p = net.input((2,), "int8", **BYTES), net.input((), "bool")
    then, orelse = net.subgraph(bytes_input(BYTES)), net.subgraph(bytes_input(BYTES))
    y = net.op("IF", [p, x], {"dtype": "int8", **OTHERS}, then=then, orelse=orelse)
    with pytest.raises(FormatError, match="output 0 of then is quantised in another way"):
        load(net.bytes(y))


@pytest.mark.parametrize("taken", [False, True])
def test_a_branch_gets_each_of_its_operands_in_order(taken):
    """Of floats and of two formats of bytes; each branch returns them in another order."""
    forms = [{"dtype": "int8", **BYTES}, {"dtype": "float32"}, {"dtype": "uint8", "scale": 0.25, "zero": 3}]

    def branch(order):
        def build(inner):
            numbers = [inner.input((2,), **form) for form in forms]
            return [numbers[i] for i in order]

        return build

    net = Network()
    operands = [net.input((2,), **form) for form in forms]
    p = net.op("LESS", [net.input(()), net.constant(np.float32(0))], "bool")
    results = [forms[0], forms[1]]
    then, orelse = net.subgraph(branch((0, 1))), net.subgraph(lambda inner: [
        branch((0, 1))(inner)[0], inner.op("NEG", [inner.inputs[1]]),
    ])  # fmt: skip
    made = net.op("IF", [p, *operands], *results, then=then, orelse=orelse)
    values = np.int8([5, -7]), np.float32([1.5, -2]), np.uint8([9, 200]), np.float32(-1 if taken else 1)
    whole, floats = results_of(net, made, *values)
    np.testing.assert_array_equal(whole, values[0], strict=True)
    np.testing.assert_array_equal(floats, values[1] if taken else -values[1], strict=True)


def test_an_operand_of_a_branch_that_is_left_out_is_missing():
    net = Network()
    p = net.op("LESS", [net.input(()), net.constant(np.float32(0))], "bool")
    graph = net.subgraph(lambda inner: identity(inner))
    y = net.op("IF", [p, -1], then=graph, orelse=graph)
    with pytest.raises(FormatError, match="in IF 1: .*operand 1 is missing"):
        load(net.bytes(y))
