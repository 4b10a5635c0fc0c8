"""Functions whose results are cut to lengths of the run: cuts by axis, bounds, conditions, what they refuse."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import InputError
from cgraph.formats.trimmed_function import TrimmedFunction
from cgraph.function import compile
from cgraph.ops.leaf import Var
from cgraph.running.string_codes import StringCodes
from cgraph.running.text_features import TextFeature, TextInput
from cgraph.running.trimming_runner import Case, Trims

TABLE = np.arange(12, dtype="f4").reshape(3, 4)


def trimmed(cuts=({0: 2, 1: 3}, {}), texts=("n is not even",), engine="reference"):
    """Results a = x and b = 2x, the lengths n and m, and the condition that n is even."""
    x, n, m = Var((3, 4), "float32", "x"), Var((), "int64", "n"), Var((), "int64", "m")
    outputs = {
        "a": x * 1.5 - x * 0.5,
        "b": 2 * x,
        "length0": cg.maximum(n, -9),
        "length1": cg.maximum(m, -9),
        "even": n % 2 == 0,
    }
    cases = [[Case(None, i, cut)] for i, cut in enumerate(cuts)]
    return TrimmedFunction.of(compile(outputs, [x, n, m], engine=engine), Trims(cases, texts))


@pytest.mark.parametrize(("n", "m"), [(0, 0), (2, 1), (2, 4), (0, 3)])
def test_each_axis_has_its_own_length(n, m):
    function = trimmed()
    a, b = results = function(TABLE, n, m)
    assert results.names == ("a", "b") == function.names and len(results) == 2
    np.testing.assert_array_equal(a, TABLE[:n, :m])
    np.testing.assert_array_equal(b, 2 * TABLE)
    np.testing.assert_array_equal(trimmed(({1: 3}, {0: 2}))(TABLE, n, m)[0], TABLE[:, :m])
    np.testing.assert_array_equal(trimmed(({1: 3}, {0: 2}))(TABLE, n, m)["b"], 2 * TABLE[:n])


@pytest.mark.parametrize(("n", "m", "axis", "count"), [(-2, 1, 0, -2), (4, 1, 0, 4), (2, 5, 1, 5), (2, -1, 1, -1)])
def test_a_length_beyond_the_largest_one_is_refused(n, m, axis, count):
    most = TABLE.shape[axis]
    with pytest.raises(InputError, match=f"{count} elements along axis {axis} of a result whose maximum is {most}"):
        trimmed()(TABLE, n, m)
    with pytest.raises(InputError, match=f"{count} elements along axis {axis} of a result whose maximum is {most}"):
        trimmed(({axis: 2 + axis}, {}))(TABLE, n, m)


def test_a_condition_is_told_before_a_length():
    with pytest.raises(InputError, match="^n is not even$"):
        trimmed()(TABLE, 5, 1)
    assert len(trimmed(texts=())(TABLE, 1, 1)[0]) == 1


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize(("n", "m", "says"), [(1, 2, "n"), (2, 1, "m"), (2, 2, "both"), (1, 1, "n"), (2, 4, None)])
def test_of_several_conditions_the_first_that_fails_is_told(n, m, says, engine):
    x, rows, columns = Var((3, 4), "float32", "x"), Var((), "int64", "n"), Var((), "int64", "m")
    outputs = {"y": x * 2, "n": rows % 2 == 0, "m": columns % 2 == 0, "both": rows + columns > 4}
    trims = Trims(([Case(None, 0, {})],), ("n is wrong", "m is wrong", "both is wrong"))
    function = TrimmedFunction.of(compile(outputs, [x, rows, columns], engine=engine), trims)
    if says is None:
        np.testing.assert_array_equal(function(TABLE, n, m)[0], 2 * TABLE)
    else:
        with pytest.raises(InputError, match=f"^{says} is wrong$"):
            function(TABLE, n, m)


def test_results_are_the_models_and_not_what_the_program_computes_beside_them():
    function = trimmed()
    assert [str(x) for x in function.results] == ["float32[3,4]"] * 2
    assert repr(function).startswith(
        "<TrimmedFunction (x float32[3,4], n int64[], m int64[]) -> float32[3,4], float32[3,4]"
    )
    cases = [[Case(4, 0, {}), Case(None, 2, {})]]  # an output that is one array or another
    assert [str(x) for x in TrimmedFunction.of(function, Trims(cases, ())).results] == ["int64[]"]


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_each_run_returns_the_first_array_whose_condition_holds(engine):
    """Conditions change from run to run, and each array has other lengths; the last one has no condition."""
    x, n, m = Var((3, 4), "float32", "x"), Var((), "int64", "n"), Var((), "int64", "m")
    outputs = {"same": x + 0, "twice": 2 * x, "less": -x, "few": n < 2, "fewer": m < 2, "length": cg.maximum(n, 1)}
    cases = [[Case(3, 0, {0: 5}), Case(4, 1, {}), Case(None, 2, {1: 5})], [Case(4, 2, {}), Case(None, 0, {})]]
    function = TrimmedFunction.of(compile(outputs, [x, n, m], engine=engine), Trims(cases, ()))
    for rows, columns in ((1, 3), (3, 1), (1, 1), (3, 3), (1, 3), (2, 2), (3, 0)):
        first, second = function(TABLE, np.array(rows), np.array(columns))
        want = TABLE[:rows] if rows < 2 else 2 * TABLE if columns < 2 else -TABLE[:, :rows]
        np.testing.assert_array_equal(first, want)
        np.testing.assert_array_equal(second, -TABLE if columns < 2 else TABLE)


def test_buffers_and_single_results_are_refused():
    function = trimmed()
    with pytest.raises(InputError, match="out= is not supported for results of dynamic length"):
        function(TABLE, 2, 1, out=[np.empty((3, 4), "f4")] * 2)
    with pytest.raises(InputError, match="run_each is not supported for results of dynamic length"):
        function.run_each([TABLE, 2, 1], lambda i, value: None)


def test_the_fast_path_of_a_call_trims_too():
    function = trimmed(engine="cpu")
    n, m = np.array(2), np.array(3)
    for _ in range(2):
        np.testing.assert_array_equal(function(TABLE, n, m)["a"], TABLE[:2, :3])
    assert function.run_directly((TABLE, n, m)) is not None
    with pytest.raises(InputError, match="^n is not even$"):
        function(TABLE, np.array(1), m)


def test_strings_that_the_model_lacks_have_one_number_in_all_inputs_of_a_call():
    """Also where both come back as strings."""
    x, y = Var((3,), "int64", "x"), Var((2,), "int64", "y")
    outputs = {"x_out": x + 0, "y_out": y + 0, "same": cg.equal(x[:2], y), "sum": cg.sum(x)}
    codes = StringCodes({"red": 0, "green": 1}, frozenset([x, y]), frozenset([0, 1]))
    cases = [[Case(None, i, {})] for i in range(4)]
    function = TrimmedFunction.of(compile(outputs, [x, y], engine="reference"), Trims(cases, (), codes))
    for _ in range(2):  # nothing is remembered
        found = function(np.array(["blue", "red", "grey"], object), np.array(["grey", "red"], object))
        assert found["x_out"].tolist() == ["blue", "red", "grey"] and found["y_out"].tolist() == ["grey", "red"]
        assert found["same"].tolist() == [False, True] and found["sum"] == 2 + 0 + 3
        assert function(np.array(["grey"] * 3, object), np.array(["grey", "pink"], object))["sum"] == 6


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("words", [["a", "b"], ["b", "zebra"], ["b", "b"]])
def test_strings_of_a_call_take_the_fast_path(words, place):
    """Whatever the place of their input among the others."""
    x, n, m = cg.Var((2,), "int64", name="words"), cg.Var((2,), name="n"), cg.Var((2,), name="m")
    inputs = [n, m]
    inputs.insert(place, x)
    function = cg.compile([x[::-1], cg.astype(x, "float32") + n * m], inputs)
    codes = StringCodes({"a": 0, "b": 1}, frozenset([x]), frozenset([0]))
    trimmed = TrimmedFunction.of(function, Trims([[Case(None, 0, {})], [Case(None, 1, {})]], (), codes))
    array, numbers = np.array(words, object), np.ones(2, "float32")
    arrays, lists = [numbers, numbers], [[1, 1], [1, 1]]
    arrays.insert(place, array)
    lists.insert(place, words)
    assert trimmed.fits(arrays)
    for got in (trimmed.run_directly(tuple(arrays)), trimmed(*arrays), trimmed(*lists)):
        assert got[0].tolist() == words[::-1]
        np.testing.assert_array_equal(got[1], [{"a": 1, "b": 2, "zebra": 3}[word] for word in words])


def test_arrays_that_are_not_strings_leave_the_fast_path():
    x = cg.Var((2,), "int64", name="words")
    codes = StringCodes({"a": 0}, frozenset([x]), frozenset())
    function = TrimmedFunction.of(cg.compile(x + 1, x), Trims([[Case(None, 0, {})]], (), codes))
    for wrong in (np.array(["a", "a"]), np.array(["a"] * 3, object), np.array(["a"] * 4, object)[::2], ["a", "a"]):
        assert not function.fits((wrong,))
    with pytest.raises(InputError, match="words holds 3 of int, not a string"):
        function(np.array(["a", 3], object))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_arrays_leaves_the_fast_path(count):
    x, n = cg.Var((2,), "int64", name="words"), cg.Var((2,), name="n")
    codes = StringCodes({"a": 0}, frozenset([x]), frozenset())
    program = cg.compile(cg.astype(x, "float32") + n, [x, n])
    function = TrimmedFunction.of(program, Trims([[Case(None, 0, {})]], (), codes))
    right = np.array(["a", "b"], object), np.ones(2, "f4")
    for _ in range(2):
        assert function(*right).tolist() == [1, 2] and function.run_directly(right) is not None
    arrays = (*right, right[1])[:count]
    assert function.fits(right) and not function.fits(arrays) and function.run_directly(arrays) is None
    with pytest.raises(InputError, match="missing|got 3"):
        function(*arrays)


def test_an_input_of_texts_has_the_shape_of_its_strings_not_of_what_a_run_reads():
    """Three strings are read as codes in lower case, then in their own: six integers."""
    x = cg.Var((6,), "int64", name="texts")
    text = TextInput((3,), True, (TextFeature(np.arange(3), "LOWER"),))
    codes = StringCodes({"a": 0, "A": 1, "b": 2}, frozenset([x]), frozenset(), {x: text})
    function = TrimmedFunction.of(cg.compile([x * 10], x), Trims([[Case(None, 0, {})]], (), codes))
    array = np.array(["A", "b", "a"], object)
    assert function.fits((array,)) and not function.fits((np.array(["A"] * 6, object),))
    for (got,) in (function.run_directly((array,)), function(array), function(["A", "b", "a"])):
        assert got.tolist() == [10, 20, 0, 0, 20, 0]
    assert function.run_directly((np.array(["A"] * 6, object),)) is None
    with pytest.raises(InputError, match=r"texts has shape \[6\], not \[3\]"):
        function(["A"] * 6)
