"""What operators mean at their edges, against plain loops: uneven windows, blocks, bounds, fields that occur twice."""

from itertools import product

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from cgraph.errors import FormatError, InputError
from cgraph.formats.onnx import load
from tests.support.onnx_models import FLOAT, INT64, model_of
from tests.support.tolerance import assert_close

node = helper.make_node


def starts(n, window, stride, before, behind, dilation, ceil):
    """Where windows begin: none begins behind the axis and the padding before it, as ONNX has it."""
    room = n + before + behind - (window - 1) * dilation - 1
    count = (-(-room // stride) if ceil else room // stride) + 1
    found = [i * stride - before for i in range(count)]
    return found[:-1] if ceil and found[-1] >= n else found


def pooled(kind, x, window, stride, before, behind, dilation, ceil):
    rows = []
    for start in starts(len(x), window, stride, before, behind, dilation, ceil):
        places = [start + i * dilation for i in range(window)]
        seen = x[[p for p in places if 0 <= p < len(x)]]
        rows.append(np.mean(seen) if kind == "AveragePool" else np.sqrt(np.sum(seen * seen)))
    return np.array(rows, "f4")


@pytest.mark.parametrize(("kind", "dilation"), [("LpPool", 1), ("LpPool", 2), ("AveragePool", 2), ("AveragePool", 1)])
@pytest.mark.parametrize("ceil", [0, 1])
def test_windows_begin_where_onnx_says(kind, dilation, ceil):
    x = np.arange(1, 9, dtype="f4")
    for n, stride, before, behind in product((5, 6, 8), (1, 2, 3, 4), (0, 1), (0, 1, 2)):
        window = 3
        expected = pooled(kind, x[:n], window, stride, before, behind, dilation, ceil)
        how = {"strides": [stride], "pads": [before, behind], "dilations": [dilation], "ceil_mode": ceil}
        step = node(kind, ["x"], ["y"], kernel_shape=[window], **how)
        model = load(model_of([step], [("x", FLOAT, (1, 1, n))], opset=22))
        got = model.compile(engine="reference")(x[None, None, :n])[0][0, 0]
        assert got.shape == expected.shape, (n, stride, before, behind)
        assert_close(got, expected, 4)


@pytest.mark.parametrize("kind", ["DequantizeLinear", "QuantizeLinear"])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("zeros", [False, True])
def test_blocks_that_do_not_divide_their_axis_scale_what_is_left(kind, axis, zeros):
    rng, shape, block = np.random.default_rng(0), (5, 7), 3
    place = axis % 2
    count = [n if i != place else -(-n // block) for i, n in enumerate(shape)]
    scale = rng.uniform(0.5, 2, count).astype("f4")
    zero = rng.integers(-5, 5, count).astype("i1") if zeros else np.zeros(count, "i1")
    wide = [np.repeat(v, block, place)[: shape[0], : shape[1]] for v in (scale, zero)]
    x = rng.integers(-50, 50, shape).astype("i1" if kind[0] == "D" else "f4")
    expected = (x - wide[1].astype("f4")) * wide[0] if kind[0] == "D" else np.rint(x / wide[0]) + wide[1]
    constants = {"s": scale} | ({"z": zero} if zeros or kind[0] == "Q" else {})
    step = node(kind, ["x", *constants], ["y"], axis=axis, block_size=block)
    inputs = [("x", TensorProto.INT8 if kind[0] == "D" else FLOAT, shape)]
    got = load(model_of([step], inputs, constants)).compile()(x)[0]
    assert_close(got.astype("f4"), np.clip(expected, -128, 127).astype("f4") if kind[0] == "Q" else expected, 4)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_blocks_are_as_many_as_their_axis_needs(count):
    step = node("DequantizeLinear", ["x", "s"], ["y"], axis=1, block_size=3)
    raw = model_of([step], [("x", TensorProto.INT8, (2, 7))], {"s": np.ones((2, count), "f4")})
    with pytest.raises(FormatError, match="blocks"):
        load(raw)


def with_initializer(proto):
    graph = helper.make_graph(
        [node("Add", ["x", "last"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, (1,))],
        [helper.make_tensor_value_info("y", FLOAT, None)],
    )
    raw = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()
    stored = b"\x3a" + length(len(proto) + 1 + len(length(len(proto)))) + b"\x2a" + length(len(proto)) + proto
    return raw + stored  # protobuf merges both graphs


def length(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


@pytest.mark.parametrize("size", [3, 5000])
def test_of_a_field_that_is_there_twice_the_last_one_counts(size):
    array = np.arange(size, dtype="f4")
    proto = numpy_helper.from_array(array, "first").SerializeToString() + b"\x42\x04last"
    found = load(with_initializer(proto))
    np.testing.assert_array_equal(found.compile()(np.float32([1]))[0], array + 1)


NUMBERS = {
    "int8": (TensorProto.INT8, [-128, -1, 0, 127]),
    "uint8": (TensorProto.UINT8, [0, 1, 128, 255]),
    "int16": (TensorProto.INT16, [-(1 << 15), -1, (1 << 15) - 1]),
    "uint16": (TensorProto.UINT16, [0, (1 << 16) - 1]),
    "int32": (TensorProto.INT32, [-(1 << 31), -1, 0, (1 << 31) - 1]),
    "uint32": (TensorProto.UINT32, [0, 1 << 31, (1 << 32) - 1]),
    "int64": (TensorProto.INT64, [-(1 << 63), -1, 0, (1 << 63) - 1]),
    "uint64": (TensorProto.UINT64, [0, 1 << 63, (1 << 64) - 1]),
    "bool": (TensorProto.BOOL, [0, 1]),
    "float32": (TensorProto.FLOAT, [-1.5, 0.0, 3e38]),
    "float64": (TensorProto.DOUBLE, [-1.5, 0.0, 1e300]),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("times", [1, 3000, 30_000])
@pytest.mark.parametrize("is_node", [False, True])
def test_numbers_of_every_dtype_come_back_however_many_they_are(name, times, is_node):
    number, values = NUMBERS[name]
    expected = np.resize(np.array(values, name), len(values) * times)
    tensor = helper.make_tensor("w", number, expected.shape, expected)
    nodes = [node("Identity", ["w"], ["y"])]
    if is_node:
        nodes.insert(0, node("Constant", [], ["w"], value=tensor))
    info = helper.make_tensor_value_info("y", number, None)
    graph = helper.make_graph(nodes, "g", [], [info], [] if is_node else [tensor])
    raw = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()
    got = load(raw).values["w"].op.array
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


def counted(name, low):
    """How many numbers of an input are above a limit: a length known only at run time."""
    return [
        node("Greater", [name, low], [f"{name}_p"]),
        node("NonZero", [f"{name}_p"], [f"{name}_z"]),
        node("Transpose", [f"{name}_z"], [f"{name}_rows"]),
        node("Cast", [f"{name}_rows"], [f"{name}_f"], to=FLOAT),
    ]


def test_lengths_that_can_never_be_equal_are_refused_when_the_model_is_read():
    nodes = [
        *counted("x", "low"),
        node("Concat", ["x_f", "more"], ["longer"], axis=0),
        node("Add", ["longer", "few"], ["y"]),
    ]
    constants = {"low": np.float32(0), "more": np.zeros((5, 1), "f4"), "few": np.zeros((4, 1), "f4")}
    with pytest.raises(FormatError, match="do not fit"):
        load(model_of(nodes, [("x", FLOAT, (9,))], constants))


def test_lengths_that_may_be_equal_are_checked_by_the_run():
    nodes = [*counted("x", "low"), *counted("v", "low"), node("Add", ["x_f", "v_f"], ["y"])]
    model = load(model_of(nodes, [("x", FLOAT, (4,)), ("v", FLOAT, (4,))], {"low": np.float32(0)}))
    run = model.compile()
    assert run(np.float32([1, 0, 1, 0]), np.float32([0, 1, 1, 0]))[0].tolist() == [[1], [4]]
    with pytest.raises(InputError, match="do not fit"):
        run(np.float32([1, 0, 1, 0]), np.float32([0, 0, 1, 0]))


@pytest.mark.parametrize("asked", ["n", "m"])
def test_a_bound_of_a_value_holds_for_what_is_computed_of_it_whenever_it_is_learnt(asked):
    """`maximum` bounds a value, or what it is computed from, after an operator has looked at both."""
    nodes = [
        node("Add", ["x", "one"], ["n"]),
        node("Mul", ["n", "one"], ["m"]),
        node("Unsqueeze", ["m", "axis"], ["shape"]),
        node("ConstantOfShape", ["shape"], ["y"]),
    ]
    constants = {"one": np.int64(1), "axis": np.array([0])}
    model = load(model_of(nodes, [("x", INT64, ())], constants), maximum={asked: 6})
    run = model.compile()
    assert run(np.int64(4))[0].shape == (5,)
    assert model.outputs[0].shape == (6,)
    with pytest.raises(InputError):
        run(np.int64(9))
