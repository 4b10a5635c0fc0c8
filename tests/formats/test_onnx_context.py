"""The argument of ONNX importers: operands, constants, lengths, attributes, and what each lacks is named."""

import numpy as np
import pytest
from onnx import helper

from cgraph.errors import FormatError
from cgraph.formats.onnx.context import OBJECT, OPERATORS, attribute_cost, attribute_value, operator
from cgraph.formats.onnx.dynamic.bounds import Size
from cgraph.formats.onnx.vocabulary import CodedStrings, Tokens
from cgraph.formats.unspecified import UnknownError
from cgraph.ops.leaf import Const, Var
from cgraph.running.text_features import TextFeature
from tests.support.onnx_context import context, length, ragged

X = Var((3,), "float32", "x0")
NUMBERS = Const(np.array([4, 5], "i8"))


def test_operands_may_be_absent_at_the_end_or_between():
    c = context(X, None, NUMBERS)
    assert c[0] is X and c.get(1, 7) == 7 and c.get(3) is None and c.value(9) is None and c.get(2) is NUMBERS
    with pytest.raises(FormatError, match="^operand 1 is missing$"):
        c[1]
    with pytest.raises(FormatError, match="^operand 0 is a sequence$"):
        context([X])[0]
    with pytest.raises(FormatError, match="^operand 1 is missing$"):
        _ = c.nodes
    assert context(X, NUMBERS).nodes == [X, NUMBERS]


def test_constants_are_read_and_their_number_is_checked():
    c = context(X, NUMBERS, Const(np.array([[3]])), constants={"x0": np.array([1, 2, 3], "f4")})
    assert c.ints(1) == [4, 5] and c.ints(5, [1]) == [1] and c.number(2) == 3 and c.number(5, 2.5) == 2.5
    assert c.constant(0).tolist() == [1, 2, 3]
    with pytest.raises(FormatError, match="operand 1 has 2 elements; give exactly one"):
        c.number(1)
    with pytest.raises(UnknownError, match="operand 0 must be constant .* depends on input 'x0'"):
        context(X).constant(0)


def test_a_value_of_a_run_is_told_from_one_of_now():
    c = context(X, NUMBERS, None)
    n = length(c, "n", 3)
    opened = c.reading({0: ragged(X, {0: n})})
    assert not c.is_ragged and opened.is_ragged and c[0] is X
    assert c.is_open(0) and not c.is_open(1) and not c.is_open(2, 7) and opened.is_open(1, 0)
    assert not context(X, constants={"x0": np.ones(3, "f4")}).is_open(0)
    assert opened.array(0) is opened.value(0) and c.array(1) is NUMBERS
    with pytest.raises(UnknownError, match=r"operand 0 is float32\[≤3\], of a length known only at run time"):
        opened[0]
    assert opened.unequal == "in Kind 'name' -> y: lengths known only at run time do not fit"


def test_lengths_are_numbers_now_or_sizes_of_a_run():
    given, floats = Var((2,), "int64", "g"), Var((1,), "float32", "f")
    c = context(given, NUMBERS, floats, Const(np.array([6])))
    assert c.lengths(1) == [4, 5] and c.lengths(9, 1) == 1 and c.length(3) == 6 and c.length(9, 2) == 2
    assert [type(n) for n in c.lengths(0)] == [Size, Size] and isinstance(c.length(2), Size)
    with pytest.raises(FormatError, match="operand 1 has 2 elements; give exactly one"):
        c.length(1)


def test_the_room_of_a_length_is_its_bound_or_the_maximum_of_its_result():
    c = context(X, NUMBERS)
    n = length(c, "n", 9)
    assert c.room(n, [0]) == 9 and c.room(5, [0]) == 5 and c.room(-3, [0]) == 0
    assert context(X, maximum={"y": 4}).room(n, [0]) == 4 and context(X, maximum={"z": 4}).room(n, [0]) == 9
    assert context(X, maximum={"y": 4}, written=[]).maximum == np.inf
    free = Size(Var((), "int64", "k"), 0, np.inf)
    with pytest.raises(UnknownError, match="nothing bounds axis 2") as error:
        c.room(free, [1, 0], 2)
    assert error.value.maximum == ("x0", "y") and error.value.constants == ("k",)


def test_a_bound_of_32_bits_is_none_and_one_below_0_is_0():
    c = context(X, None, NUMBERS, Var((2,), "int64", "x3"))
    top = np.iinfo(np.int32).max
    assert c.room(Size(Var((), "int64"), 0, top - 1), [0]) == top - 1 and c.room(Size(X, -9, -2), [0]) == 0
    for high in (top, top + 1, np.inf):
        with pytest.raises(UnknownError, match="nothing bounds axis 0") as error:
            c.room(Size(Var((), "int64", "k"), 0, high), [3, 2, 1])
        assert error.value.maximum == ("x3", "y")  # neither the constant nor the absent one
    assert context(X, maximum={"y": 4}).room(Size(Var((), "int64", "k"), 0, np.inf), [0]) == 4


def test_a_length_is_exactly_one_number():
    c = context(Const(np.zeros(0, "i8")), Const(np.array(7)), Const(np.array([[8]])), Const(np.array([1, 2, 3])))
    assert c.length(1) == 7 and c.length(2) == 8 and c.lengths(0) == []
    for i, count in ((0, 0), (3, 3)):
        for read in (c.length, c.number):
            with pytest.raises(FormatError, match=f"operand {i} has {count} elements; give exactly one"):
                read(i)


def test_tokens_are_not_read_as_numbers_or_strings():
    """Their number is known when run, so nothing but what counts them takes them."""
    texts = CodedStrings(Var((3,), "int64", "t"))
    tokens = Tokens(X, TextFeature(np.arange(6).reshape(2, 3), "NONE"))
    c = context(tokens, texts)
    for act in (lambda: c.text(0), lambda: c[0], lambda: c.is_open(0)):
        with pytest.raises(FormatError, match=r"operand 0 is string\[2,3,…\], tokens whose number a run decides"):
            act()
    assert c.text(1)[1] is texts.node
    with pytest.raises(FormatError, match="operand 0 holds no strings, but attributes do"):
        context(X).text(0)


def test_a_bound_that_trusts_a_float_is_checked():
    c = context(X)
    n = length(c, "n", 9)
    c.room(n, [0])
    assert not c.limits.checks
    c.limits.trusting.add(n.node)
    assert c.room(n, [0], 1) == 9
    assert c.limits.checks[0].text.endswith("do not fit: axis 1 is longer than 9")


make = helper.make_attribute
ATTRIBUTES = [
    (make("a", 7), 7),
    (make("a", 2.5), 2.5),
    (make("a", "text"), "text"),
    (make("a", [1, 2]), [1, 2]),
    (make("a", [0.5, 1.5]), [0.5, 1.5]),
    (make("a", ["x", "y"]), ["x", "y"]),
]


@pytest.mark.parametrize(("attribute", "want"), ATTRIBUTES)
def test_attributes_are_python_values(attribute, want):
    c = context(attributes=[attribute])
    assert c.attribute("a") == c.required("a") == want and type(c.attribute("a")) is type(want)
    assert c.attribute("b", 3) == 3 and c.attribute("b") is None
    with pytest.raises(FormatError, match="attribute b is missing: export the model again with it"):
        c.required("b")


def test_tensors_and_graphs_stay_what_they_are():
    tensor = helper.make_tensor("t", 7, [2], [1, 2])
    assert context(attributes=[make("a", tensor)]).attribute("a").tolist() == [1, 2]
    graph = helper.make_graph([], "g", [], [])
    assert attribute_value(make("a", graph)) == graph and attribute_value(make("a", [graph])) == [graph]
    with pytest.raises(FormatError, match="attribute a is of kind 0, which is not supported"):
        attribute_value(type(make("a", 1))(name="a"))


def test_attributes_are_charged_by_their_elements():
    assert attribute_cost(make("a", 7)) == (0, 0)
    assert attribute_cost(make("a", "text")) == (4, 4)
    assert attribute_cost(make("a", [1, 2, 3])) == (0, 3 * OBJECT)
    graph = helper.make_graph([], "g", [], [])
    assert attribute_cost(make("a", [graph, graph])) == (0, 2 * OBJECT) and attribute_cost(make("a", graph)) == (0, 0)
    assert attribute_cost(make("a", [0.5, 1.5])) == (0, 2 * OBJECT)
    assert attribute_cost(make("a", ["ab", "c"])) == (2 * OBJECT + 3, 2 * OBJECT + 3)


def test_axes_are_an_operand_or_an_attribute_of_older_files():
    axes = make("axes", [0, -1])
    assert context(X, NUMBERS, attributes=[axes]).axes(1) == [4, 5] and context(X, attributes=[axes]).axes(1) == [0, -1]
    assert context(X).axes(1) is None and context(X).axes(1, [2]) == [2]


def test_results_that_nobody_reads_and_what_is_charged():
    c = context(read_results=(True, False))
    assert c.asks(0) and not c.asks(1) and not c.asks(2)
    with pytest.raises(FormatError, match="^it would take 51,000 nodes"):
        c.spend(nodes=51_000)


def test_an_importer_has_every_name_it_is_registered_for(monkeypatch):
    monkeypatch.setattr("cgraph.formats.onnx.context.OPERATORS", registered := {})
    assert operator("A", "B")(len) is len and registered == {"A": len, "B": len} and "A" not in OPERATORS
