"""TFLite models as graphs: inputs and outputs as in the file or as floats, names, errors with their operator."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError, PositionError
from cgraph.formats.tflite import load, reader
from cgraph.formats.tflite.context import OPERATORS
from cgraph.formats.tflite.reader import check_quantised, enter_input, input_of, leave_output
from cgraph.formats.tflite.schema import SubgraphFields
from cgraph.formats.tflite.source import TensorFacts, TfliteSource
from cgraph.formats.tflite.value import QuantisedFormat, TfliteValue
from cgraph.ir.traverse import post_order
from cgraph.kernels.mapped import mapping_of
from cgraph.ops.leaf import HASHED_NBYTES, Const, ConstOp
from tests.support.tflite_models import Network, Table, ints, written


def form(zero=3, signed=True, scale=0.5):
    return QuantisedFormat(np.array([scale], "f4"), np.array([zero]), 0, signed)


def facts(dtype="int8", quantised=None):
    return TensorFacts(4, "x", (2, 3), np.dtype(dtype), None, quantised)


def value(node):
    return evaluate([node], {})[0]


def test_inputs_are_as_in_the_file_or_floats():
    assert str(input_of(facts(quantised=form()), False).dtype) == "int8" and input_of(facts(), False).name == "x"
    assert str(input_of(facts(quantised=form()), True).dtype) == "float32"
    assert str(input_of(facts(), True).dtype) == "int8" and input_of(facts(), True).shape == (2, 3)


def test_bytes_enter_and_leave_as_they_are():
    signed = np.array([-128, -1, 0, 127], "i1")
    inside = enter_input(Const(signed), form())
    assert value(inside.node).tolist() == [0, 127, 128, 255] and inside.quantised.zero == 131
    np.testing.assert_array_equal(value(leave_output(inside, False)), signed)
    assert value(leave_output(inside, True)).tolist() == [-65.5, -2, -1.5, 62]
    unsigned = Const(np.array([0, 3, 255], "u1"))
    plain = enter_input(unsigned, form(signed=False))
    assert plain.node is unsigned and leave_output(plain, False) is unsigned
    assert value(leave_output(plain, True)).tolist() == [-1.5, 0, 126]
    floats = Const(np.array([-100, 0, 0.25, 1, 100], "f4"))
    assert value(enter_input(floats, form()).node).tolist() == [0, 131, 132, 133, 255]
    assert enter_input(floats, None).node is floats and leave_output(TfliteValue(floats), True) is floats


def test_values_have_the_names_of_their_tensors():
    net = Network()
    x = net.input((2, 3))
    y = net.op("NEG", [x])
    model = load(net.bytes(y, x, y))
    assert (
        [v.name for v in model.inputs] == ["t0"] and list(model.values) == ["t0", "t1"] and len(set(model.names)) == 3
    )
    got = evaluate(list(model.outputs), {model.inputs[0]: np.ones((2, 3), "f4")})
    assert [v[0, 0] for v in got] == [-1, 1, -1]


def test_a_shape_that_is_computed_of_constants_is_one():
    net = Network()
    x = net.input((2, 3))
    total = net.op("ADD", [net.constant(np.array([2, 1], "i4")), net.constant(np.array([1, 1], "i4"))], "int32")
    model = load(net.bytes(net.op("RESHAPE", [x, total])))
    assert model.outputs[0].shape == (3, 2) and isinstance(model.values[f"t{total}"].op, ConstOp)


def test_one_number_gets_a_shape_without_axes():
    net = Network()
    x = net.input((1, 1))
    y = net.op("RESHAPE", [x, net.constant(np.zeros(0, "i4"))])
    found = load(net.bytes(y))
    assert found.outputs[0].shape == ()
    assert cg.compile(found.outputs[0], found.inputs)(np.full((1, 1), 3, "f4")) == 3


def test_missing_operators_are_counted_by_name():
    net = Network()
    x = net.input((2,))
    for kind in ("UNIQUE", "MULTINOMIAL", "UNIQUE"):
        net.op(kind, [x])
    with pytest.raises(
        FormatError, match=r"^model: 2 operators are not supported: MULTINOMIAL, UNIQUE \(2 times\). See docs"
    ):
        load(net.bytes(x))


def test_errors_name_the_file_and_the_operator(tmp_path):
    net = Network()
    x = net.input((2, 3))
    y = net.op("RESHAPE", [net.op("NEG", [x]), net.constant(np.array([4, 4], "i4"))])
    (tmp_path / "net.tflite").write_bytes(net.bytes(y))
    with pytest.raises(FormatError, match=r"^net\.tflite: in RESHAPE 1: "):
        load(tmp_path / "net.tflite")
    net = Network()
    early = net.tensor((2,), "float32")
    with pytest.raises(FormatError, match=f"^model: in NEG 0: tensor 't{early}' is read before it is computed"):
        load(net.bytes(net.op("NEG", [early])))


def test_results_are_as_many_and_of_the_dtypes_that_the_file_declares():
    net = Network()
    with pytest.raises(FormatError, match="in NEG 0: it has 2 results, not 1"):
        load(net.bytes(net.op("NEG", [net.input((2,))], "float32", "float32")[0]))
    net = Network()
    with pytest.raises(FormatError, match=r"in NEG 0: result 't1' is float32, but the file declares int32"):
        load(net.bytes(net.op("NEG", [net.input((2,))], "int32")))


def test_bytes_are_refused_where_floats_alone_are_computed_and_moved_within_one_scale():
    with pytest.raises(FormatError, match="SIN does not support quantised values. Dequantise its operands"):
        check_quantised("SIN", [form()])
    check_quantised("SIN", [])
    check_quantised("ADD", [form(), form(scale=2.0)])
    check_quantised("RESHAPE", [form(3, True), form(131, False)])
    for other in (form(scale=2.0), form(4)):
        with pytest.raises(FormatError, match="its operands and results have different scales or zero points"):
            check_quantised("RESHAPE", [form(), other])


def test_options_of_another_operator_are_refused():
    net = Network()
    y = net.op("ADD", [net.input((2,)), net.input((2,))], activation=1)
    net.operators[0][3] = ("B", 12)
    with pytest.raises(FormatError, match="in ADD 0: it has the options 12, not 11"):
        load(net.bytes(y))
    del net.operators[0][3], net.operators[0][4]
    model = load(net.bytes(y))
    got = evaluate(list(model.outputs), {v: np.array([-1, 1], "f4") for v in model.inputs})[0]
    assert got.tolist() == [-2, 2]


def test_an_input_that_is_listed_twice_is_one():
    net = Network()
    x = net.input((2,))
    root = net.root(net.op("NEG", [x]))
    root[2][0][1] = ints(x, x)
    assert isinstance(root, Table) and len(load(written(root)).inputs) == 1


def test_a_model_is_a_path_or_bytes_and_is_called_by_its_file(tmp_path):
    net = Network()
    raw = net.bytes(net.op("NEG", [net.input((2,))]))
    (tmp_path / "net.tflite").write_bytes(raw)
    for source in (tmp_path / "net.tflite", str(tmp_path / "net.tflite"), raw, bytearray(raw)):
        model = load(source)
        assert evaluate(list(model.outputs), {model.inputs[0]: np.float32([1, -2])})[0].tolist() == [-1, 2]
    for source, name in ((b"no model", "model"), (bytearray(8), "model")):
        with pytest.raises(FormatError, match=f"^{name}: this is not a TFLite model"):
            load(source)
    (tmp_path / "other.tflite").write_bytes(b"no model")
    with pytest.raises(FormatError, match=r"^other\.tflite: this is not a TFLite model"):
        load(tmp_path / "other.tflite")


def test_values_of_bytes_are_as_in_the_file():
    """Also those in the order of axes of a convolution."""
    net = Network()
    how = {"scale": 0.5, "zero": -3}
    x = net.input((1, 2, 3, 4), "int8", **how)
    y = net.op("MAX_POOL_2D", [x], {"dtype": "int8", **how}, window_w=1, window_h=1, stride_w=1, stride_h=1)
    z = net.op("MAXIMUM", [y, x], {"dtype": "int8", **how})
    model = load(net.bytes(z))
    values = np.arange(-12, 12, dtype="i1").reshape(1, 2, 3, 4)
    assert list(model.values) == [f"t{i}" for i in (x, y, z)]
    for found in evaluate(list(model.values.values()), {model.inputs[0]: values}):
        np.testing.assert_array_equal(found, values, strict=True)


@pytest.mark.parametrize(("error", "text"), [(IndexError(), "IndexError"), (TypeError("of two"), "of two")])
def test_an_error_of_an_importer_is_told_by_its_text_or_its_name(monkeypatch, error, text):
    def fail(context):
        raise error

    monkeypatch.setitem(OPERATORS, "NEG", fail)
    net = Network()
    with pytest.raises(FormatError, match=f"^model: in NEG 0: {text}$"):
        load(net.bytes(net.op("NEG", [net.input((2,))])))


@pytest.mark.parametrize(
    ("shape", "is_turned"),
    [((2, 3, 4, 5), True), ((2, 3, 4, 2), True), ((2, 3, 4, 1), False), ((1, 1, 1, 3), True), ((2, 3, 4), False),
     ((2, 3, 4, 5, 2), False), ((4,), False)],
)  # fmt: skip
def test_pictures_of_bytes_are_turned_where_they_enter_if_they_have_channels(shape, is_turned):
    numbers = np.arange(np.prod(shape), dtype="i1").reshape(shape)
    entered = enter_input(Const(numbers), form())
    assert entered.first is is_turned and entered.shape == shape
    np.testing.assert_array_equal(value(entered.plain), numbers.view("u1") ^ 128)
    assert not enter_input(Const(numbers.view("u1")), form(signed=False)).first
    assert not enter_input(Const(numbers.astype("f4")), form()).first and not enter_input(Const(numbers), None).first


def test_pages_of_a_file_are_released_once_its_graph_is_built(monkeypatch):
    released = []
    monkeypatch.setattr(reader, "release", lambda x: released.append(x.size))
    net = Network()
    raw = net.bytes(net.op("NEG", [net.input((2,))]))
    load(raw)
    assert released == [len(raw)]


def test_operands_and_results_that_a_file_does_not_list_are_none():
    """An operator without them, and a graph without outputs."""
    net = Network()
    x = net.input((2,))
    net.op("NEG", [x])
    root = net.root()
    del root[2][0][2]
    assert load(written(root)).outputs == ()
    del net.operators[0][1]
    with pytest.raises(FormatError, match="in NEG 0: operand 0 is missing"):
        load(written(net.root(x)))
    net.operators[0][1] = ints(x)
    del net.operators[0][2]
    with pytest.raises(FormatError, match="in NEG 0: "):
        load(written(net.root(x)))


@pytest.mark.parametrize("error", [PositionError("beyond"), FormatError("beyond"), ValueError("beyond")])
def test_a_position_that_is_outside_stays_an_error_of_positions(monkeypatch, error):
    def fail(context):
        raise error

    monkeypatch.setitem(OPERATORS, "NEG", fail)
    net = Network()
    raw = net.bytes(net.op("NEG", [net.input((2,))]))
    kind = PositionError if isinstance(error, PositionError) else FormatError
    with pytest.raises(kind) as caught:
        run_of(raw)
    assert type(caught.value) is kind and str(caught.value) == "in NEG 0: beyond"


def run_of(raw):
    """Build the operators of a file alone."""
    source = TfliteSource(memoryview(raw), "model")
    places = source.places(source.graph, SubgraphFields.OPERATORS)
    values = [None] * len(source.tensors)
    values[0] = TfliteValue(Const(np.ones(2, "f4")))
    reader.run(source, places, values)
    return values


def test_each_missing_operator_is_listed_once_by_name_up_to_forty():
    net = Network()
    x = net.input((2,))
    for kind in ("UNIQUE", "RANDOM_UNIFORM", "WHERE", "RANDOM_UNIFORM", "RANDOM_UNIFORM", "NEG"):
        net.op(kind, [x])
    names = r"RANDOM_UNIFORM \(3 times\), UNIQUE, WHERE"
    with pytest.raises(FormatError, match=f"3 operators are not supported: {names}. See docs"):
        load(net.bytes(x))


def test_inputs_of_floats_in_a_file_of_bytes_are_rounded_to_its_numbers():
    """Two inputs of other scales and an input of floats stay apart."""
    net = Network()
    a, b = net.input((4,), "int8", scale=0.5, zero=-3), net.input((4,), "uint8", scale=0.25, zero=7)
    c = net.input((4,))
    outputs = [net.op("DEQUANTIZE", [a]), net.op("DEQUANTIZE", [b]), net.op("ABS", [c])]
    model = load(net.bytes(*outputs, a, b), floats=True)
    assert [str(x.dtype) for x in model.inputs] == ["float32"] * 3
    assert [str(x.dtype) for x in load(net.bytes(*outputs, a, b)).inputs] == ["int8", "uint8", "float32"]
    x = np.float32([0.3, -0.8, 100, -100])
    found = evaluate(list(model.outputs), dict.fromkeys(model.inputs, x))
    first, second = [0.5, -1, 65, -62.5], [0.25, -0.75, 62, -1.75]
    for got, want in zip(found, (first, second, np.abs(x), first, second), strict=True):
        np.testing.assert_array_equal(got, np.float32(want), strict=True)


@pytest.mark.parametrize("kind", ["RESHAPE", "GATHER", "TRANSPOSE"])
def test_bytes_that_move_to_a_result_without_a_scale_are_told_by_their_dtypes(kind):
    """One quantised value alone is in one format."""
    net = Network()
    x = net.input((2, 3), "int8", scale=0.5, zero=3)
    y = net.op(kind, [x, net.constant(np.array([1, 0], "i4"))], "int8", **({"axis": 0} if kind == "GATHER" else {}))
    match = "shape" if kind == "RESHAPE" else "result 't2' is uint8, but the file declares int8"
    with pytest.raises(FormatError, match=f"in {kind} 0: .*{match}"):
        load(net.bytes(y))


def test_a_large_constant_of_a_file_is_read_where_it_lies_and_signed_bytes_are_a_copy(tmp_path):
    net, count, how = Network(), HASHED_NBYTES + 16, {"scale": 0.5, "zero": 1}
    values, signed = np.arange(count, dtype="f4"), np.arange(count).astype("i1")
    y = net.op("ADD", [net.input((count,)), net.constant(values)])
    whole = [net.input((count,), "int8", **how), net.constant(signed, **how)]
    z = net.op("CONCATENATION", whole, {"dtype": "int8", **how}, axis=0)
    (tmp_path / "net.tflite").write_bytes(net.bytes(y, z))
    model = load(tmp_path / "net.tflite")
    arrays = [v.op.array for v in post_order(list(model.outputs)) if isinstance(v.op, ConstOp) and v.size == count]
    assert {a.dtype.name: mapping_of(a) is not None for a in arrays} == {"float32": True, "uint8": False}
    found = evaluate(list(model.outputs), dict(zip(model.inputs, (values, signed[::-1].copy()))))
    np.testing.assert_array_equal(found[0], values + values)
    np.testing.assert_array_equal(found[1], np.concatenate([signed[::-1], signed]))
