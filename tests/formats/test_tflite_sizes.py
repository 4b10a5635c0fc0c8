"""TFLite files whose sizes are open: they vary from call to call, or are given when the file is loaded."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.cli import main
from cgraph.errors import FormatError, InputError, ShapeError
from cgraph.formats.tflite import load
from cgraph.function import Function
from cgraph.sizes import SizedFunction
from tests.support.tflite_cases import initialised
from tests.support.tflite_models import Network, ints


def means(net, x):
    return net.op("MEAN", [x, net.constant(np.array([1], "int32"))], keepdims=True)


def written(tmp_path, signature, build=means, shape=(1, 1, 3)):
    net = Network()
    x = net.input(shape)
    net.tensors[x][7] = ints(*signature)
    path = tmp_path / "net.tflite"
    path.write_bytes(net.bytes(build(net, x)))
    return path


def rows(*shape):
    return np.random.default_rng(1).integers(-9, 9, shape).astype("f4")


def test_open_sizes_vary_from_call_to_call(tmp_path):
    function = cg.load(written(tmp_path, (1, -1, 3)))
    assert isinstance(function, SizedFunction) and function.sizes == ("t0.1",)
    for length in (4, 1, 8):
        x = rows(1, length, 3)
        np.testing.assert_array_equal(function(x)["t2"], x.mean(1, keepdims=True))


def test_the_first_axis_has_the_size_of_the_file(tmp_path):
    """Unless it is asked for: files with a batch of any size are Functions."""
    path = written(tmp_path, (-1, 4, 3), shape=(1, 4, 3))
    assert isinstance(cg.load(path), Function)
    both = cg.load(written(tmp_path, (-1, -1, 3)))
    assert both.inputs[0].shape == (1, "t0.1", 3)
    with pytest.raises(InputError):
        both(rows(2, 4, 3))


def test_the_only_axis_of_an_input_varies(tmp_path):
    function = cg.load(written(tmp_path, (-1,), lambda net, x: net.op("ABS", [x]), shape=(1,)))
    for length in (3, 7):
        np.testing.assert_array_equal(function(rows(length))[0], np.abs(rows(length)))


@pytest.mark.parametrize("shapes", [{"t0": ("n", "m", 3)}, {"t0.0": "n"}, {"t0": ["n", 4, 3]}])
def test_sizes_with_names_vary(tmp_path, shapes):
    function = cg.load(written(tmp_path, (-1, -1, 3)), shapes=shapes)
    for count in (2, 5):
        x = rows(count, 4, 3)
        np.testing.assert_array_equal(function(x)[0], x.mean(1, keepdims=True))


@pytest.mark.parametrize("shapes", [{"t0": (2, 4, 3)}, {"t0.0": 2, "t0.1": 4}])
def test_given_sizes_make_a_function_of_them(tmp_path, shapes):
    path = written(tmp_path, (-1, -1, 3))
    function, x = cg.load(path, shapes=shapes), rows(2, 4, 3)
    assert isinstance(function, Function)
    np.testing.assert_array_equal(function(x)[0], x.mean(1, keepdims=True))
    model = load(path, shapes={"t0": (2, 4, 3)})
    np.testing.assert_array_equal(model.compile()(x)[0], x.mean(1, keepdims=True))


def test_sizes_of_a_file_without_open_ones_may_be_given_too(tmp_path):
    path = written(tmp_path, (), shape=(1, 4, 3))
    assert isinstance(cg.load(path), Function)
    x = rows(1, 6, 3)
    np.testing.assert_array_equal(cg.load(path, shapes={"t0": (1, 6, 3)})(x)[0], x.mean(1, keepdims=True))


def test_the_command_line_takes_sizes_from_a_flag_or_from_the_input(tmp_path, capsys):
    path, x = written(tmp_path, (1, -1, 3)), rows(1, 5, 3)
    np.save(tmp_path / "x.npy", x)
    run = ["run", str(path), "--save", str(tmp_path / "y.npz")]
    for words in (["--input", str(tmp_path / "x.npy")], ["--shape", "t0.1=5", "--input", str(tmp_path / "x.npy")]):
        assert main([*run, *words]) == 0
        with np.load(tmp_path / "y.npz") as found:
            np.testing.assert_array_equal(found["t2"], x.mean(1, keepdims=True))
    assert main(["plan", str(path)]) == 2
    assert "sizes of inputs are unknown; give --shape t0.1=1" in capsys.readouterr().err


@pytest.mark.parametrize(("shapes", "match"), [
    ({"x": 2}, "shapes: 'x' is not an input or open axis. Use t0, t0.0, t0.1"),
    ({"t0.2": 2}, "shapes: 't0.2' is not an input or open axis"),
    ({"t0": (2, 3)}, r"shapes: \(2, 3\) is not a shape of 3 axes, as 't0' has"),
    ({"t0": 2}, "shapes: 2 is not a shape of 3 axes, as 't0' has"),
])  # fmt: skip
def test_other_names_and_shapes_are_refused(tmp_path, shapes, match):
    with pytest.raises(FormatError, match=match):
        cg.load(written(tmp_path, (-1, -1, 3)), shapes=shapes)


@pytest.mark.parametrize("shape", [(1, -4, 3), (1, 1.5, 3)])
def test_sizes_that_are_not_lengths_are_refused(tmp_path, shape):
    with pytest.raises(ShapeError):
        cg.load(written(tmp_path, (-1, -1, 3)), shapes={"t0": shape})


def test_a_model_is_not_read_with_the_shape_of_another_input(tmp_path):
    with pytest.raises(FormatError, match="shapes: 'x' is not an input or open axis. Use t0"):
        load(written(tmp_path, (1, 1, 3)), shapes={"x": (1, 1, 3)})


def test_operators_that_are_not_supported_are_named_at_once(tmp_path):
    path = written(tmp_path, (1, -1, 3), lambda net, x: net.op("MULTINOMIAL", [x, x]))
    with pytest.raises(FormatError, match="MULTINOMIAL"):
        cg.load(path)


def test_sizes_of_a_file_with_state_are_fixed(tmp_path):
    """Each size would have its state apart."""

    def summed(net, x):
        net.act("CALL_ONCE", [], graph=net.subgraph(lambda inner: initialised(inner, np.zeros((1, 1, 3)))))
        handle = net.handle("sum")
        before = net.op("READ_VARIABLE", [handle], {"shape": (1, 1, 3), "dtype": "float32"})
        net.act("ASSIGN_VARIABLE", [handle, net.op("ADD", [before, means(net, x)])])
        return before

    path = written(tmp_path, (1, -1, 3), summed)
    with pytest.raises(FormatError, match="the file has state, so its sizes cannot vary. Give shapes="):
        cg.load(path)(rows(1, 4, 3))
    function, x = cg.load(path, shapes={"t0.1": 4}), rows(1, 4, 3)
    function(x)
    np.testing.assert_array_equal(function(x)[0], x.mean(1, keepdims=True))


def test_outputs_have_the_names_of_a_function_of_one_size(tmp_path):
    """A file may return a value twice, and an input."""
    net = Network()
    x = net.input((1, 1, 3))
    net.tensors[x][7] = ints(1, -1, 3)
    y = net.op("ABS", [x])
    path = tmp_path / "net.tflite"
    path.write_bytes(net.bytes(y, x, y, x))
    f, one = cg.load(path), cg.load(path, shapes={"t0": (1, 4, 3)})
    assert f.names == one.names and len(set(f.names)) == 4
    value = rows(1, 4, 3)
    for name, want in zip(f.names, (np.abs(value), value) * 2, strict=True):
        np.testing.assert_array_equal(f(value)[name], want)
        np.testing.assert_array_equal(one(value)[name], want)
        np.testing.assert_array_equal(f.run([name], {"t0": value})[0], want)


def two_inputs(tmp_path, *signatures):
    """x [n, t, 3] and y [n, u] with open sizes: means of x along t, sums of y along u, in this order."""
    net = Network()
    x, y = net.input((1, 1, 3)), net.input((1, 1))
    for tensor, signature in zip((x, y), signatures, strict=True):
        net.tensors[tensor][7] = ints(*signature)
    axis = net.constant(np.array([1], "int32"))
    path = tmp_path / "net.tflite"
    path.write_bytes(net.bytes(net.op("MEAN", [x, axis]), net.op("SUM", [y, axis])))
    return path


@pytest.mark.parametrize("shapes", [
    {}, {"t0": (2, "t", 3), "t1": (2, "u")}, {"t0.0": "n", "t1.0": "n"}, {"t1": (2, "u"), "t0.0": 2},
    {"t0.0": "n", "t1": ("n", 4)}, {"t0": (2, 5, 3), "t1.0": 2}, {"t1": (2, 4), "t0": (2, "t", 3)},
], ids=str)  # fmt: skip
def test_sizes_of_each_of_two_inputs_vary_or_are_given(tmp_path, shapes):
    function = cg.load(two_inputs(tmp_path, (-1, -1, 3), (-1, -1)), shapes=shapes)
    count = 1 if not shapes else 2
    assert isinstance(function, SizedFunction)
    x, y = rows(count, 5, 3), rows(count, 4)
    for means, sums in (function(x, y), function(t1=y, t0=x)):
        np.testing.assert_array_equal(means, x.mean(1), strict=True)
        np.testing.assert_array_equal(sums, y.sum(1), strict=True)


def test_shapes_of_two_inputs_go_by_their_names(tmp_path):
    path = two_inputs(tmp_path, (-1, -1, 3), (-1, -1))
    shapes = {"t1": (2, 4), "t0": (7, 5, 3)}
    for function in (cg.load(path, shapes=shapes), load(path, shapes=shapes).compile()):
        assert [x.shape for x in function.inputs] == [(7, 5, 3), (2, 4)]
        means, sums = function(rows(7, 5, 3), rows(2, 4))
        np.testing.assert_array_equal(means, rows(7, 5, 3).mean(1))
        np.testing.assert_array_equal(sums, rows(2, 4).sum(1))


@pytest.mark.parametrize(("shapes", "match"), [
    ({"t0": (1, 2, 3), "x": (1,)}, "'x' is not an input or open axis. Use t0, t1, t0.0, t0.1, t1.1"),
    ({"t0": (1, 2, 3), "t1": (1, 2, 3)}, r"\(1, 2, 3\) is not a shape of 2 axes, as 't1' has"),
    ({"t1": (1, 2), "t0": (1, 2)}, r"\(1, 2\) is not a shape of 3 axes, as 't0' has"),
    ({"t1.0": 2}, "'t1.0' is not an input or open axis"),
])  # fmt: skip
def test_each_of_several_shapes_is_checked(tmp_path, shapes, match):
    with pytest.raises(FormatError, match=match):
        cg.load(two_inputs(tmp_path, (-1, -1, 3), (1, -1)), shapes=shapes)


@pytest.mark.parametrize("signature", [(-1,), (-1, 3), (-1, -1), (3, -1)])
def test_the_first_of_several_axes_alone_has_the_size_of_the_file(tmp_path, signature):
    shape = tuple(5 if n < 0 else n for n in signature)
    path = written(tmp_path, signature, lambda net, x: net.op("ABS", [x]), shape)
    varying = [i for i, n in enumerate(signature) if n < 0 and (i > 0 or len(signature) == 1)]
    function = cg.load(path)
    assert isinstance(function, SizedFunction if varying else Function)
    want = tuple(f"t0.{i}" if i in varying else n for i, n in enumerate(shape))
    assert function.inputs[0].shape == want
    given = cg.load(path, shapes={f"t0.{i}": 2 for i, n in enumerate(signature) if n < 0})
    assert given.inputs[0].shape == tuple(2 if n < 0 else n for n in signature)
