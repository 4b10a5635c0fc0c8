"""A model of a file: names of its results, state between runs, results of dynamic length, conditions."""

from dataclasses import replace

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError, InputError
from cgraph.formats.model import Alternative, Model
from cgraph.formats.trimmed_function import TrimmedFunction
from cgraph.ops.leaf import Var
from cgraph.running.string_codes import StringCodes

X = np.array([1, 2, 3], "f4")


def summing():
    """sum = x + total; shown = 2 * sum; other = x - total."""
    x, total = Var((3,), "float32", "x"), Var((3,), "float32", "total")
    both = x + total
    return Model((x, total), (both, both * 2, x - total), ("sum", "shown", "other"))


def test_names_are_distinct_also_from_inputs_and_values():
    x = Var((3,), "float32", "y_1")
    model = Model((x,), (x + 1, x + 2, x + 3), ("y", "y", "y"), {"y_2": x})
    assert model.names == ("y", "y_3", "y_4")
    results = model.compile(engine="reference")(X)
    np.testing.assert_array_equal(results["y_3"], X + 2)
    for names in (("y",), ("y",) * 4):
        with pytest.raises(FormatError, match=f"{len(names)} names for 3 outputs"):
            Model((x,), model.outputs, names)


def test_a_state_goes_from_a_result_to_an_input_and_is_not_returned():
    model = summing()
    kept = model.with_state({"total": "sum"})
    assert [x.name for x in kept.inputs] == ["x"] and kept.names == ("shown", "other")
    assert len(model.inputs) == 2 and model.names == ("sum", "shown", "other") and not model.updates
    step = kept.compile(engine="reference")
    for times in (1, 2, 3):
        shown, other = step(X)
        np.testing.assert_array_equal(shown, 2 * times * X)
        np.testing.assert_array_equal(other, X - (times - 1) * X)


def test_a_state_that_has_a_value_keeps_it():
    model = summing()
    model.inputs[1].assign(np.full(3, 10, "f4"))
    np.testing.assert_array_equal(model.with_state({"total": "sum"}).compile(engine="reference")(X)[0], 2 * (X + 10))


def test_updates_of_the_file_stay_beside_a_state():
    x, a, b = (Var((3,), "float32", name) for name in "xab")
    a.assign(X)
    model = Model((x, b), (x + b, x * a), ("y", "z"), updates={a: x + a}).with_state({"b": "y"})
    assert set(model.updates) == {a, b}
    step = model.compile(engine="reference")
    np.testing.assert_array_equal(step(X)[0], X * X)
    np.testing.assert_array_equal(step(X)[0], X * 2 * X)
    np.testing.assert_array_equal(b.value, 2 * X)


@pytest.mark.parametrize(
    ("state", "match"),
    [
        ({"none": "sum"}, "state: there is no 'none'. Use one of x, total"),
        ({"total": "none"}, "state: there is no 'none'. Use one of sum, shown, other, half, long"),
        ({"total": "half"}, "state: total .* cannot hold half .*: shape and dtype must be equal"),
        ({"total": "long"}, "state: total .* cannot hold long"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(state, match):
    model = summing()
    x = model.inputs[0]
    more = (*model.outputs, x.astype("float16"), cg.concat([x, x]))
    with pytest.raises(FormatError, match=match):
        Model(model.inputs, more, (*model.names, "half", "long")).with_state(state)


def open_model(condition=True):
    """The first `n` rows of x, the first `n` rows and `m` columns of y, and all of z."""
    x, y = Var((4,), "float32", "x"), Var((4, 3), "float32", "y")
    n, m = Var((), "int64", "n"), Var((), "int64", "m")
    checks = {n < 4: "n must be less than 4", m > 0: "m must be positive"} if condition else {}
    counts = {0: {0: n}, 1: {0: n, 1: m}}
    return Model((x, y, n, m), (x * 2, y * 2, x + 1), ("a", "b", "c"), counts=counts, checks=checks)


ROWS, TABLE = np.arange(4, dtype="f4"), np.arange(12, dtype="f4").reshape(4, 3)


def test_results_have_their_lengths_and_the_lengths_are_not_returned():
    function = open_model().compile(engine="reference")
    for n, m in ((0, 1), (2, 3), (3, 1)):
        a, b, c = results = function(ROWS, TABLE, n, m)
        assert results.names == ("a", "b", "c")
        np.testing.assert_array_equal(a, 2 * ROWS[:n])
        np.testing.assert_array_equal(b, 2 * TABLE[:n, :m])
        np.testing.assert_array_equal(c, ROWS + 1)


@pytest.mark.parametrize(("n", "m", "match"), [(4, 1, "n must be less than 4"), (2, 0, "m must be positive")])
def test_a_condition_that_does_not_hold_is_told_by_its_text(n, m, match):
    with pytest.raises(InputError, match=match):
        open_model().compile(engine="reference")(ROWS, TABLE, n, m)


def test_a_model_is_open_by_its_lengths_or_its_conditions():
    x = Var((3,), "float32", "x")
    assert not summing().is_open and open_model().is_open and open_model(condition=False).is_open
    checked = Model((x,), (x + 1,), ("y",), checks={cg.sum(x) > 0: "the sum must be positive"})
    assert checked.is_open
    function = checked.compile(engine="reference")
    assert isinstance(function, TrimmedFunction) and not isinstance(summing().compile(), TrimmedFunction)
    np.testing.assert_array_equal(function(X)[0], X + 1)
    with pytest.raises(InputError, match="the sum must be positive"):
        function(-X)
    assert checked.with_state({}).names == ("y",)


def with_count(engine):
    """Rows up to n, a count of the calls, and the condition that n is less than 4."""
    x, n, count = Var((3, 4), "float32", "x"), Var((), "int64", "n"), Var((), "int64", "count")
    model = Model(
        (x, n, count), (x * 2, count + 1, x + 1), ("rows", "next", "more"), counts={0: {0: n + 0}, 2: {1: n + 1}},
        checks={n != 2: "n is not 2"},
    )  # fmt: skip
    return model.with_state({"count": "next"}).compile(engine=engine)


SQUARE = TABLE.reshape(3, 4)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_a_model_of_dynamic_lengths_has_state(engine):
    function = with_count(engine)
    assert function.names == ("rows", "more")
    for n, calls in ((1, 1), (3, 2), (0, 3)):
        rows, more = function(SQUARE, n)
        np.testing.assert_array_equal(rows, 2 * SQUARE[:n])
        np.testing.assert_array_equal(more, (SQUARE + 1)[:, : n + 1])
        assert function.state["count"].value == calls
    for n, match in ((2, "n is not 2"), (4, "4 elements along axis 0"), (-1, "-1 elements along axis 0")):
        with pytest.raises(InputError, match=match):
            function(SQUARE, n)
        assert function.state["count"].value == 3, "a call that fails changes no state"


def test_an_array_that_is_not_returned_does_not_limit_state():
    x, n, total = Var((3,), "float32", "x"), Var((), "int64", "n"), Var((), "int64", "total")
    choices = {0: (Alternative(n > 0, x * 2, {0: n + 0}),)}
    model = Model((x, n, total), (x + 1, total + n), ("y", "sum"), counts={0: {0: n + 4}}, choices=choices)
    function = model.with_state({"total": "sum"}).compile(engine="reference")
    for value, total in ((2, 2), (-2, 0), (3, 3)):
        assert len(function(X, value)[0]) == (value if value > 0 else value + 4)
        assert function.state["total"].value == total
    with pytest.raises(InputError, match="4 elements"):
        function(X, 0)
    assert function.state["total"].value == 3


def test_what_is_known_of_results_moves_with_them_when_one_before_becomes_state():
    x, n, total = Var((3,), "float32", "x"), Var((), "int64", "n"), Var((), "int64", "total")
    model = Model(
        (x, n, total), (total + n, (x > 1).astype("int64"), x + 1, x * 3), ("sum", "words", "y", "z"),
        choices={2: (Alternative(n > 0, x * 2, {}),)}, counts={3: {0: n + 2}},
        strings=StringCodes({"few": 0, "many": 1}, frozenset(), frozenset([1])),
    )  # fmt: skip
    words, y, z = model.with_state({"total": "sum"}).compile(engine="reference")(X, 0)
    assert words.tolist() == ["few", "many", "many"] and y.tolist() == [2, 3, 4] and z.tolist() == [3, 6]
    words, y, z = model.with_state({"total": "sum"}).compile(engine="reference")(X, 1)
    assert words.tolist() == ["few", "many", "many"] and y.tolist() == [2, 4, 6] and z.tolist() == [3, 6, 9]


def test_a_value_of_dynamic_length_cannot_be_state():
    x, n = Var((3,), "float32", "x"), Var((), "int64", "n")
    model = Model((x, n), (x + 1, n + 1), ("y", "z"), counts={0: {0: n}})
    with pytest.raises(FormatError, match="state: the length or the strings of y are known only at run time"):
        model.with_state({"x": "y"})
    words = Model((x, n), (x, n + 1), ("y", "z"), strings=StringCodes({"a": 0}, frozenset([n]), frozenset([1])))
    with pytest.raises(FormatError, match="the strings of z"):
        words.with_state({"n": "z"})


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises((FormatError, TypeError, ValueError), match="thread"):
        summing().compile(thread=1)


def test_two_states_that_read_each_other_change_at_once():
    a, b = (Var((3,), "float32", name) for name in "ab")
    a.assign(X)
    model = Model((a, b), (b * 2, a + b, a - b), ("next_a", "next_b", "gap"))
    step = model.with_state({"b": "next_b", "a": "next_a"}).compile(engine="reference")
    x, y = X, np.zeros(3, "f4")
    for _ in range(3):
        np.testing.assert_array_equal(step()[0], x - y)
        x, y = y * 2, x + y
    np.testing.assert_array_equal(a.value, x)
    np.testing.assert_array_equal(b.value, y)


def choosing():
    """Two results, each of which is one of three arrays by the sign of a number; one of them has a dynamic length."""
    x, n, m, last = (*(Var((3,), "float32", "x"),), *(Var((), "int64", name) for name in ("n", "m", "last")))

    def choices(k, a):
        return (Alternative(k > 0, x * a, {0: k + 0}), Alternative(k < 0, x.astype("float64") - a, {}))

    outputs = (x + 1, x + 2, last + n + m)
    model = Model((x, n, m, last), outputs, ("a", "b", "sum"), counts={1: {0: m + 2}})
    return replace(model, choices={0: choices(n, 10), 1: choices(m, 20)})


def test_each_result_has_its_own_choices():
    function = choosing().compile(engine="reference")
    for n in (-1, 0, 1, 3):
        for m in (-2, 0, 2):
            a, b, total = function(X, n, m, 5)
            for k, found, own, factor in ((n, a, X + 1, 10), (m, b, (X + 2)[: m + 2], 20)):
                want = own if k == 0 else X[:k] * factor if k > 0 else X.astype("f8") - factor
                np.testing.assert_array_equal(found, want, strict=True)
            assert total == 5 + n + m


def test_lengths_of_each_of_several_results_and_choices_limit_state():
    """A run that fails in one of them changes nothing."""
    function = choosing().with_state({"last": "sum"}).compile(engine="reference")
    total = 0
    for n, m in ((1, 2), (3, 0), (-5, -5), (4, 0), (0, 4), (2, 1), (4, 4), (0, 0)):
        if max(n, m) > 3:
            with pytest.raises(InputError, match="4 elements along axis 0"):
                function(X, n, m)
        else:
            function(X, n, m)
            total += n + m
        assert function.state["last"].value == total


@pytest.mark.parametrize(("n", "m"), [(0, 0), (3, 4), (4, 2), (2, 5), (-1, 2), (2, -1)])
def test_lengths_of_every_axis_limit_state(n, m):
    x, a, b, count = Var((3, 4), "float32", "x"), *(Var((), "int64", name) for name in "abc")
    model = Model((x, a, b, count), (x * 2, count + 1), ("y", "next"), counts={0: {0: a + 0, 1: b + 0}})
    function = model.with_state({"c": "next"}).compile(engine="reference")
    if 0 <= n <= 3 and 0 <= m <= 4:
        np.testing.assert_array_equal(function(SQUARE, n, m)[0], 2 * SQUARE[:n, :m])
        assert function.state["c"].value == 1
        return
    with pytest.raises(InputError, match="elements along axis"):
        function(SQUARE, n, m)
    assert function.state["c"].value == 0


def test_strings_and_choices_cannot_be_state():
    """Of the input or of the result, whichever of several it is."""
    a, b = Var((), "int64", "a"), Var((), "int64", "b")
    codes = StringCodes({"x": 0}, frozenset([a]), frozenset([1]))
    model = Model((a, b), (a + 1, b + 1, b + 2), ("y", "z", "w"), strings=codes)
    for state, source in (({"a": "y"}, "y"), ({"b": "z"}, "z"), ({"a": "z"}, "z"), ({"b": "w", "a": "y"}, "y")):
        with pytest.raises(FormatError, match=f"the length or the strings of {source} are known only at run time"):
            model.with_state(state)
    assert [x.name for x in model.with_state({"b": "w"}).inputs] == ["a"]
    with pytest.raises(FormatError, match="state: the length or the strings of sum are known"):
        other = choosing()
        replace(other, choices={2: other.choices[0]}).with_state({"last": "sum"})


def test_extra_outputs_are_computed_once():
    """Lengths and conditions that several results share; names of results come first."""
    x, n = Var((3,), "float32", "x"), Var((), "int64", "n")
    length, condition = n + 1, n > 1
    counts = {0: {0: length}, 1: {0: length}}
    choices = {2: (Alternative(condition, x, {0: length}),), 3: (Alternative(condition, x * 2, {}),)}
    model = Model((x, n), (x + 1, x + 2, x + 3, x + 4), tuple("abcd"), counts=counts, choices=choices)
    assert model.nodes == [*model.outputs, length, condition, x, choices[3][0].node]
    for k in (0, 1, 2):
        found = model.compile(engine="reference")(X, k)
        want = [X[: k + 1] + 1, X[: k + 1] + 2, *([X[: k + 1], X * 2] if k > 1 else [X + 3, X + 4])]
        for got, y in zip(found, want, strict=True):
            np.testing.assert_array_equal(got, y)
