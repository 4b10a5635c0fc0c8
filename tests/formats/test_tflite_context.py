"""The argument of TFLite's importers: operands, options and their defaults, constants, orders of axes."""

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.tflite.context import ACTIVATIONS, TfliteContext, images, operator
from cgraph.formats.tflite.source import TensorFacts
from cgraph.formats.tflite.value import QuantisedFormat, TfliteValue
from cgraph.formats.tflite.variables import Variables
from cgraph.formats.tflite.wire import Table as FileTable
from cgraph.ops.leaf import Const, Var
from tests.support.tflite_models import Table, ints, written

X = Var((2, 3, 4, 5), "float32", "x")
FORM = QuantisedFormat(np.array([0.5], "f4"), np.array([3]), 0, False)


def context(*operands, kind="CONV_2D", options=None, quantised=None):
    table = None
    if options is not None:
        data = memoryview(written(options))
        table = FileTable(data, int.from_bytes(data[:4], "little"))
    result = TensorFacts(0, "y", (1,), np.dtype("float32"), None, quantised)
    build, variables = (lambda number, inputs: list(inputs)), Variables(Allowance(0))
    return TfliteContext(kind, operands, table, (result,), Allowance(0), build, lambda i, x: None, variables)


def constant(*values, dtype="i4"):
    return TfliteValue(array=np.array(values, dtype))


def test_operands_may_be_absent():
    x = TfliteValue(X)
    c = context(x, None)
    assert c[0] is x and c.get(1) is None and c.get(2) is None and context(x, x).nodes == [X, X]
    for i in (1, 2):
        with pytest.raises(FormatError, match=f"^operand {i} is missing$"):
            c[i]


def test_options_come_from_the_file_or_are_defaults():
    c = context(options=Table({0: ("b", 1), 1: ("i", 3), 2: ("i", 2)}))
    assert (c.option("padding"), c.option("stride_w"), c.option("stride_h"), c.option("dilation_h")) == (1, 3, 2, 1)
    assert c.sizes("stride") == (2, 3) and c.sizes("dilation") == (1, 1)
    assert context().option("dilation_w") == 1 and context().option("padding") == 0
    with pytest.raises(FormatError, match="^stride is 0 x 0$"):
        context().sizes("stride")
    with pytest.raises(FormatError, match="^stride is 0 x 3$"):
        context(options=Table({1: ("i", 3)})).sizes("stride")
    assert context(kind="VAR_HANDLE", options=Table({1: "sum"})).option("name") == "sum"
    assert context(kind="VAR_HANDLE").option("name") == ""
    assert context(kind="SQUEEZE").option("axes") is None
    assert context(kind="SQUEEZE", options=Table({0: ints(2, -1)})).option("axes") == [2, -1]


def test_constants_are_those_of_the_file_or_folded_ones():
    c = context(constant(4, 5), TfliteValue(Const(np.array([6]))), TfliteValue(X), constant(1.5, dtype="f4"))
    assert c.ints(0) == [4, 5] and c.ints(1) == [6] and c.constant(3).tolist() == [1.5]
    with pytest.raises(FormatError, match="operand 2 must be constant, but depends on an input of the graph"):
        c.constant(2)
    with pytest.raises(FormatError, match="1 numbers of float32 cannot describe axes"):
        c.ints(3)
    assert len(context(constant(*range(64))).ints(0)) == 64
    with pytest.raises(FormatError, match="65 numbers of int32 cannot describe axes"):
        context(constant(*range(65))).ints(0)


def test_quantised_results_are_told_apart():
    assert context(quantised=FORM).is_quantised and context(quantised=FORM).result is FORM
    assert not context().is_quantised and context().dtypes == (np.dtype("float32"),)
    with pytest.raises(FormatError, match="quantised operands or results mixed with others"):
        _ = context().result


def test_filters_are_turned_and_charged_when_they_are_constant():
    weights = np.arange(6, dtype="f4").reshape(2, 3)
    c = context(TfliteValue(array=weights), TfliteValue(Var((2, 3))), TfliteValue(array=weights.astype("f2")))
    before = c.allowance.nbytes
    turned = c.filters(0, (1, 0))
    np.testing.assert_array_equal(turned.op.array, weights.T)
    assert turned.op.array.flags.c_contiguous and before - c.allowance.nbytes == 24
    assert c.filters(1, (1, 0)).shape == (3, 2) and before - c.allowance.nbytes == 24
    with pytest.raises(FormatError, match=r"operand 0 \[2, 3\] does not have 3 axes"):
        c.filters(0, (0, 1, 2))
    with pytest.raises(FormatError, match="filters of float16 are not supported here"):
        c.filters(2, (1, 0))


def test_operands_have_one_order_of_axes():
    first, plain = images(X), TfliteValue(Var((2, 4, 5, 3), "float32", "y"))
    row = constant(1, 2, 3, dtype="f4")
    nodes, is_first = context(first, plain, None, row).alike()
    assert is_first and nodes[0] is X and nodes[1].shape == (2, 3, 4, 5) and nodes[2].shape == (1, 3, 1, 1)
    nodes, is_first = context(plain, row).alike()
    assert not is_first and nodes[0] is plain.node and nodes[1].shape == (3,)
    assert context(first, plain).alike(plain)[1] is False
    wide = TfliteValue(Var((1, 2, 4, 5, 3)))
    nodes, is_first = context(first, wide).alike()
    assert not is_first and nodes[0].shape == (2, 4, 5, 3)


def test_axes_of_the_file_are_found_in_an_image():
    c, first, plain = context(), images(X), TfliteValue(X)
    assert [c.axis(i, first) for i in (0, 1, 2, 3, -1, -4)] == [0, 2, 3, 1, 1, 0]
    assert [c.axis(i, plain) for i in (0, 1, -1)] == [0, 1, 3]
    for axis in (4, -5):
        with pytest.raises(FormatError, match=f"axis {axis} is outside a tensor of 4 axes"):
            c.axis(axis, plain)


@pytest.mark.parametrize(
    ("number", "want"),
    [(0, [-9, -0.5, 0.5, 9]), (1, [0, 0, 0.5, 9]), (2, [-1, -0.5, 0.5, 1]), (3, [0, 0, 0.5, 6])],
)
def test_fused_activations(number, want):
    x = Const(np.array([-9, -0.5, 0.5, 9], "f4"))
    assert evaluate([context(options=Table({3: ("b", number)})).activated(x)], {})[0].tolist() == want
    assert set(ACTIVATIONS) == {0, 1, 2, 3, 4}
    with pytest.raises(FormatError, match="the activation 5 is not supported"):
        context(options=Table({3: ("b", 5)})).activated(x)


def test_an_importer_says_what_it_does_with_bytes(monkeypatch):
    monkeypatch.setattr("cgraph.formats.tflite.context.OPERATORS", names := {})
    monkeypatch.setattr("cgraph.formats.tflite.context.ON_BYTES", on_bytes := {})
    monkeypatch.setattr("cgraph.formats.tflite.context.ON_WORDS", on_words := set())
    operator("A", "B", on_bytes=False)(len)
    operator("C")(len)
    operator("D", on_bytes=True)(len)
    operator("E", on_bytes=True, on_words=True)(len)
    assert set(names) == set("ABCDE") and on_bytes == {"A": False, "B": False, "D": True, "E": True}
    assert on_words == {"A", "B", "E"}
