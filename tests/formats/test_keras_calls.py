"""Calls of layers as Keras 2 and 3 write them: tensors by position and by name, and several uses of a layer."""

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.keras_calls import LayerCall, Tensor, calls_of, entries, first_uses
from cgraph.formats.keras_config import network_of
from tests.formats.test_keras_config import functional, layer, links, sequential
from tests.formats.test_keras_layers import computed, network


def tensor(name, use=0, output=0):
    return {"class_name": "__keras_tensor__", "config": {"keras_history": [name, use, output]}}


A, B = Tensor("a"), Tensor("b", 1, 2)
CALLS = {
    "nothing": ([], [LayerCall()]),
    "rows": ([[["a", 0, 0, {}], ["b", 1, 2]]], [LayerCall((A, B))]),
    "two uses": ([[["a"]], [["b", 1, 2, {}]]], [LayerCall((A,)), LayerCall((B,))]),
    "named rows": ([[["a", 0, 0, {"value": ["b", 1, 2], "mask": None}]]], [LayerCall((A,), {"value": B})]),
    "names beside the first of two rows": (
        [[["a", 0, 0, {"value": ["b", 1, 2]}], ["b", 1, 2, {}]]],
        [LayerCall((A, B), {"value": B})],
    ),
    "names beside the first of two rows, the second of which is shorter": (
        [[["a", 0, 0, {"value": ["b", 1, 2]}], ["b", 1, 2]]],
        [LayerCall((A, B), {"value": B})],
    ),
    "names beside the second of two rows, which nobody reads": (
        [[["a", 0, 0], ["b", 1, 2, {"value": ["b", 1, 2]}]]],
        [LayerCall((A, B))],
    ),
    "flags": ([{"args": [tensor("a")], "kwargs": {"k": [True, False]}}], [LayerCall((A,), {"k": (True, False)})]),
    "no flags": ([{"args": [tensor("a")], "kwargs": {"k": [None, False]}}], [LayerCall((A,))]),
    "named lists": ([[["a", 0, 0, {"states": [["a", 0, 0], ["b", 1, 2]]}]]], [LayerCall((A,), {"states": (A, B)})]),
    "a function": ([["a", 0, 0, {"y": 2.5, "name": None}]], [LayerCall((A,), {"y": 2.5})]),
    "tensors": ([{"args": [tensor("a"), [tensor("b", 1, 2)], 3], "kwargs": {}}], [LayerCall((A, B, 3.0))]),
    "named tensors": (
        [{"args": [tensor("a")], "kwargs": {"s": [tensor("b", 1, 2)], "k": tensor("a"), "causal": True, "no": False}}],
        [LayerCall((A,), {"s": (B,), "k": A, "causal": True})],
    ),
    "what decides nothing": (
        [{"args": [tensor("a")], "kwargs": {"training": True, "mask": [None]}}],
        [LayerCall((A,))],
    ),
}


TENSORS = {
    "rows": "ab", "named rows": "ab", "named lists": "aab", "a function": "a", "tensors": "ab", "named tensors": "aba",
    "what decides nothing": "a",
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_both_versions(name):
    nodes, want = CALLS[name]
    found = calls_of({"name": "l", "inbound_nodes": nodes})
    assert found == want and calls_of({"name": "l"}) == [LayerCall()]
    if name in TENSORS:
        assert [t.layer for t in found[0].tensors()] == list(TENSORS[name])


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([{"args": ["a"]}], "layer 'l' is called with 'a'; only tensors and numbers are supported"),
        ([{"args": [True]}], "is called with True"),
        ([{"args": [], "kwargs": {"k": "text"}}], "layer 'l', k= is called with 'text'"),
        ([{"args": [], "kwargs": {"k": ["a", "b"]}}], "k= is called with 'a'"),
        ([{"args": [], "kwargs": {"k": ["a", 0]}}], "k= is called with 'a'"),
        ([{"args": [], "kwargs": {"k": ["a", 0, 0, 0]}}], "k= is called with 'a'"),
        ([{"args": [], "kwargs": {"k": [tensor("a"), "text"]}}], "k= is called with 'text'"),
        ([{"args": [], "kwargs": {"k": [tensor("a"), None]}}], "k= is called with None"),
        ([{"args": [], "kwargs": {"k": [None, tensor("a")]}}], "k= is called with None"),
        (["a"], "reads a str, not a list of layers"),
        ([{"inputs": 1}], "reads a dict, not a list of layers"),
    ],
)
def test_other_calls_are_refused(nodes, words):
    with pytest.raises(FormatError, match=words):
        calls_of({"name": "l", "inbound_nodes": nodes})
    with pytest.raises(FormatError, match="are a dict. Save a network with a list of them"):
        entries({})


def test_the_first_use_of_a_network_may_have_number_one():
    rows = [{"name": x, "class_name": kind} for x, kind in zip("fsdm", ("Functional", "Sequential", "Dense", "Model"))]
    calls = {x: [LayerCall((Tensor("in"),))] * 2 for x in "fsdm"}
    assert first_uses(rows, calls, [Tensor("s", 1), Tensor("d", 1)]) == {"f": 1, "s": 0, "d": 0, "m": 1}
    assert first_uses(rows, calls, [Tensor("s", 2), Tensor("s", 1)])["s"] == 1
    calls["d"] = [LayerCall((Tensor("s", 2),))]
    assert first_uses(rows, calls, [])["s"] == 1


def test_each_use_of_a_layer_is_a_layer():
    uses = [[["a", 0, 0]], [["d", 0, 0]], [["d", 1, 0]]]
    rows = [layer("InputLayer", "a", []), layer("ReLU", "d", uses), layer("Add", "s", [[["d", 2, 0], ["d", 0, 0]]])]
    found = network_of(functional(rows, [["a", 0, 0]], [["s", 0, 0], ["d", 1, 0]]))
    assert links(found) == {"a": (), "d": ("a",), "d#1": ("d",), "d#2": ("d#1",), "s": ("d#2", "d")}
    assert found.outputs == ("s", "d#1") and {x.store for x in found.layers if x.kind == "ReLU"} == {"layers/re_lu"}
    assert {x.group for x in found.layers if x.kind == "ReLU"} == {("d",)}


@pytest.mark.parametrize("first", [0, 1])
def test_each_use_of_a_network_has_its_layers(first):
    """Both uses share their arrays; Keras counts the uses of some networks from 1."""
    inner = sequential(
        {"class_name": "InputLayer", "config": {"name": "in", "batch_shape": [None, 4]}},
        {"class_name": "ReLU", "config": {"name": "relu"}},
        name="net",
    )
    rows = [
        layer("InputLayer", "a", []), layer("InputLayer", "b", []),
        {**inner, "inbound_nodes": [[["a", 0, 0]], [["b", 0, 0]]]},
        layer("Subtract", "s", [[["net", first, 0], ["net", first + 1, 0]]]),
    ]  # fmt: skip
    found = network_of(functional(rows, [["a", 0, 0], ["b", 0, 0]], [["s", 0, 0]]))
    assert links(found)["s"] == ("net", "net#1")
    assert links(found)["net/in"] == ("a",) and links(found)["net#1/in"] == ("b",)
    assert {(x.store, x.group) for x in found.layers if x.kind == "ReLU"} == {
        ("layers/sequential/layers/re_lu", ("net", "relu"))
    }


def test_a_layer_that_is_used_twice_computes_twice():
    kernel = np.random.default_rng(0).normal(size=(4, 4)).astype("f4")
    file = network("Dense", {"activation": "relu"}, {"kernel": kernel}, shape=(3, 4))
    rows = file.config["config"]
    rows["layers"][-1]["inbound_nodes"].append([["layer", 0, 0]])
    rows["output_layers"] = [["layer", 1, 0]]
    x = np.random.default_rng(1).normal(size=(3, 4)).astype("f4")
    once = computed(network("Dense", {"activation": "relu"}, {"kernel": kernel}, shape=(3, 4)), x)
    want = computed(network("Dense", {"activation": "relu"}, {"kernel": kernel}, shape=(3, 4)), once)
    np.testing.assert_array_equal(computed(file, x), want)


THREE = [Tensor(x) for x in "abc"]


@pytest.mark.parametrize("rows", [
    [["a", 0, 0], ["b", 0, 0], ["c", 0, 0]], [tensor("a"), tensor("b"), tensor("c")],
    [["a", 0, 0], tensor("b"), ["c", 0, 0]],
])  # fmt: skip
def test_three_tensors_by_name_are_not_one(rows):
    """One has a name and two numbers."""
    call = LayerCall((Tensor("x"),), {"states": tuple(THREE)})
    assert calls_of({"name": "l", "inbound_nodes": [[["x", 0, 0, {"states": rows}]]]}) == [call]
    (found,) = calls_of({"name": "l", "inbound_nodes": [{"args": [tensor("x")], "kwargs": {"states": rows}}]})
    assert found == call and list(found.tensors()) == [Tensor("x"), *THREE]


@pytest.mark.parametrize("kind", ["Tensor", "__numpy__", None])
def test_only_what_is_called_a_tensor_is_one(kind):
    other = {"class_name": kind, "config": {"keras_history": ["a", 0, 0]}}
    for node in ({"args": [other]}, {"args": [[tensor("a"), other]]}, {"args": [], "kwargs": {"k": other}}):
        with pytest.raises(FormatError, match="only tensors and numbers are supported"):
            calls_of({"name": "l", "inbound_nodes": [node]})


def test_numbers_and_flags_may_stand_among_tensors_by_name():
    kwargs = {"k": [tensor("a"), 2, True], "one": 0.5, "none": None, "zero": 0, "training": tensor("a")}
    (found,) = calls_of({"name": "l", "inbound_nodes": [{"args": [1.5, tensor("b", 1, 2)], "kwargs": kwargs}]})
    assert found == LayerCall((1.5, B), {"k": (A, 2.0, True), "one": 0.5, "zero": 0.0})
    assert list(found.tensors()) == [B, A]


@pytest.mark.parametrize("kind", ["Dense", "InputLayer", "Functional", "Sequential"])
@pytest.mark.parametrize("use", [0, 1])
def test_only_uses_of_networks_may_be_counted_from_one(kind, use):
    rows = [{"name": "r", "class_name": kind}]
    want = {"Functional": 1, "Sequential": use}.get(kind, 0)
    assert first_uses(rows, {"r": [LayerCall((A,))]}, [Tensor("r", use), A]) == {"r": want}
