"""Building of graphs: scopes of names, functions and their attributes, unused results, messages, depth, name checks."""

from collections import ChainMap

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper

from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.constants import Evaluator
from cgraph.formats.onnx import load
from cgraph.formats.onnx.dynamic.bounds import LengthBounds
from cgraph.formats.onnx.graph import (
    DEEPEST,
    NAME,
    OnnxGraphBuilder,
    check_text,
    excerpt,
    graphs_of,
    lookup,
    message,
    names_inside,
    operator_key,
    opsets_of,
    order_of,
    unsupported,
)
from cgraph.formats.onnx.tensors import array_of
from cgraph.formats.onnx.vocabulary import Vocabulary
from tests.support.onnx_models import FLOAT, model_of
from tests.support.tolerance import assert_near

X = ("x", FLOAT, (2,))
BOOL = TensorProto.BOOL
make = helper.make_node


def run(raw, *values):
    return [np.asarray(x) for x in load(raw).compile(engine="reference")(*values)]


def branch(nodes, *outputs, name="b"):
    infos = [helper.make_tensor_value_info(x, FLOAT, None) for x in outputs]
    return helper.make_graph(nodes, name, [], infos)


def test_an_inner_name_hides_the_outer_and_ends_with_its_graph():
    inner = branch([make("Neg", ["x"], ["t"])], "t")
    other = branch([make("Identity", ["t"], ["u"])], "u")
    nodes = [
        make("Add", ["x", "x"], ["t"]),
        make("If", ["c"], ["r"], then_branch=inner, else_branch=other),
        make("Add", ["r", "t"], ["y"]),
    ]
    raw = model_of(nodes, [X, ("c", BOOL, ())])
    x = np.array([1, 5], "f4")
    for condition, want in ((True, x), (False, 4 * x)):
        np.testing.assert_array_equal(run(raw, x, np.array(condition))[0], want)


@pytest.mark.parametrize("seed", range(6))
def test_nodes_in_any_order_give_the_same_graph(seed):
    """Also beside an If whose branches read results that are listed later."""
    rng = np.random.default_rng(seed)
    inner, other = branch([make("Add", ["t", "u"], ["p"])], "p"), branch([make("Sub", ["v", "t"], ["q"])], "q")
    nodes = [
        make("Exp", ["x"], ["t"]),
        make("Add", ["x", "t"], ["u"]),
        make("Mul", ["t", "u"], ["v"]),
        make("If", ["c"], ["r"], then_branch=inner, else_branch=other),
        make("Sub", ["r", "x"], ["y"]),
    ]
    x = np.array([1, 5], "f4")
    shuffled = [nodes[i] for i in rng.permutation(len(nodes))]
    for condition in (True, False):
        want, got = (run(model_of(some, [X, ("c", BOOL, ())]), x, np.array(condition)) for some in (nodes, shuffled))
        np.testing.assert_array_equal(got, want)


def test_nodes_of_functions_may_have_any_order():
    body = function([make("Neg", ["d"], ["r"]), make("Sub", ["a", "b"], ["d"])], ["a", "b"], ["r"])
    raw = model_of([make("f", ["x", "w"], ["y"], domain="d")], [X], {"w": np.array([3, 3], "f4")}, functions=[body])
    np.testing.assert_array_equal(run(raw, np.array([1, 5], "f4"))[0], [2, -2])


def test_nodes_that_wait_for_each_other_are_refused():
    raw = model_of([make("Add", ["x", "b"], ["a"]), make("Neg", ["a"], ["b"]), make("Neg", ["b"], ["y"])], [X])
    with pytest.raises(FormatError, match="in Add '' -> a: operand 'b' has no value: .* nodes wait for each other"):
        load(raw)


def test_the_order_of_nodes_is_the_files_where_it_is_valid():
    nodes = [make("Exp", ["x"], ["a"]), make("Neg", ["x"], ["b"]), make("Add", ["b", "a"], ["y"])]
    nothing = [set()] * 3
    assert list(order_of(nodes, nothing)) == [0, 1, 2]
    assert list(order_of(nodes[::-1], nothing))[-1] == 0
    again = [make("Exp", ["x"], ["a"]), make("Neg", ["a"], ["a"]), make("Exp", [""], ["", "c"])]
    assert list(order_of(again, nothing)) == [0, 1, 2]
    assert list(order_of(nodes[:2], [{"b"}, set()])) == [1, 0]


def function(nodes, inputs, outputs, attributes=(), name="f", more=()):
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("d", 1)]
    return helper.make_function("d", name, inputs, outputs, nodes, opsets, attributes, list(more))


def test_a_function_gets_its_operands_in_order_and_attributes_or_their_defaults():
    leaky = make("LeakyRelu", ["d"], ["r"])
    leaky.attribute.append(AttributeProto(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT))
    default = [helper.make_attribute("slope", 0.5)]
    body = function([make("Sub", ["a", "b"], ["d"]), leaky], ["a", "b"], ["r", "d"], more=default)
    x, w = np.array([1, 5], "f4"), np.array([3, 3], "f4")
    for attributes, slope in (({}, 0.5), ({"slope": 0.25}, 0.25)):
        calls = [make("f", ["x", "w"], ["y", "z"], domain="d", **attributes)]
        got = run(model_of(calls, [X], {"w": w}, ["y", "z"], functions=[body]), x)
        np.testing.assert_array_equal(got[0], [-2 * slope, 2])
        np.testing.assert_array_equal(got[1], x - w)


def test_a_function_sees_no_name_of_its_caller():
    body = function([make("Add", ["a", "x"], ["r"])], ["a"], ["r"])
    raw = model_of([make("f", ["x"], ["y"], domain="d")], [X], functions=[body])
    with pytest.raises(
        FormatError, match="in Add '' -> r: operand 'x' has no value: no input, constant or node has this name"
    ):
        load(raw)


def test_a_function_that_calls_itself_is_refused():
    body = function([make("f", ["a"], ["r"], domain="d")], ["a"], ["r"])
    raw = model_of([make("f", ["x"], ["y"], domain="d")], [X], functions=[body])
    with pytest.raises(FormatError, match=f"nested more than {DEEPEST} deep"):
        load(raw)


@pytest.mark.parametrize("times", [2, 3])
def test_a_function_has_the_nodes_of_each_call_in_it(times):
    """It is refused before one of them is built."""
    bodies = [function([make("Neg", ["a"], ["r"])], ["a"], ["r"], name="f0")]
    for i in range(30):
        calls = [make(f"f{i}", [f"r{n}" if n else "a"], [f"r{n + 1}"], domain="d") for n in range(times)]
        bodies.append(function(calls, ["a"], [f"r{times}"], name=f"f{i + 1}"))
    count = sum(times**i for i in range(1, 31)) + times**30  # the calls and, innermost, the nodes
    raw = model_of([make("f30", ["x"], ["y"], domain="d")], [X], functions=bodies)
    with pytest.raises(FormatError, match=f"the function 'f30' would take {count:,} nodes"):
        load(raw)
    small = model_of([make("f2", ["x"], ["y"], domain="d")], [X], functions=bodies[:3])
    np.testing.assert_array_equal(run(small, np.ones(2, "f4"))[0], [(-1) ** times] * 2)


def test_results_that_nobody_reads_may_be_absent():
    rows = [make("Dropout", ["x"], ["y", "unread"])]
    np.testing.assert_array_equal(run(model_of(rows, [X]), np.ones(2, "f4"))[0], [1, 1])
    nodes = [make("Neg", ["x"], ["y", "z"])]
    with pytest.raises(FormatError, match="1 results are supported, 2 are read"):
        load(model_of(nodes, [X], outputs=["y", "z"]))
    assert len(load(model_of(nodes, [X])).outputs) == 1


def test_two_initialisers_of_a_name_are_refused_and_unknown_operators_named():
    model = onnx.load_from_string(model_of([make("Neg", ["w"], ["y"])], [], {"w": np.ones(2, "f4")}))
    model.graph.initializer.append(model.graph.initializer[0])
    with pytest.raises(FormatError, match="two initialisers have the name 'w': rename one"):
        load(model.SerializeToString())
    inner = branch([make("Odd", ["x"], ["t"]), make("Neg", ["x"], ["n"])], "t")
    nodes = [make("Odd", ["x"], ["a"]), make("Even", ["x"], ["b"], domain="e"), make("g", ["x"], ["c"], domain="d")]
    nodes.append(make("If", ["c"], ["r"], then_branch=inner, else_branch=inner))
    graph = branch(nodes, "r")
    body = function([make("Even", ["a"], ["r"], domain="e")], ["a"], ["r"], name="g")
    assert unsupported(graph, {("d", "g"): body}) == {"Odd": 3, "e.Even": 2}


def test_names_inside_are_those_of_every_depth_and_of_results():
    deep = branch([make("Add", ["p", "q"], ["s"])], "s", name="deep")
    outer = branch([make("If", ["c"], ["t"], then_branch=deep, else_branch=branch([], "free"))], "t")
    node = make("If", ["condition"], ["y"], then_branch=outer, else_branch=branch([], "given"))
    assert names_inside(node, Allowance(0)) == {"p", "q", "c", "s", "t", "free", "given"}
    several = helper.make_node("Odd", [], [])
    several.attribute.append(helper.make_attribute("parts", [deep, outer]))
    assert [g.name for g in graphs_of(several)] == ["deep", "b"] and not list(graphs_of(make("Neg", ["x"], ["y"])))


def test_text_of_nodes_for_people():
    assert operator_key(make("Conv", [], [], domain="ai.onnx")) == operator_key(make("Conv", [], [])) == "Conv"
    assert operator_key(make("Conv", [], [], domain="e")) == "e.Conv"
    node = make("Conv", [], ["a", "b"], name="conv1")
    assert message(node, FormatError("too long")) == "in Conv 'conv1' -> a, b: too long"
    assert message(node, KeyError()) == "in Conv 'conv1' -> a, b: KeyError"
    assert message(node, FormatError("in Neg 'n' -> y: no")) == "in Neg 'n' -> y: no"
    assert message(node, ValueError("in all")) == "in Conv 'conv1' -> a, b: in all"
    assert excerpt(list("abc"), 3) == "a, b, c" and excerpt(list("abcd"), 3) == "a, b, c, … (4 in all)"
    assert excerpt(["x" * 100]) == "x" * 60
    versions = [helper.make_opsetid("ai.onnx", 13), helper.make_opsetid("e", 2)]
    assert opsets_of(versions) == {"": 13, "e": 2}
    assert lookup({"a": 1}, "a", "value") == 1
    with pytest.raises(FormatError, match="^value 'b' has no value: .*wait for each other. Export the model again$"):
        lookup({"a": 1}, "b", "value")
    check_text("é")
    with pytest.raises(FormatError, match=r"the name b'\\xff' is not UTF-8"):
        check_text(b"\xff")


def test_a_body_takes_as_many_values_as_it_has_inputs():
    info = helper.make_tensor_value_info
    for count in (1, 3):
        names = ["i", "c", "s"][:count] if count == 1 else ["i", "c", "s", "t"]
        inner = helper.make_graph(
            [make("Identity", [names[0]], ["on"]), make("Neg", ["x"], ["r"])], "inner",
            [info(n, FLOAT, None) for n in names], [info("on", BOOL, ()), info("r", FLOAT, None)],
        )  # fmt: skip
        constants = {"n": np.int64(2), "go": np.array(True)}
        raw = model_of([make("Loop", ["n", "go", "x"], ["y"], body=inner)], [X], constants)
        with pytest.raises(FormatError, match=f"graph 'inner' takes {len(names)} inputs, but 3 are given"):
            load(raw)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("version", [12, 13])
def test_a_function_has_the_operators_of_its_own_version_or_the_models(own, version):
    """From version 13 on, softmax is of one axis; before, of all axes from one on."""
    other = 25 - version
    body = function([make("Softmax", ["a"], ["r"], axis=1)], ["a"], ["r"])
    del body.opset_import[:]
    if own:
        body.opset_import.append(helper.make_opsetid("", other))
    raw = model_of([make("f", ["x"], ["y"], domain="d")], [("x", FLOAT, (2, 3, 2))], opset=version, functions=[body])
    x = np.arange(12, dtype="f4").reshape(2, 3, 2) / 8
    powers = np.exp(x)
    whole = (other if own else version) < 13
    want = powers / powers.sum((1, 2) if whole else 1, keepdims=True)
    assert_near(run(raw, x)[0], want, "float32 formulas")


def test_each_attribute_of_a_function_has_its_default():
    nodes = [make("HardSigmoid", ["a"], ["r"])]
    for name, ref in (("alpha", "slope"), ("beta", "start")):
        nodes[0].attribute.append(AttributeProto(name=name, ref_attr_name=ref, type=AttributeProto.FLOAT))
    defaults = [helper.make_attribute("slope", 0.5), helper.make_attribute("start", 0.25)]
    body = function(nodes, ["a"], ["r"], more=defaults)
    x = np.array([-1, 0.5], "f4")
    for given, (slope, start) in (({}, (0.5, 0.25)), ({"start": 0.5}, (0.5, 0.5)), ({"slope": 0.125}, (0.125, 0.25))):
        got = run(model_of([make("f", ["x"], ["y"], domain="d", **given)], [X], functions=[body]), x)[0]
        np.testing.assert_array_equal(got, np.clip(slope * x + start, 0, 1))


@pytest.mark.parametrize("count", [DEEPEST - 1, DEEPEST, DEEPEST + 6])
def test_functions_are_nested_up_to_a_depth(count):
    """The model is the first level, each function the next."""
    bodies = [function([make("Neg", ["a"], ["r"])], ["a"], ["r"], name="f1")]
    for i in range(2, count + 1):
        bodies.append(function([make(f"f{i - 1}", ["a"], ["r"], domain="d")], ["a"], ["r"], name=f"f{i}"))
    raw = model_of([make(f"f{count}", ["x"], ["y"], domain="d")], [X], functions=bodies)
    if count < DEEPEST:
        np.testing.assert_array_equal(run(raw, np.ones(2, "f4"))[0], [-1, -1])
        return
    with pytest.raises(FormatError, match=f"nested more than {DEEPEST} deep"):
        load(raw)


def test_strings_of_a_tensor_stand_in_it():
    def raw(tensor):
        graph = helper.make_graph(
            [make("Identity", ["t"], ["y"])], "g", [helper.make_tensor_value_info(*X)],
            [helper.make_tensor_value_info("y", TensorProto.STRING, None)], [tensor],
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()

    strings = helper.make_tensor("t", TensorProto.STRING, [2], [b"a", b"b"])
    assert load(raw(strings)).compile()(np.ones(2, "f4"))[0].tolist() == ["a", "b"]
    outside = TensorProto(name="t", data_type=8, dims=[2], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="file")
    large = TensorProto(name="t", data_type=8, dims=[2], raw_data=bytes(5000))
    for tensor in (outside, large):
        with pytest.raises(FormatError, match="tensor 't' of strings is not stored in its string_data: store it there"):
            load(raw(tensor))


def test_parts_of_strings_are_strings():
    graph = helper.make_graph(
        [make("Split", ["s"], ["a", "b"], num_outputs=2), make("Concat", ["b", "a"], ["y"], axis=0)], "g",
        [helper.make_tensor_value_info("s", TensorProto.STRING, (3,))],
        [helper.make_tensor_value_info(n, TensorProto.STRING, None) for n in ("a", "b", "y")],
    )  # fmt: skip
    raw = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()
    a, b, y = load(raw).compile()(np.array(["r", "s", "t"], object))
    assert (a.tolist(), b.tolist(), y.tolist()) == (["r", "s"], ["t"], ["t", "r", "s"])


def spent(graph, outer=0):
    """The work and the nodes that building a graph charges, below a number of scopes."""
    allowance = Allowance(0)
    evaluator = Evaluator(allowance, {})
    builder = OnnxGraphBuilder(
        {}, {}, array_of, lambda attribute: None, evaluator, LengthBounds({}, allowance), Vocabulary(allowance)
    )
    scope = ChainMap({v.name: None for v in graph.input})
    for _ in range(outer):
        scope = scope.new_child()
    before = allowance.work, allowance.nodes
    builder.build(graph, scope)
    return before[0] - allowance.work, before[1] - allowance.nodes


def test_a_graph_that_is_refused_does_not_count_as_one_that_later_ones_are_nested_in():
    allowance = Allowance(0)
    evaluator = Evaluator(allowance, {})
    builder = OnnxGraphBuilder(
        {}, {}, array_of, lambda attribute: None, evaluator, LengthBounds({}, allowance), Vocabulary(allowance)
    )
    for _ in range(DEEPEST + 1):
        with pytest.raises(FormatError, match="the operator Unheard is not supported"):
            builder.run([make("Unheard", [], ["y"])], ChainMap(), {"y"})
        assert builder.depth == 0


@pytest.mark.parametrize("outer", [0, 3])
def test_names_are_charged_by_the_scopes_that_may_have_them_and_stored_tensors_as_nodes(outer):
    infos = [helper.make_tensor_value_info(f"v{i}", FLOAT, (1,)) for i in range(3)]
    tensors = [helper.make_tensor(f"t{i}", FLOAT, [0], []) for i in range(2)]
    plain = spent(helper.make_graph([], "g", [], []), outer)
    each = NAME * (2 + 2 + outer)  # of a name; the graph and the one of its inputs are scopes
    assert plain[1] == 0
    for inputs, outputs, stored in ((3, 0, 0), (0, 2, 0), (0, 0, 2), (2, 1, 1)):
        graph = helper.make_graph([], "g", infos[:inputs], infos[:outputs], tensors[:stored])
        work, nodes = spent(graph, outer)
        assert nodes == stored and work - plain[0] == each * (inputs + outputs + stored)
    sparse = onnx.SparseTensorProto(dims=[0], values=helper.make_tensor("s", FLOAT, [0], []))
    sparse.indices.CopyFrom(helper.make_tensor("", TensorProto.INT64, [0], []))
    work, nodes = spent(helper.make_graph([], "g", [], [], tensors, sparse_initializer=[sparse]), outer)
    assert nodes == 3 and work - plain[0] == 3 * each
