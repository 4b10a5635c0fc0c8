"""Descriptions of networks by Keras 2 and 3: functional, sequential, and within one another."""

import pytest

from cgraph.errors import FormatError
from cgraph.formats import keras_config
from cgraph.formats.keras_config import network_of, snake_case


def tensor(name, output=0):
    return {"class_name": "__keras_tensor__", "config": {"keras_history": [name, 0, output]}}


def layer(kind, name, nodes, options=None):
    return {"class_name": kind, "name": name, "config": options or {}, "inbound_nodes": nodes}


def functional(rows, inputs, outputs, name="net"):
    config = {"layers": rows, "input_layers": inputs, "output_layers": outputs}
    return {"class_name": "Functional", "name": name, "config": config}


def sequential(*rows, name="net", **options):
    return {"class_name": "Sequential", "name": name, "config": {"name": name, "layers": list(rows), **options}}


RELU = {"class_name": "ReLU", "config": {"name": "relu"}}
INPUT = {"class_name": "InputLayer", "config": {"name": "in", "batch_shape": [None, 4]}}


def links(network):
    return {x.name: x.operands for x in network.layers}


@pytest.mark.parametrize(
    "nodes",
    [
        [[["a", 0, 0, {}], ["b", 0, 0, {}]]],
        [{"args": [tensor("a"), tensor("b")], "kwargs": {}}],
        [{"args": [[tensor("a"), tensor("b")]], "kwargs": {"training": False, "mask": [None, None]}}],
        [{"args": [tensor("a"), [tensor("b")]]}],
    ],
)
def test_both_versions_name_operands_in_order(nodes):
    rows = [layer("InputLayer", "a", []), layer("InputLayer", "b", []), layer("Subtract", "c", nodes)]
    network = network_of(functional(rows, [["a", 0, 0], ["b", 0, 0]], ["c", 0, 0]))
    assert links(network) == {"a": (), "b": (), "c": ("a", "b")}
    assert (network.inputs, network.outputs) == (("a", "b"), ("c",))


def test_an_operand_may_be_a_number():
    rows = [layer("InputLayer", "a", []), layer("Add", "b", [{"args": [3, tensor("a")]}])]
    assert links(network_of(functional(rows, ["a", 0, 0], ["b", 0, 0])))["b"] == (3.0, "a")


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ([INPUT, RELU], {}),
        ([RELU], {"build_input_shape": [None, 4]}),
        ([{"class_name": "ReLU", "config": {"name": "relu", "batch_input_shape": [None, 4]}}], {}),
    ],
)
def test_a_sequential_network_is_a_chain_after_its_input(rows, options):
    network = network_of(sequential(*rows, **options))
    first, last = network.layers
    assert first.kind == "InputLayer" and [None, 4] in first.options.values()
    assert last.operands == network.inputs == (first.name,) and network.outputs == ("relu",)


@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize("where", ["batch_shape", "batch_input_shape", "build_input_shape", "in between"])
def test_the_first_declaration_of_a_shape_on_the_way_in_holds(depth, where):
    """The first layer of the first network in another one declares it, or a network around it."""
    shape = [None, 4 + depth]
    key = "batch_shape" if where in ("in between", "build_input_shape") else where
    inner = {"class_name": "ReLU", "config": {"name": "relu", key: [None, 9] if key != where else shape}}
    for i in range(depth):
        declared = {"build_input_shape": shape} if where == "build_input_shape" and i == 0 else {}
        declared = {"build_input_shape": shape} if where == "in between" and i == depth - 1 else declared
        inner = sequential(inner, name=f"n{i}", **declared)
    first, *_ = network_of(sequential(inner)).layers
    is_declared = depth > 0 or where in inner["config"]
    assert first.kind == "InputLayer" and first.options["batch_input_shape"] == (shape if is_declared else [None, 9])


def test_arrays_are_in_a_group_by_class_and_number():
    names = [{"class_name": kind, "config": {"name": name}} for kind, name in zip(["ReLU", "Dense", "ReLU"], "xyz")]
    inner = sequential(INPUT, *names, name="inner")
    stores = {x.name: x.store for x in network_of(sequential(INPUT, RELU, inner)).layers if x.kind in ("ReLU", "Dense")}
    start = "layers/sequential/layers"
    assert stores == {
        "relu": "layers/re_lu", "inner/x": f"{start}/re_lu", "inner/y": f"{start}/dense",
        "inner/z": f"{start}/re_lu_1",
    }  # fmt: skip


def test_a_network_in_a_network_is_replaced_by_its_layers():
    """The inner one has its inputs and outputs in another order than its layers."""
    rows = [
        layer("InputLayer", "p", []), layer("InputLayer", "q", []),
        layer("ReLU", "r", [[["p", 0, 0]]]), layer("ELU", "e", [[["q", 0, 0]]]),
    ]  # fmt: skip
    inner = functional(rows, [["q", 0, 0], ["p", 0, 0]], [["r", 0, 0], ["e", 0, 0]], "inner")
    outer = [
        layer("InputLayer", "a", []), layer("InputLayer", "b", []),
        inner | {"inbound_nodes": [[["a", 0, 0], ["b", 0, 0]]]},
        layer("Subtract", "s", [[["inner", 1, 0, {}], ["inner", 1, 1, {}]]]),
    ]  # fmt: skip
    network = network_of(functional(outer, [["a", 0, 0], ["b", 0, 0]], [["s", 0, 0], ["inner", 1, 1]]))
    found = links(network)

    def source(name):
        while found[name]:
            yield name
            name = found[name][0]
        yield name

    assert network.outputs == ("s", "inner:1")
    assert [[x for x in source(name) if x in ("a", "b", "inner/r", "inner/e")] for name in found["s"]] == [
        ["inner/r", "b"], ["inner/e", "a"],
    ]  # fmt: skip


def test_too_many_networks_within_one_another_are_refused(monkeypatch):
    monkeypatch.setattr(keras_config, "MOST_DEPTH", 2)
    deep = sequential(INPUT, RELU, name="d")
    for _ in range(2):
        deep = sequential(INPUT, deep, name="d")
    assert network_of(deep).outputs == ("d",)
    with pytest.raises(FormatError, match="more than 2 networks within one another"):
        network_of(sequential(INPUT, deep))


def test_too_many_layers_around_layers_are_refused():
    deep = {"class_name": "ReLU", "config": {"name": "r"}}
    for _ in range(400):
        deep = {"class_name": "TimeDistributed", "config": {"name": "t", "layer": deep}}
    with pytest.raises(FormatError, match="networks within one another"):
        network_of(sequential(INPUT, deep))


TWO = functional([layer("InputLayer", "p", []), layer("InputLayer", "q", [])], [["p"], ["q"]], [["p"]], "two")
ONE = [layer("InputLayer", "a", [])]
REFUSED = {
    "of another class": ({"class_name": "Mine"}, "'Mine' is not a functional or sequential network"),
    "without layers": (sequential(), "the sequential network has no layers"),
    "without a shape": (sequential(RELU), "Build the model before you save it"),
    "of too few operands": (
        functional([*ONE, TWO | {"inbound_nodes": [[["a", 0, 0]]]}], ["a"], ["two"]), "has 2 inputs and reads 1 values",
    ),
    "with a text as argument": (
        functional([*ONE, layer("ReLU", "r", [{"args": ["a"]}])], ["a"], ["r"]), "is called with 'a'",
    ),
    "with a flag as argument": (
        functional([*ONE, layer("ReLU", "r", [{"args": [True]}])], ["a"], ["r"]), "is called with True",
    ),
    "with a text by keyword": (
        functional([*ONE, layer("ReLU", "r", [{"args": [], "kwargs": {"x": "a"}}])], ["a"], ["r"]),
        "is called with 'a'",
    ),
    "with inputs by name": (functional(ONE, {"a": ["a", 0, 0]}, ["a"]), "are a dict. Save a network with a list"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_other_networks_are_refused(name):
    description, message = REFUSED[name]
    with pytest.raises(FormatError, match=message):
        network_of(description)


def test_names_of_classes_are_written_as_keras_writes_them():
    """Source: `to_snake_case` of Keras 3's naming.py, for these classes as its archives show them."""
    names = {
        "Conv2D": "conv2d", "Conv2DTranspose": "conv2d_transpose", "DepthwiseConv2D": "depthwise_conv2d",
        "PReLU": "p_re_lu",
        "BatchNormalization": "batch_normalization", "Functional": "functional", "LayerScale": "layer_scale",
    }  # fmt: skip
    assert {x: snake_case(x) for x in names} == names


@pytest.mark.parametrize("turned", [False, True])
def test_layers_within_layers_have_groups_of_their_own_and_directions_differ(turned):
    recurrent = {"class_name": "LSTM", "config": {"name": "forward_l", "go_backwards": turned}}
    both = {"class_name": "Bidirectional", "config": {"name": "b", "layer": recurrent}}
    inner = {"class_name": "Dense", "config": {"name": "d"}}
    steps = {"class_name": "TimeDistributed", "config": {"name": "t", "layer": inner}}
    layers = {x.name: x for x in network_of(sequential(INPUT, both, steps)).layers}
    assert [(name, x.store, x.group) for name, x in layers.items() if x.kind in ("LSTM", "Dense")] == [
        ("b/forward_l", "layers/bidirectional/forward_layer", ("b", "forward_l")),
        ("b/backward_l", "layers/bidirectional/backward_layer", ("b", "backward_l")),
        ("t/d", "layers/time_distributed/layer", ("t", "d")),
    ]
    ways = [bool(layers[f"b/{x}_l"].options.get("go_backwards")) for x in ("forward", "backward")]
    assert ways == [turned, not turned]


def test_a_layer_has_the_name_of_its_row_and_else_that_of_its_settings():
    """Also a layer within one, and a network within one."""
    row = {"class_name": "ReLU", "name": "of row", "config": {"name": "of settings"}}
    steps = {"class_name": "TimeDistributed", "name": "t", "config": {"name": "u", "layer": row}}
    inner = {"class_name": "Sequential", "name": "n", "config": {"name": "m", "layers": [INPUT, row]}}
    assert links(network_of(sequential(INPUT, row)))["of row"] == ("in",)
    assert "t/of row" in links(network_of(sequential(INPUT, steps)))
    assert "n/of row" in links(network_of(sequential(INPUT, inner)))
    both = {"class_name": "GRU", "name": "forward_of row", "config": {"name": "of settings"}}
    turned = {"class_name": "Bidirectional", "name": "b", "config": {"layer": both}}
    assert {"b/forward_of row", "b/backward_of row", "b"} <= links(network_of(sequential(INPUT, turned))).keys()
    for x in (row, steps, inner):
        nameless = {key: value for key, value in x.items() if key != "name"}
        found = links(network_of(sequential(INPUT, nameless)))
        assert x["config"]["name"] in found and x["name"] not in found


@pytest.mark.parametrize("ends", [["a", 0, 0], [["a", 0, 0]], [["a"]], ["a"]], ids=str)
def test_ends_of_a_network_are_one_tensor_or_a_list(ends):
    network = network_of(functional([layer("InputLayer", "a", [])], ends, ends))
    assert network.inputs == network.outputs == ("a",)


def test_an_input_layer_that_is_no_input_of_an_inner_network_stays_one():
    rows = [layer("InputLayer", "p", []), layer("InputLayer", "q", []), layer("Add", "s", [[["p", 0, 0], ["q", 0, 0]]])]
    inner = functional(rows, [["q", 0, 0]], [["s", 0, 0]], "inner") | {"inbound_nodes": [[["a", 0, 0]]]}
    found = {x.name: x for x in network_of(functional([*ONE, inner], ["a", 0, 0], ["inner", 1, 0])).layers}
    assert (found["inner/p"].kind, found["inner/p"].operands) == ("InputLayer", ())
    assert (found["inner/q"].kind, found["inner/q"].operands) == (keras_config.IDENTITY, ("a",))
    assert found["inner/s"].operands == ("inner/p", "inner/q") and found["inner"].operands == ("inner/s",)


def test_the_first_layer_of_a_chain_declares_the_shape():
    """Others may declare one too."""
    rows = [
        {"class_name": "ReLU", "config": {"name": name, "batch_input_shape": [None, n]}}
        for name, n in zip("abc", (4, 5, 6))
    ]
    network = network_of(sequential(*rows))
    assert network.layers[0].options["batch_input_shape"] == [None, 4]
    assert links(network) == {"input": (), "a": ("input",), "b": ("a",), "c": ("b",)}


@pytest.mark.parametrize("several", [False, True])
def test_arguments_by_name_have_the_place_of_their_layer(several):
    """In an inner network, and of uses of a network that Keras counts from 1."""
    states = [["p", 0, 0], ["q", 0, 0]]
    named = {"initial_state": states, "mask": ["m", 0, 0]} if several else {"initial_state": states[0], "flag": True}
    rows = [*(layer("InputLayer", x, []) for x in "pqm"), layer("LSTM", "l", [[["p", 0, 0, named]]])]
    inner = functional(rows, [["p"], ["q"], ["m"]], [["l", 0, 0], ["l", 0, 1]], "n")
    outer = [
        *(layer("InputLayer", x, []) for x in "abc"),
        inner | {"inbound_nodes": [[["a"], ["b"], ["c"]], [["c"], ["b"], ["a"]]]},
        layer("LSTM", "o", [[["n", 1, 0, {"initial_state": [["n", 2, 1], ["n", 1, 1]], "mask": ["n", 2, 0]}]]]),
    ]
    found = {x.name: x for x in network_of(functional(outer, [["a"], ["b"], ["c"]], [["o"]])).layers}
    for place in ("n", "n#1"):
        want = (f"{place}/p", f"{place}/q")
        want = {"initial_state": want, "mask": f"{place}/m"} if several else {"initial_state": want[0], "flag": True}
        assert found[f"{place}/l"].named == want and found[f"{place}/l"].operands == (f"{place}/p",)
    assert found["o"].operands == ("n",)
    assert found["o"].named == {"initial_state": ("n#1:1", "n:1"), "mask": "n#1"}
    assert found["o"].reads == ["n", "n#1:1", "n:1", "n#1"]


@pytest.mark.parametrize("count", [0, 1, 2, 4])
@pytest.mark.parametrize("by_name", [False, True])
def test_each_direction_gets_its_half_of_the_states(count, by_name):
    names = [f"s{i}" for i in range(count)]
    states = [[x, 0, 0] for x in names]
    named = {"mask": ["m", 0, 0]} | ({"initial_state": states} if by_name and states else {})
    reads = [["x", 0, 0, named], *([] if by_name else states)]
    inner = {"class_name": "LSTM", "config": {"name": "g", "return_state": True}}
    both = {"class_name": "Bidirectional", "name": "b", "config": {"layer": inner, "merge_mode": "sum"}}
    rows = [*(layer("InputLayer", x, []) for x in ("x", "m", *names)), both | {"inbound_nodes": [reads]}]
    found = {x.name: x for x in network_of(functional(rows, ["x", 0, 0], ["b", 0, 0])).layers}
    for i, way in enumerate(("forward", "backward")):
        half = tuple(names[i * count // 2 : (i + 1) * count // 2])
        one = found[f"b/{way}_g"]
        assert one.operands == ("x",) and one.named == {"mask": "m"} | ({"initial_state": half} if half else {})
    ends = [f"b/{way}_g{end}" for way in ("forward", "backward") for end in ("", ":1", ":2")]
    assert found["b"].operands == tuple(ends[i] for i in (0, 3, 1, 2, 4, 5))
    assert (found["b"].options["merge_mode"], found["b"].options["return_sequences"]) == ("sum", None)


def test_results_of_an_inner_network_have_its_name_and_place():
    """Two networks deep, and of a second use."""
    rows = [layer("InputLayer", "p", []), layer("ReLU", "r", [[["p", 0, 0]]])]
    core = functional(rows, ["p", 0, 0], [["p", 0, 0], ["r", 0, 0]], "core") | {"inbound_nodes": [[["q", 0, 0]]]}
    middle = [layer("InputLayer", "q", []), core, layer("Add", "s", [[["core", 1, 0], ["core", 1, 1]]])]
    net = functional(middle, ["q", 0, 0], [["s", 0, 0], ["core", 1, 1]], "net")
    outer = [*ONE, net | {"inbound_nodes": [[["a", 0, 0]], [["net", 1, 1]]]}]
    network = network_of(functional(outer, ["a", 0, 0], [["net", 2, 0], ["net", 1, 1]]))
    found = links(network)
    assert network.outputs == ("net#1", "net:1")
    for place, reads in (("net", "a"), ("net#1", "net:1")):
        assert found[f"{place}/q"] == (reads,) and found[f"{place}/core/p"] == (f"{place}/q",)
        assert found[f"{place}/core"] == (f"{place}/core/p",) and found[f"{place}/core:1"] == (f"{place}/core/r",)
        assert found[f"{place}/s"] == (f"{place}/core", f"{place}/core:1")
        assert found[place] == (f"{place}/s",) and found[f"{place}:1"] == (f"{place}/core:1",)
