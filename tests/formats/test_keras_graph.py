"""Graphs of Keras networks: layers in any order, arrays by name or number, images, numbers, what is refused."""

import time
from collections import Counter

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats import keras_graph
from cgraph.formats.keras_config import KerasLayer
from cgraph.formats.keras_graph import (
    arrays_by_group,
    check_sizes,
    fixed_shape,
    graph_of,
    keras_model,
    named_arrays,
    named_errors,
    numbered_arrays,
    open_shapes,
    sort_layers,
)
from cgraph.formats.keras_h5 import KerasFile
from cgraph.formats.keras_layers import RULES, pass_through
from cgraph.formats.keras_rules import LayerRule


def network(*layers: dict) -> KerasFile:
    first = {"class_name": "InputLayer", "name": "in", "config": {"batch_input_shape": [None, 4, 4, 2]}}
    chained = [{**layer, "inbound_nodes": [[[before, 0, 0, {}]]]} for layer, before in zip(layers, ("in", "a", "b"))]
    last = chained[-1]["name"]
    config = {"layers": [first, *chained], "input_layers": [["in", 0, 0]], "output_layers": [[last, 0, 0]]}
    return KerasFile({"class_name": "Functional", "config": config}, {})


def test_a_lambda_layer_is_refused():
    code = {"class_name": "Lambda", "name": "a", "config": {"function": ["4wEAAAA=", None, None]}}
    with pytest.raises(FormatError, match="is a Lambda, which is not supported"):
        graph_of(network(code), {"batch": 1})


def test_layers_in_any_order_and_keras_order_of_elements():
    flat = {"class_name": "Flatten", "name": "a", "config": {}}
    back = {"class_name": "Reshape", "name": "b", "config": {"target_shape": [2, 8, 2]}}
    file = network(flat, back)
    file.config["config"]["layers"].reverse()
    graph = graph_of(file, {"batch": 3})
    x = np.random.default_rng(0).normal(size=(3, 2, 4, 4)).astype(np.float32)
    got = cg.compile(graph.outputs[0], graph.inputs, engine="reference")(x)
    np.testing.assert_array_equal(got, x.transpose(0, 2, 3, 1).reshape(3, 2, 8, 2).transpose(0, 3, 1, 2))


def test_layers_of_any_number_in_any_order_take_time_in_proportion():
    """Each of 3,000 layers in the worst order is looked at a few times."""
    count = 3000
    looks = Counter()

    class Operands(tuple):
        def __iter__(self):
            looks["all"] += 1
            return super().__iter__()

    layers = [KerasLayer("ReLU", (str(i),), {}, Operands([str(i - 1)] if i else []), "") for i in range(count)]
    for turned in (layers, layers[::-1]):
        assert [layer.name for layer in sort_layers(turned)] == [str(i) for i in range(count)]
    assert looks["all"] < 8 * count


def test_two_layers_of_one_name_are_refused():
    file = network({"class_name": "ReLU", "name": "a", "config": {}})
    file.config["config"]["layers"].append(file.config["config"]["layers"][1])
    with pytest.raises(FormatError, match="one name"):
        graph_of(file, {"batch": 1})


def test_layers_that_wait_for_each_other_are_refused():
    one = {"class_name": "ReLU", "name": "a", "config": {}}
    file = network(one)
    file.config["config"]["layers"][1]["inbound_nodes"] = [[["a", 0, 0, {}]]]
    with pytest.raises(FormatError, match="depend on each other in a cycle"):
        graph_of(file, {"batch": 1})


def test_a_layer_that_reads_no_layer_of_the_network_is_refused():
    file = network({"class_name": "ReLU", "name": "a", "config": {}})
    file.config["config"]["layers"][1]["inbound_nodes"] = [[["elsewhere", 0, 0, {}]]]
    with pytest.raises(FormatError, match="layer 'a' reads 'elsewhere', which is not a layer of the network"):
        graph_of(file, {"batch": 1})


@pytest.mark.parametrize("rows", ["in", [7], ["in"], [[]], [[["in"], 0, 0]], {"in": 0}])
def test_operands_that_are_no_list_of_layers_are_refused(rows):
    """A text of many letters would pass for as many operands, of one byte each."""
    file = network({"class_name": "ReLU", "name": "a", "config": {}})
    file.config["config"]["layers"][1]["inbound_nodes"] = [rows]
    with pytest.raises(FormatError, match="not a list of layers"):
        graph_of(file, {"batch": 1})


def test_nodes_of_a_network_are_charged_before_they_are_made(monkeypatch):
    """A layer with many operands, and many layers: 50,000 nodes at least, and one for 256 bytes of the file."""
    file = network({"class_name": "Add", "name": "a", "config": {}})
    layers = file.config["config"]["layers"]
    layers[1]["inbound_nodes"] = [[["in", 0, 0, {}]] * 60_000]
    monkeypatch.setitem(keras_graph.RULES, "Add", None)  # nothing is built
    with pytest.raises(FormatError, match="layer 'a' would take 60,008 nodes"):
        graph_of(file, {"batch": 1})
    monkeypatch.undo()
    many = network({"class_name": "ReLU", "name": "a", "config": {}})
    more = [{"class_name": "ReLU", "name": f"{i}", "config": {}, "inbound_nodes": [[["a"]]]} for i in range(7000)]
    many.config["config"]["layers"] += more
    with pytest.raises(FormatError, match="would take 9 nodes while reading"):
        graph_of(many, {"batch": 1})


def sequential(*layers, shape=(None, 3), weights=None, **more):
    first = {"class_name": "InputLayer", "name": "in", "config": {"batch_input_shape": list(shape)}}
    config = {"class_name": "Sequential", "config": {"layers": [first, *layers]}}
    return KerasFile(config, weights or {}, 0, **more)


def dense(name, **config):
    return {"class_name": "Dense", "name": name, "config": config}


KERNEL, BIAS = np.array([[1, 2], [3, 4], [5, -6]], "f4"), np.array([7, -8], "f4")
X = np.array([[1, 0, 2], [0, 1, 1]], "f4")


@pytest.mark.parametrize("activation", [None, "linear", "relu"])
@pytest.mark.parametrize("numbered", [False, True])
def test_arrays_come_by_name_or_in_the_order_of_an_archive(activation, numbered):
    layer = dense("d", activation=activation)
    weights = {"layers/dense": {"0": KERNEL, "1": BIAS}} if numbered else {"d": {"kernel": KERNEL, "bias": BIAS}}
    model = keras_model(sequential(layer, weights=weights, numbered=numbered), "net.h5", {"batch": 2})
    assert (model.names, model.inputs[0].shape, model.inputs[0].name) == (("d",), (2, 3), "in")
    want = X @ KERNEL + BIAS
    (got,) = model.compile(engine="reference")(X)
    np.testing.assert_array_equal(got, np.maximum(want, 0) if activation == "relu" else want)


def test_an_archive_holds_the_arrays_that_the_options_ask_for():
    weights = {"layers/dense": {"0": KERNEL}}
    file = sequential(dense("d", use_bias=False), weights=weights, numbered=True)
    (got,) = keras_model(file, "net.keras", {"batch": 2}).compile(engine="reference")(X)
    np.testing.assert_array_equal(got, X @ KERNEL)
    with pytest.raises(FormatError, match="net.keras: layer 'd' has 1 arrays in 'layers/dense', not kernel, bias"):
        keras_model(sequential(dense("d"), weights=weights, numbered=True), "net.keras", {"batch": 2})
    with pytest.raises(FormatError, match="layer 'd' has 0 arrays"):
        keras_model(sequential(dense("d"), numbered=True), "net.keras", {"batch": 2})


def test_an_array_that_is_missing_is_named_with_its_layer():
    with pytest.raises(FormatError, match="^net.h5: layer 'd', a Dense, has no 'kernel'. Save the network again$"):
        keras_model(sequential(dense("d"), weights={"d": {"bias": BIAS}}), "net.h5", {"batch": 2})


def test_arrays_of_an_inner_layer_are_in_the_group_with_the_most_of_its_names():
    file = KerasFile({}, {"net": {"in/a/x": 1, "a/x": 2, "x": 3, "b/y/x": 4, "s/net/z/x": 6}, "a": {"x": 5}})
    rule = LayerRule(pass_through, ("x",))

    def arrays(*path):
        layer = KerasLayer("ReLU", path, {}, (), "", path)
        return named_arrays(layer, rule, arrays_by_group(file, [layer]))

    assert arrays("net", "in", "a") == {"x": 1} and arrays("net", "other", "a") == {"x": 2}
    assert arrays("net", "other", "c") == {"x": 3} and arrays("a") == {"x": 5} and arrays("none") == {}
    assert arrays("net", "z") == {"x": 6} and arrays("net", "b", "y") == {"x": 4}


def test_arrays_of_directions_and_of_steps_are_found_under_the_names_of_both_versions():
    file = KerasFile({}, {"b": {"s/b/gru_1/gru_cell/kernel": 1, "b/forward_gru/gru_cell/kernel": 2}, "t": {"t/x": 3}})

    def arrays(rule, *path):
        layer = KerasLayer("GRU", path, {}, (), "", path)
        return named_arrays(layer, rule, arrays_by_group(file, [layer]))

    assert arrays(RULES["GRU"], "b", "backward_gru_1") == {"cell/kernel": 1}
    assert arrays(RULES["GRU"], "b", "forward_gru") == {"cell/kernel": 2}
    assert arrays(LayerRule(pass_through, ("x",)), "t", "dense") == {"x": 3}
    assert arrays(LayerRule(pass_through, ("kernel",)), "b", "forward_gru") == {}


def test_results_of_a_layer_are_values_of_their_own_and_others_are_refused():
    lstm = {"units": 3, "activation": "tanh", "return_state": True}
    arrays = {
        "l/kernel": np.ones((2, 12), "f4"),
        "l/recurrent_kernel": np.ones((3, 12), "f4"),
        "l/bias": np.ones(12, "f4"),
    }
    rows = [
        {"class_name": "InputLayer", "name": "in", "config": {"batch_shape": [None, 4, 2]}},
        {"class_name": "LSTM", "name": "l", "config": lstm, "inbound_nodes": [[["in", 0, 0]]]},
    ]

    def outputs(*numbers):
        config = {"layers": rows, "input_layers": ["in", 0, 0], "output_layers": [["l", 0, i] for i in numbers]}
        return graph_of(KerasFile({"class_name": "Functional", "config": config}, {"l": arrays}), {"batch": 1})

    graph = outputs(0, 2, 1)
    assert graph.names == ("l", "l:2", "l:1") and [x.shape for x in graph.outputs] == [(1, 3)] * 3
    with pytest.raises(FormatError, match="the network has no value 'l:3'. Save it again"):
        outputs(0, 3)


def test_a_small_file_that_uses_networks_many_times_is_charged_for_each():
    net = {"class_name": "Sequential", "name": "n", "config": {"name": "n", "layers": [
        {"class_name": "InputLayer", "config": {"name": "in", "batch_shape": [None, 4]}},
        {"class_name": "ReLU", "config": {"name": "relu"}},
    ]}}  # fmt: skip
    for _ in range(14):  # each uses the one before it four times
        rows = [
            {"class_name": "InputLayer", "name": "in", "config": {"batch_shape": [None, 4]}, "inbound_nodes": []},
            {**net, "inbound_nodes": [[["in", 0, 0]]] + [[["n", i, 0]] for i in range(3)]},
        ]
        config = {"layers": rows, "input_layers": ["in", 0, 0], "output_layers": ["n", 3, 0]}
        net = {"class_name": "Functional", "name": "n", "config": config}
    start = time.process_time()
    with pytest.raises(FormatError, match="layer 'n"):
        graph_of(KerasFile(net, {}, 10_000), {"batch": 1})
    assert time.process_time() - start < 20  # 4 ** 14 layers would take hours


def test_channels_first_and_numbers_where_none_fit_are_refused():
    with pytest.raises(
        FormatError, match="layer d has channels first. Save the network with data_format='channels_last'"
    ):
        graph_of(sequential(dense("d", data_format="channels_first")), {"batch": 1})
    graph_of(sequential({"class_name": "ReLU", "name": "d", "config": {"data_format": "channels_last"}}), {"batch": 1})
    for kind, is_read in (("Add", True), ("ReLU", False)):
        file = network({"class_name": kind, "name": "a", "config": {}})
        tensor = {"class_name": "__keras_tensor__", "config": {"keras_history": ["in", 0, 0]}}
        file.config["config"]["layers"][1]["inbound_nodes"] = [{"args": [tensor, 2.5] if is_read else [2.5]}]
        if is_read:
            graph = graph_of(file, {"batch": 1})
            x = np.ones((1, 2, 4, 4), "f4")
            np.testing.assert_array_equal(cg.compile(graph.outputs[0], graph.inputs, engine="reference")(x), x + 2.5)
        else:
            with pytest.raises(FormatError, match="layer a is a ReLU of a number"):
                graph_of(file, {"batch": 1})


def test_an_input_has_the_dtype_and_batch_of_its_layer_and_channels_first():
    for key in ("batch_input_shape", "batch_shape"):
        first = {"class_name": "InputLayer", "name": "in", "config": {key: [None, 5, 6, 2], "dtype": "float64"}}
        file = KerasFile({"class_name": "Sequential", "config": {"layers": [first]}}, {})
        (x,) = graph_of(file, {"batch": 3}).inputs
        assert (x.shape, x.dtype.name, x.name) == ((3, 2, 5, 6), "float64", "in")


def test_an_entry_of_an_unexpected_type_is_an_error_that_names_the_file():
    file = sequential(shape=(None, "three"))
    with pytest.raises(FormatError, match="^net.h5: ."):
        keras_model(file, "net.h5", {"batch": 1})


def test_a_layer_is_yielded_once_after_its_operands():
    def layer(name, *operands):
        return KerasLayer("Add", (name,), {}, operands, "")

    rows = [layer("d", "b", "c", 2.0), layer("b", "a", "a"), layer("c", "a"), layer("a")]
    order = [x.name for x in sort_layers(rows)]
    assert sorted(order) == ["a", "b", "c", "d"] and order[0] == "a" and order[-1] == "d"
    assert list(sort_layers([])) == []
    with pytest.raises(FormatError, match="two of 3 layers have one name"):
        list(sort_layers([layer("a"), layer("b"), layer("a")]))


def test_results_of_networks_that_are_used_many_times_are_charged():
    """An inner network lists one result 200 times, and is used 200 times."""
    inner = [{"class_name": "InputLayer", "name": "in", "config": {"batch_shape": [None, 4]}}]
    ends = {"input_layers": ["in", 0, 0], "output_layers": [["in", 0, 0]] * 200}
    net = {"class_name": "Functional", "name": "n", "config": {"layers": inner, **ends}}
    rows = [
        {"class_name": "InputLayer", "name": "a", "config": {"batch_shape": [None, 4]}},
        {**net, "inbound_nodes": [[["a", 0, 0]]] * 200},
    ]
    config = {"layers": rows, "input_layers": ["a", 0, 0], "output_layers": ["n", 1, 0]}
    with pytest.raises(FormatError, match="layer 'n"):
        graph_of(KerasFile({"class_name": "Functional", "config": config}, {}, 10_000), {"batch": 1})


@pytest.mark.parametrize("mark", ["", "_"])
def test_arrays_of_each_inner_layer_of_an_archive_have_numbers_of_their_own(mark):
    """Keras 2 puts a mark before the names of the layers in a MultiHeadAttention."""
    roles = ("query", "key", "value", "output")
    layer = KerasLayer("MultiHeadAttention", ("a",), {}, (), "layers/heads")
    weights = {f"layers/heads/{mark}{x}_dense": {"0": f"{x} kernel", "1": f"{x} bias"} for x in roles}
    found = numbered_arrays(layer, RULES["MultiHeadAttention"], KerasFile({}, weights, 0, True))
    assert found == {f"{x}_dense/{array}": f"{x} {array}" for x in roles for array in ("kernel", "bias")}


def test_inputs_and_outputs_have_the_order_of_the_description_not_that_of_the_layers():
    rows = [
        {"class_name": "InputLayer", "name": x, "config": {"batch_shape": [None, n]}} for x, n in (("x", 2), ("y", 3))
    ]
    rows += [{"class_name": "ReLU", "name": f"r{x}", "config": {}, "inbound_nodes": [[[x, 0, 0]]]} for x in "xy"]
    ends = {"input_layers": [["y", 0, 0], ["x", 0, 0]], "output_layers": [["ry", 0, 0], ["rx", 0, 0]]}
    file = KerasFile({"class_name": "Functional", "config": {"layers": rows, **ends}}, {})
    model = keras_model(file, "net.h5", {"batch": 4})
    assert [(x.name, x.shape) for x in model.inputs] == [("y", (4, 3)), ("x", (4, 2))]
    assert model.names == ("ry", "rx") and [x.shape for x in model.outputs] == [(4, 3), (4, 2)]
    shapes, names = open_shapes(file, "net.h5")
    assert [*shapes.items()] == [("y", ("batch", 3)), ("x", ("batch", 2))] and names == ("ry", "rx")


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ({}, ("batch", "x.1", 5)), ({"batch": 2}, (2, "x.1", 5)), ({"x.1": 0}, ("batch", 0, 5)),
        ({"x": (2, 3, 5), "batch": 9}, (2, 3, 5)), ({"x": [2, 3, 5]}, (2, 3, 5)),
        ({"y": (1, 1, 1)}, ("batch", "x.1", 5)),
    ],
)  # fmt: skip
def test_sizes_are_given_by_their_names_or_as_a_whole(sizes, found):
    assert fixed_shape("x", ("batch", "x.1", 5), sizes) == found


@pytest.mark.parametrize("whole", [(2, 3, 4), (2, 3), (2, 3, 5, 1), 3])
def test_a_whole_shape_has_the_axes_that_are_known(whole):
    with pytest.raises(FormatError, match=r"input 'x' has the shape \['batch', 'x.1', 5\], not .*. Give one that fits"):
        fixed_shape("x", ("batch", "x.1", 5), {"x": whole})


def test_an_error_without_a_text_is_told_by_its_name():
    for error, text in ((KeyError(), "KeyError"), (ValueError("too many"), "too many")):
        with pytest.raises(FormatError, match=f"^net.h5: {text}$"), named_errors("net.h5"):
            raise error


def test_nodes_are_named_by_their_file_the_number_of_their_layer_and_its_name():
    weights = {"d": {"kernel": KERNEL}, "e": {"kernel": KERNEL[:2]}}
    rows = dense("d", activation="relu"), dense("e", activation="tanh")
    for path in ("net.h5", "folder/net.h5"):
        model = keras_model(sequential(*rows, weights=weights), path, {"batch": 2})
        y = model.outputs[0]
        assert y.where == "net.h5:2 in e"
        while y.op.name != "relu":
            y = y.operands[0]
        assert y.where == "net.h5:1 in d"


def test_rows_of_the_graph_are_built_in_the_order_in_which_they_are_read():
    """A use of a layer is one of its own, and so is each output of a network in a network."""
    rows = [
        {"class_name": "ReLU", "name": "b", "config": {}, "inbound_nodes": [[["a", 0, 0]], [["b", 0, 0]]]},
        {"class_name": "ELU", "name": "a", "config": {}, "inbound_nodes": [[["in", 0, 0]]]},
        {"class_name": "InputLayer", "name": "in", "config": {"batch_shape": [None, 3]}},
    ]
    config = {"layers": rows, "input_layers": [["in", 0, 0]], "output_layers": [["b", 1, 0], ["a", 0, 0]]}
    model = keras_model(KerasFile({"class_name": "Functional", "config": config}, {}), "net.h5", {"batch": 2})
    assert model.names == ("b#1", "a")
    assert [y.where for y in model.outputs] == ["net.h5:3 in b#1", "net.h5:1 in a"]
    x = np.array([[-1, 0, 2], [3, -4, 5]], "f4")
    found = model.compile(engine="reference")(x)
    np.testing.assert_array_equal(found[0], np.maximum(found[1], 0))


@pytest.mark.parametrize(("missing", "first"), [((3, 4), "l:3"), ((5, 3), "l:5"), ((0, 7), "l:7")])
def test_the_first_of_several_values_that_are_missing_is_named(missing, first):
    lstm = {"class_name": "ReLU", "name": "l", "config": {}, "inbound_nodes": [[["in", 0, 0]]]}
    rows = [{"class_name": "InputLayer", "name": "in", "config": {"batch_shape": [None, 4]}}, lstm]
    config = {"layers": rows, "input_layers": ["in", 0, 0], "output_layers": [["l", 0, i] for i in missing]}
    with pytest.raises(FormatError, match=f"the network has no value '{first}'. Save it again"):
        graph_of(KerasFile({"class_name": "Functional", "config": config}, {}), {"batch": 1})
    config |= {"input_layers": [["in", 0, 0], ["other", 0, 0]], "output_layers": ["l", 0, 0]}
    with pytest.raises(FormatError, match="the network has no value 'other'"):
        graph_of(KerasFile({"class_name": "Functional", "config": config}, {}), {"batch": 1})


def test_a_value_that_a_layer_computes_is_no_input():
    file = network({"class_name": "ReLU", "name": "a", "config": {}}, {"class_name": "ELU", "name": "b", "config": {}})
    file.config["config"]["input_layers"] = [["a", 0, 0], ["in", 0, 0]]
    graph = graph_of(file, {"batch": 1})
    assert [x.name for x in graph.inputs] == ["in"] and graph.names == ("b",)


@pytest.mark.parametrize("depth", [1, 2, 5, keras_graph.MOST_DEPTH + 1])
def test_arrays_are_found_as_deep_as_networks_may_be(depth):
    path = tuple(f"n{i}" for i in range(depth))
    for around in ("", "s/", "s/t/"):
        weights = {"n0": {around + "/".join((*path, "x")): 1, around + "/".join((*path, "inner", "y")): 2}}
        layer = KerasLayer("ReLU", path, {}, (), "", path)
        groups = arrays_by_group(KerasFile({}, weights), [layer])
        assert named_arrays(layer, LayerRule(pass_through, ("x",)), groups) == {"x": 1}
        inner = groups["n0", path]
        assert inner == {tuple(around.split("/")[:-1]): {"x": 1, "inner/y": 2}}


def test_a_size_is_that_of_an_axis_or_of_an_input():
    inputs = {"x": ("batch", "x.1", 5), "y": ("batch", 3)}
    for sizes in ({}, {"batch": 1}, {"x.1": 2}, {"x": (1, 2, 5)}, {"y": (1, 3), "x.1": 4, "batch": 2}):
        check_sizes(inputs, sizes, "net.h5")
    for sizes, name in (({"z": 1}, "z"), ({"batch": 1, "x.2": 1}, "x.2"), ({"y.1": 1}, "y.1"), ({5: 1}, 5)):
        match = rf"^net\.h5: {name!r} is not a size .* Pass shapes=\{{'batch': 1\}}; its sizes are batch, x\.1$"
        with pytest.raises(FormatError, match=match):
            check_sizes(inputs, sizes, "net.h5")
