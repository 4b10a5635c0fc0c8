"""Functions of ONNX files in which the values of small inputs determine shapes: one plan for each value."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import cgraph as cg
from cgraph.errors import FormatError, InputError
from cgraph.formats.onnx.valued import MOST_ELEMENTS, Value, ValuedFunction, are_small, constant_of
from cgraph.sizes import MOST_KEPT

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
X = np.arange(24, dtype="f4").reshape(2, 3, 4)
node = helper.make_node


@pytest.fixture
def loaded(tmp_path):
    """A function that writes a file and loads it."""

    def write(nodes, inputs, constants=None, outputs=("y",), **settings):
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info(*x) for x in inputs],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [numpy_helper.from_array(np.asarray(x), name) for name, x in (constants or {}).items()],
        )
        raw = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
        path = tmp_path / "net.onnx"
        path.write_bytes(raw)
        return cg.load(path, **settings)

    return write


def sums(loaded, **settings):
    """Sums over axes that a run gives."""
    return loaded(
        [node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
        [("x", FLOAT, (2, 3, 4)), ("axes", INT64, ("k",))],
        **settings,
    )


def fixed_sums(loaded, **settings):
    """The same of one axis: no size varies."""
    return loaded(
        [node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
        [("x", FLOAT, (2, 3, 4)), ("axes", INT64, (1,))],
        **settings,
    )


def test_each_value_of_an_input_that_determines_shapes_has_its_result(loaded):
    total = sums(loaded)
    for axes in ([0], [1, 2], [-1], [0], [0, 1, 2], [2, 0]):
        (got,) = total(X, np.array(axes))
        np.testing.assert_array_equal(got, X.sum(tuple(axes)))
    assert total.values == ("axes",) and "5 sizes" in repr(total)


def test_arrays_are_given_by_position_by_name_or_in_a_dictionary(loaded):
    total, want = fixed_sums(loaded), X.sum(1)
    for got in (
        total(X, np.array([1])),
        total(X, [1]),
        total(axes=np.array([1], "int32"), x=X),
        total({"axes": [1], "x": X}),
        total.run(None, {"x": X, "axes": np.array([1])}),
        total.run(["y"], {"x": X, "axes": np.array([1])}),
    ):
        np.testing.assert_array_equal(got[0], want)
    out = np.empty(want.shape, "f4")
    (got,) = total(X, [1], out=[out])
    assert got is out
    np.testing.assert_array_equal(out, want)
    assert [x.name for x in total.inputs] == ["x", "axes"] and total.names == ("y",)


def test_a_value_that_was_there_before_is_not_built_again(loaded, monkeypatch):
    total, built = fixed_sums(loaded), []
    build = total._build
    monkeypatch.setattr(total, "_build", lambda sizes, values: built.append(values) or build(sizes, values))
    for axis in (0, 1, 0, 1, 1, 0):
        total(X, [axis])
    assert [values for values in built if values] == [{"axes": [0]}, {"axes": [1]}]


def test_sizes_and_values_vary_together(loaded):
    tiled = loaded([node("Expand", ["x", "shape"], ["y"])], [("x", FLOAT, ("n", 1)), ("shape", INT64, (2,))])
    for n, shape in ((3, [1, 6]), (3, [3, 2]), (2, [2, 6]), (3, [1, 6]), (1, [5, 1])):
        x = np.arange(n, dtype="f4").reshape(n, 1)
        np.testing.assert_array_equal(tiled(x, shape)[0], x * np.ones(shape))
    assert tiled.sizes == ("n",) and tiled.values == ("shape",)


def test_two_inputs_may_determine_shapes(loaded):
    nodes = [node("Range", ["a", "b", "step"], ["r"]), node("Expand", ["r", "shape"], ["y"])]
    table = loaded(nodes, [("a", INT64, ()), ("b", INT64, ()), ("shape", INT64, (2,))], {"step": np.int64(2)})
    for a, b, rows in ((0, 6, 2), (1, 4, 3), (0, 6, 4), (5, 5, 1)):
        row = np.arange(a, b, 2)
        np.testing.assert_array_equal(table(a, b, [rows, 1])[0], np.broadcast_to(row, (rows, len(row))))
    assert set(table.values) == {"a", "b", "shape"}


def test_a_value_that_is_also_computed_with_has_both_meanings(loaded):
    nodes = [
        node("ConstantOfShape", ["n"], ["ones"], value=numpy_helper.from_array(np.ones(1, "i8"))),
        node("Mul", ["ones", "n"], ["y"]),
    ]
    filled = loaded(nodes, [("n", INT64, (1,))])
    for n in (3, 1, 4, 3):
        np.testing.assert_array_equal(filled([n])[0], np.full(n, n))


def test_strings_may_determine_results(loaded):
    nodes = [node("StringNormalizer", ["x"], ["y"], stopwords=["of"], case_change_action="UPPER")]
    names = loaded(nodes, [("x", STRING, ("n",))])
    assert names(np.array(["out", "of", "it"], object))[0].tolist() == ["OUT", "IT"]
    assert names(np.array(["in", "it"], object))[0].tolist() == ["IN", "IT"]


def test_a_large_input_cannot_be_part_of_a_key(loaded):
    where = [("x", FLOAT, (MOST_ELEMENTS + 1,))]
    nodes = [node("Cast", ["x"], ["i"], to=INT64), node("ConstantOfShape", ["i"], ["y"])]
    with pytest.raises(FormatError, match="give maximum={'i': n} or .*constants={'x': value}"):
        loaded(nodes, where)
    shaped = loaded([node("Reshape", ["x", "shape"], ["y"])], [("x", FLOAT, (2,)), ("shape", INT64, ("k",))])
    with pytest.raises(FormatError, match="constants={'shape': value}"):
        shaped(np.ones(2, "f4"), np.ones(MOST_ELEMENTS + 1, "i8"))
    assert shaped.values == ()
    np.testing.assert_array_equal(
        shaped(np.ones(2, "f4"), np.array([2] + [1] * (MOST_ELEMENTS // 32)))[0].reshape(-1), [1, 1]
    )


def test_values_of_another_kind_or_outside_the_axes_are_refused_and_change_nothing(loaded):
    total = fixed_sums(loaded)
    with pytest.raises(InputError, match=r"axes expects int64\[1\], got \[1.5\]"):
        total(X, [1.5])
    with pytest.raises(FormatError, match="axis 7|7 is outside"):
        total(X, [7])
    with pytest.raises(InputError, match="axes has 0 axes, not the 1"):
        total(X, 1)
    np.testing.assert_array_equal(total(X, [1])[0], X.sum(1))


def test_constants_and_a_maximum_leave_nothing_to_learn(loaded):
    assert not isinstance(fixed_sums(loaded, constants={"axes": [1]}), ValuedFunction)
    nodes = [node("Range", ["zero", "n", "one"], ["y"])]
    count = loaded(nodes, [("n", INT64, ())], {"zero": np.int64(0), "one": np.int64(1)}, maximum={"n": 9})
    assert not isinstance(count, ValuedFunction)
    np.testing.assert_array_equal(count(4)[0], range(4))


def test_state_needs_the_values_at_once(loaded):
    with pytest.raises(FormatError, match="constants={'axes': value}"):
        fixed_sums(loaded, state={"x": "y"})


def test_the_most_recent_values_are_kept_and_share_their_memory(loaded):
    shaped = loaded(
        [node("Expand", ["x", "shape"], ["z"]), node("Exp", ["z"], ["y"])], [("x", FLOAT, (1,)), ("shape", INT64, (1,))]
    )
    for n in range(1, 3 * MOST_KEPT):
        np.testing.assert_array_equal(shaped(np.zeros(1, "f4"), [n])[0], np.ones(n))
    assert f"{MOST_KEPT} sizes" in repr(shaped)
    assert shaped.nbytes <= shaped.at(shape=[3 * MOST_KEPT - 1]).nbytes


def test_at_takes_values_by_name_and_returns_a_function_of_the_others(loaded):
    total = fixed_sums(loaded)
    over_rows = total.at(axes=[1])
    assert [x.name for x in over_rows.inputs] == ["x"]
    np.testing.assert_array_equal(over_rows(X)["y"] if isinstance(over_rows(X), dict) else over_rows(X)[0], X.sum(1))
    with pytest.raises(InputError, match="the value of 'axes' determines shapes"):
        total.at()
    with pytest.raises(InputError, match="give axes, not batch"):
        total.at(batch=1)
    shaped = loaded([node("Expand", ["x", "shape"], ["y"])], [("x", FLOAT, ("n", 1)), ("shape", INT64, (2,))])
    np.testing.assert_array_equal(shaped.at(n=2, shape=[2, 6])(np.ones((2, 1), "f4"))[0], np.ones((2, 6)))
    with pytest.raises(InputError, match="give n, shape, not shape"):
        shaped.at(shape=[2, 6])


def test_several_sizes_and_values_keep_their_order(loaded):
    """Two sizes, two values that determine shapes, two arrays that are left."""
    nodes = [
        node("ReduceSum", ["x", "axes"], ["total"], keepdims=1), node("Add", ["total", "bias"], ["sum"]),
        node("Expand", ["sum", "shape"], ["y"]),
    ]  # fmt: skip
    inputs = [
        ("axes", INT64, (1,)), ("x", FLOAT, ("n", "m", 2)), ("shape", INT64, (3,)), ("bias", FLOAT, ("m", 1)),
    ]  # fmt: skip
    cut = loaded(nodes, inputs)
    with pytest.raises(InputError, match="give n, m, not nothing"):
        cut.at()
    for n, m, axis in ((4, 3, 0), (3, 4, 2), (3, 4, 0), (4, 3, -1), (4, 3, 0)):
        x, bias = np.arange(n * m * 2, dtype="f4").reshape(n, m, 2), np.arange(m, dtype="f4")[:, None] * 100
        want = np.broadcast_to(x.sum(axis, keepdims=True) + bias, (n, m, 2))
        np.testing.assert_array_equal(cut([axis], x, [n, m, 2], bias)[0], want)
        fixed = cut.at(m=m, n=n, shape=[n, m, 2], axes=[axis])
        assert [v.name for v in fixed.inputs] == ["x", "bias"]
        np.testing.assert_array_equal(fixed(x, bias)[0], want)
    assert cut.sizes == ("n", "m") and set(cut.values) == {"axes", "shape"}
    with pytest.raises(InputError, match=rf"the value of '{cut.values[0]}' determines shapes. Give it, as in at\("):
        cut.at(n=4, m=3)
    for name in cut.values:
        given = {"axes": [0], "shape": [4, 3, 2]}
        del given[name]
        with pytest.raises(InputError, match=f"the value of '{name}' determines shapes"):
            cut.at(n=4, m=3, **given)
    with pytest.raises(InputError, match=r"give n, m, .*, not n, axes$"):
        cut.at(n=4, axes=[1])


def test_names_that_a_file_does_not_have_are_refused_before_a_call_has_shown_any(loaded):
    with pytest.raises(InputError, match="^give names of inputs, not rows$"):
        fixed_sums(loaded).at(rows=3)


def test_at_takes_no_value_that_determines_no_shape_and_changes_nothing(loaded):
    total = fixed_sums(loaded)
    with pytest.raises(InputError, match="the value of 'x' determines no shape"):
        total.at(axes=[1], x=X)
    with pytest.raises(FormatError, match="constants={'axes': value}"):
        fixed_sums(loaded).at(x=X)
    assert total.values == ("axes",)
    np.testing.assert_array_equal(total(X, [0])[0], X.sum(0))
    np.testing.assert_array_equal(total(X + 1, [0])[0], (X + 1).sum(0))
    assert "2 sizes" in repr(total)


def test_threads_with_different_values_get_their_own_results(loaded):
    total = fixed_sums(loaded)
    axes = [i % 3 for i in range(24)]
    with ThreadPoolExecutor(4) as pool:
        for axis, (got,) in zip(axes, pool.map(lambda axis: total(X, [axis]), axes)):
            np.testing.assert_array_equal(got, X.sum(axis))


def test_values_are_equal_by_name_dtype_shape_and_contents():
    one = Value("a", np.array([1, 2]))
    assert one == Value("a", [1, 2]) and hash(one) == hash(Value("a", [1, 2])) and one != "a"
    others = [("b", [1, 2]), ("a", [1, 3]), ("a", [[1, 2]]), ("a", np.array([1, 2], "i4")), ("a", [1.0, 2.0])]
    assert all(one != Value(*other) for other in others)
    text = Value("a", np.array(["x", "y"], object))
    assert text == Value("a", np.array(["x", "y"], object)) and text != Value("a", np.array(["x", "z"], object))


def test_small_inputs_and_constants():
    shapes = {"a": (3,), "b": ("n", 2), "c": (MOST_ELEMENTS + 1,), "d": ()}
    assert are_small(["a", "b", "d"], shapes)
    assert are_small(["e"], {"e": (MOST_ELEMENTS // 2, 2)}) and not are_small(["e"], {"e": (MOST_ELEMENTS // 2, 3)})
    assert are_small(["e"], {"e": (MOST_ELEMENTS,)}) and not are_small(["a", "c"], shapes)
    assert not are_small([], shapes) and not are_small(["c"], shapes) and not are_small(["a", "x"], shapes)
    assert constant_of(np.array([1, 2])) == [1, 2] and constant_of(3) == 3
    assert constant_of(np.zeros((0, 3))).shape == (0, 3) and constant_of(np.array(["a"], object)).dtype == object


def test_the_largest_input_that_may_be_part_of_a_key(loaded):
    shaped = loaded([node("Reshape", ["x", "shape"], ["y"])], [("x", FLOAT, (2,)), ("shape", INT64, ("k",))])
    shaped_by = np.array([2] + [1] * (MOST_ELEMENTS - 1))
    with pytest.raises(FormatError, match="axes|at most 64"):  # NumPy's arrays have fewer axes
        shaped(np.ones(2, "f4"), shaped_by)
    assert shaped.values == ("shape",)
