"""State of TFLite files: what a run leaves for the next one is what TFLite leaves."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.tflite import load
from cgraph.formats.tflite.variables import Variables
from cgraph.ir.spec import Spec
from cgraph.ops.leaf import Const
from tests.support.tflite_cases import PARTS, both_ways, floats, gates, initialised, lstm, net_norms, simple_cell
from tests.support.tflite_models import Network, successive
from tests.support.tolerance import assert_near

RUNS, PAIR = 10, floats(2, 3)
FIRST = np.arange(6.0).reshape(2, 3)
BYTES = {"shape": (2, 3), "dtype": "int8", "scale": 0.05, "zero": 7}


def start(net, name="sum", value=FIRST):
    net.act("CALL_ONCE", [], graph=net.subgraph(lambda inner: initialised(inner, value, name)))
    return net.handle(name)


def read(net, handle, form=PAIR):
    return net.op("READ_VARIABLE", [handle], form)


def assign(net, handle, value):
    net.act("ASSIGN_VARIABLE", [handle, value])


def accumulated(net):
    """The state is read before it is assigned, and after."""
    handle, x = start(net), net.input((2, 3))
    before = read(net, handle)
    assign(net, handle, net.op("ADD", [before, x]))
    return before, read(net, handle)


def assigned_twice(net):
    handle, x = start(net), net.input((2, 3))
    assign(net, handle, net.op("ADD", [read(net, handle), x]))
    assign(net, handle, net.op("MUL", [read(net, handle), x]))
    return (read(net, handle),)


def never_assigned(net):
    return (net.op("ADD", [read(net, start(net)), net.input((2, 3))]),)


def assigned_before_it_is_read(net):
    handle, x = start(net), net.input((2, 3))
    assign(net, handle, x)
    return (net.op("ADD", [read(net, handle), x]),)


def two_of_one_graph(net):
    """Two handles of one variable, and another variable."""
    first, x, other = start(net), net.input((2, 3)), start(net, "product", np.ones((2, 3)))
    assign(net, first, net.op("ADD", [read(net, net.handle("sum")), x]))
    assign(net, other, net.op("MUL", [read(net, other), read(net, first)]))
    return read(net, first), read(net, other)


def images(net):
    """A state of four axes, which a convolution reads."""
    x = net.input((1, 2, 2, 3))
    handle = start(net, value=np.zeros((1, 2, 2, 3)))
    ones, none = net.constant(np.full((3, 1, 1, 3), 0.3, "f4")), net.constant(np.zeros(3, "f4"))
    y = net.op(
        "CONV_2D", [net.op("ADD", [read(net, handle, floats(1, 2, 2, 3)), x]), ones, none], stride_w=1, stride_h=1
    )
    assign(net, handle, y)
    return (y,)


def of_bytes(net):
    """The window of a stream of int8."""

    def initial(inner):
        zeros = inner.constant(np.full((2, 3), 7, "int8"), scale=0.05, zero=7)
        inner.act("ASSIGN_VARIABLE", [inner.handle("window"), zeros])
        return []

    net.act("CALL_ONCE", [], graph=net.subgraph(initial))
    handle, x = net.handle("window"), net.input((1, 3), "int8", scale=0.05, zero=7)
    joined = net.op("CONCATENATION", [read(net, handle, BYTES), x], BYTES | {"shape": ()}, axis=0)
    limits = [net.constant(np.array(n, "int32")) for n in ((1, 0), (3, 3), (1, 1))]
    assign(net, handle, net.op("STRIDED_SLICE", [joined, *limits], BYTES))
    return (joined,)


def of_recurrent_operators(net):
    """Variable tensors, which their operators write."""
    rng = np.random.default_rng(5)
    y = lstm(net, rng, "UNIDIRECTIONAL_SEQUENCE_LSTM", (2, 3, 3), 4, {"activation": 4})
    weights = [net.constant(rng.standard_normal(shape).astype("f4")) for shape in ((4, 6), (4, 5), (2,))]
    rows = net.op("RESHAPE", [y, net.constant(np.array([4, 6], "int32"))])
    return y, net.op("SVDF", [rows, *weights, net.variable((4, 20))], rank=2, activation=0)


def of_simple_cells(net):
    """RNNs of one step, and of a sequence in both directions."""
    rng = np.random.default_rng(6)
    y = net.op("RNN", [net.input((2, 3)), *simple_cell(net, rng)], activation=4)
    cells = [*simple_cell(net, rng), *simple_cell(net, rng), *[-1] * 3]
    both = net.op("BIDIRECTIONAL_SEQUENCE_RNN", [net.input((2, 5, 3)), *cells], *["float32"] * 2, activation=4)
    return y, *both


def of_gates_with_more_parts(net):
    """A state of other sizes than its cell, with what each part reads of them; and in both directions."""
    rng, parts = np.random.default_rng(7), PARTS["all_parts"]
    state = [net.variable((2, parts["projection"])), net.variable((2, 4))]
    operands = [net.input((2, 3, 3)), *gates(net, rng, parts), *state, *net_norms(net, rng, parts)]
    y = net.op("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, activation=4)
    return y, *both_ways(net, rng, (2, 3, 3), PARTS["a_projection"], ["float32"] * 2, time_major=False)


NETWORKS = (
    accumulated, assigned_twice, never_assigned, assigned_before_it_is_read, two_of_one_graph, images, of_bytes,
    of_recurrent_operators, of_simple_cells, of_gates_with_more_parts,
)  # fmt: skip


def model_of(build, seed=0):
    net, rng = Network(), np.random.default_rng(seed)
    model = net.bytes(*build(net))
    shapes = [(net.tensors[i][0], net.tensors[i][1][1]) for i in net.inputs]
    return model, [[drawn(rng, *x) for x in shapes] for _ in range(RUNS)]


def drawn(rng, shape, number):
    """Floats, or bytes by TFLite's number of their dtype."""
    return rng.integers(-128, 128, shape).astype("i1") if number else rng.uniform(-1, 1, shape).astype("f4")


@pytest.mark.parametrize("build", NETWORKS, ids=lambda f: f.__name__)
def test_successive_runs_compute_what_those_of_the_reference_kernels_do(build):
    model, rows = model_of(build)
    function = load(model).compile()
    for row, want in zip(rows, successive(model, rows), strict=True):
        for x, y in zip(function(*row), want, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            assert_near(x, y, "float32 weights of others")


def test_bytes_have_the_bits_of_the_reference_kernels_in_each_run():
    model, rows = model_of(of_bytes)
    function = load(model).compile()
    for row, want in zip(rows, successive(model, rows), strict=True):
        np.testing.assert_array_equal(function(*row)[0], want[0], strict=True)


def test_state_is_saved_and_loaded_by_the_names_of_the_file(tmp_path):
    model, rows = model_of(two_of_one_graph)
    function = load(model).compile()
    assert sorted(function.state) == ["product", "sum"]
    function.save_state(tmp_path / "start.safetensors")
    first = [function(*row)[1] for row in rows]
    function.load_state(tmp_path / "start.safetensors")
    np.testing.assert_array_equal([function(*row)[1] for row in rows], first)


def test_a_value_that_no_run_reads_is_not_state():
    model, _ = model_of(assigned_before_it_is_read)
    assert load(model).updates == {} and not load(model).compile().state
    assert len(load(model_of(accumulated)[0]).updates) == 1


@pytest.mark.parametrize(("form", "first"), [(PAIR, 0), (BYTES, 7)])
def test_a_variable_without_an_initial_value_starts_at_zero(form, first):
    """That of a quantised one is its zero point."""
    net = Network()
    handle, x = net.handle("late"), net.input((2, 3), **{k: form[k] for k in form if k != "shape"})
    before = read(net, handle, form)
    assign(net, handle, x)
    function = load(net.bytes(before)).compile()
    value = np.full((2, 3), 5, form["dtype"])
    np.testing.assert_array_equal(function(value)[0], np.full((2, 3), first, form["dtype"]), strict=True)
    np.testing.assert_array_equal(function(value)[0], value, strict=True)


def test_containers_hold_variables_apart():
    net = Network()
    one, two = (net.op("VAR_HANDLE", [], "resource", name="x", container=c) for c in ("a", ""))
    total = net.op("ADD", [read(net, one), read(net, two)])
    assign(net, one, net.op("ADD", [total, net.input((2, 3))]))
    assert sorted(load(net.bytes(total)).compile().state) == ["a/x", "x"]


def inside_a_branch(net):
    handle, p = start(net), net.op("LESS", [net.input(()), net.constant(np.float32(0))], "bool")
    build = net.subgraph(lambda inner: [inner.op("READ_VARIABLE", [inner.input((), "resource")], PAIR)])
    return net.op("IF", [p, handle], PAIR, then=build, orelse=build)


def created_inside_a_branch(net):
    p = net.op("LESS", [net.input(()), net.constant(np.float32(0))], "bool")
    build = net.subgraph(lambda inner: [read(inner, inner.handle("x"))])
    return net.op("IF", [p], PAIR, then=build, orelse=build)


def variable_tensor_inside_a_branch(net):
    p = net.op("LESS", [net.input(()), net.constant(np.float32(0))], "bool")
    build = net.subgraph(lambda inner: [inner.op("NEG", [inner.variable((2, 3))])])
    return net.op("IF", [p], PAIR, then=build, orelse=build)


def initialised_late(net):
    y = read(net, net.handle("sum"))
    start(net)
    return y


def initialised_after_it_was_assigned(net):
    handle, x = net.handle("sum"), net.input((2, 3))
    assign(net, handle, x)
    start(net)
    return net.op("ADD", [x, read(net, handle)])


def initialised_by_an_input(net):
    handle, x = net.handle("sum"), net.input((2, 3))
    net.act("CALL_ONCE", [], graph=net.subgraph(lambda inner: (inner.input((2, 3)), [])[1]))
    return net.op("ADD", [x, read(net, handle)])


def of_another_shape(net):
    handle = start(net)
    y = read(net, handle)
    assign(net, handle, net.input((3, 2)))
    return y


def without_its_handle(net):
    net.input((2, 3))
    return read(net, net.constant(np.int32(4)))


def huge(net):
    return net.op("SUM", [read(net, net.handle("x"), floats(1 << 20, 1 << 8)), net.constant(np.array([0], "int32"))])


def written_operand(net):
    x, weights = net.input((2, 5)), [net.constant(np.ones(shape, "f4")) for shape in ((4, 5), (4, 3), (4,))]
    return net.op("SVDF", [x, *weights, net.input((2, 12))], rank=1)


REFUSED = {
    inside_a_branch: "variables inside IF and WHILE are not supported. Read and assign them outside",
    created_inside_a_branch: "variables inside IF and WHILE are not supported",
    variable_tensor_inside_a_branch: "is a variable inside IF or WHILE",
    initialised_late: "variable 'sum' gets its initial value after it was used. Call CALL_ONCE first",
    initialised_after_it_was_assigned: "variable 'sum' gets its initial value after it was used. Call CALL_ONCE first",
    initialised_by_an_input: "graph 1 has 1 inputs, not 0",
    of_another_shape: r"variable 'sum' is float32\[2,3\] and becomes float32\[3,2\]",
    without_its_handle: "variable 4 is outside the 0 variables of the file",
    huge: "variable 'x' would take .* bytes while reading",
    written_operand: "which the operator writes, is not a variable",
}


@pytest.mark.parametrize("build", REFUSED, ids=lambda f: f.__name__)
def test_state_that_is_not_supported_is_refused(build):
    net = Network()
    with pytest.raises(FormatError, match=REFUSED[build]):
        load(net.bytes(build(net)))


def test_a_graph_of_initial_values_is_run_once():
    net = Network()
    graph = net.subgraph(lambda inner: initialised(inner, np.ones((2, 3)), "sum"))
    net.act("CALL_ONCE", [], graph=graph)
    handle, x = net.handle("sum"), net.input((2, 3))
    assign(net, handle, net.op("ADD", [read(net, handle), x]))
    net.act("CALL_ONCE", [], graph=graph)
    model = net.bytes(read(net, handle))
    rows = [[np.ones((2, 3), "f4")]] * 3
    function = load(model).compile()
    for row, want in zip(rows, successive(model, rows)):
        np.testing.assert_array_equal(function(*row)[0], want[0])


def test_reads_of_initial_values_give_them():
    variables = Variables(Allowance(0))
    number = variables.number("x", "x")
    with variables.initialising():
        assert variables.read(number, Spec((2,), np.dtype("f4"))).op.array.tolist() == [0, 0]
        variables.assign(number, Const(np.array([1, 2], "f4")))
        assert variables.read(number, Spec((2,), np.dtype("f4"))).op.array.tolist() == [1, 2]
    assert not variables.is_initial and variables.updates() == {}
    start = variables.read(number, Spec((2,), np.dtype("f4")))
    variables.assign(number, start + 1)
    assert list(variables.updates()) == [start] and variables.number("x", "x") == number


@pytest.mark.parametrize("assigned", [(), (0,), (1,), (0, 1), (1, 0, 1)])
def test_only_variables_that_are_read_and_change_are_state(assigned):
    variables, spec = Variables(Allowance(0)), Spec((2,), np.dtype("f4"))
    numbers = [variables.number(x, x) for x in "ab"]
    starts = [variables.read(i, spec) for i in numbers]
    last = {}
    for k, i in enumerate(assigned):
        last[starts[i]] = starts[i] + k
        variables.assign(numbers[i], last[starts[i]])
    assert variables.updates() == last
    unread = variables.number("c", "c")
    variables.assign(unread, starts[0] * 2)
    assert variables.updates() == last
    variables.assign(numbers[0], starts[0])
    assert starts[0] not in variables.updates()
    assert variables.read(numbers[1], spec) is last.get(starts[1], starts[1])
