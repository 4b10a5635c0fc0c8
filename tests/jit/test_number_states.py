"""Python numbers as states of loops and results of branches have the dtypes of the same loops in NumPy."""

from collections import namedtuple

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from tests.support.tolerance import assert_near

XS = np.array([1, 2, 3, 0, 2, 1], "f4")
NUMBERS = (True, 0, 2, 0.5, 1j)
Pair = namedtuple("Pair", "first second")
Whole = namedtuple("Whole", "pair table rest")


def scan(step, state, length):
    return lambda xs: cg.scan(lambda s, x: (step(s, x), None), state, xs[:length])[0]


def fori(step, state, length):
    return lambda xs: cg.fori(0, length, lambda i, s: step(s, xs[i]), state)


def while_loop(step, state, length):
    def run(xs):
        return cg.while_loop(lambda s: s[0] < length, lambda s: (s[0] + 1, step(s[1], xs[s[0]])), (0, state))[1]

    return run


def in_python(step, state, xs):
    for x in xs:
        state = step(state, x)
    return state


def assert_equal_with_dtype(got, want):
    assert np.asarray(got).dtype == np.asarray(want).dtype
    assert_near(got, want, "float32 formulas")


LOOPS = (scan, fori, while_loop)
STEPS = {
    "an array's dtype": lambda s, x: s + x,
    "a wider number": lambda s, x: s + 0.5,
    "numbers only": lambda s, x: s * 2,
    "an array of the first round": lambda s, x: x * s,
    "a dtype and a number": lambda s, x: np.where(x > 1, s + x, s * 2.0),
}


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "complex64"])
@pytest.mark.parametrize("length", [1, 3, 6])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_state_has_the_dtype_that_it_has_in_numpys_loop(step, length, dtype):
    xs = XS.astype(dtype)
    numbers = NUMBERS[1:4] if dtype == "complex64" else NUMBERS[:4]
    for number, loop in zip(numbers, (*LOOPS, LOOPS[length % 3])):
        if dtype == "int32" and type(number) is float and step is STEPS["an array of the first round"]:
            continue
        want = in_python(step, number, xs[:length])
        assert_equal_with_dtype(cg.jit(loop(step, number, length))(xs), want)
        of_argument = cg.jit(lambda xs, number: loop(step, number, length)(xs))  # noqa: B023
        assert_equal_with_dtype(of_argument(xs, number), want)


@pytest.mark.parametrize("loop", LOOPS)
def test_states_that_follow_one_another_settle_one_after_the_other(loop):
    """Each build of the loop finds the dtype of one more state."""

    def step(s, x):
        return s[1].first, Pair(s[1].second, s[2]["c"]), {"c": s[2]["c"] + x}

    state = (0, Pair(0, True), {"c": 1})
    got = cg.jit(loop(step, state, 6))(XS)
    want = in_python(step, state, XS)
    assert_equal_with_dtype(got[0], want[0])
    assert_equal_with_dtype(got[1].second, want[1].second)
    assert_equal_with_dtype(got[2]["c"], want[2]["c"])


@pytest.mark.parametrize("length", [3, 6])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_state_has_its_structure_in_every_round_and_after_the_loop(loop, length):
    """Short loops are built round by round."""
    kinds = []

    def step(s, x):
        kinds.append((type(s), *map(type, s)))
        one, other, third = s
        return Whole(Pair(one.second, one.first + x), {"b": other["a"], "a": other["b"] + 1}, (third[0] * 1.5,))

    state = Whole(Pair(0, 1), {"a": 2, "b": 0}, (1,))
    got, want = cg.jit(loop(step, state, length))(XS), in_python(step, state, XS[:length])
    assert set(kinds) == {(Whole, Pair, dict, tuple)} == {(type(got), *map(type, got))}
    for a, b in zip((*got[0], *got[1].values(), *got[2]), (*want[0], *(want[1][k] for k in got[1]), *want[2])):
        assert_equal_with_dtype(a, b)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_number_that_stays_one_promotes_as_one_inside_and_after_the_loop(loop):
    dtypes = []

    def step(s, x):
        dtypes.append((s * x).dtype)
        return s + 1

    result = cg.jit(lambda xs: loop(step, 0, 6)(xs) * xs)(XS)
    assert set(dtypes) == {np.dtype("float32")} and result.dtype == "float32"
    np.testing.assert_array_equal(result, 6 * XS)


def test_a_state_that_is_a_number_promotes_as_one_in_the_condition():
    dtypes = []

    def goes_on(s):
        dtypes.append(((s["n"] * XS).dtype, (s["n"] + s["share"]).dtype, (s["total"] * XS).dtype))
        return s["n"] < 3

    def step(s):
        return {"n": s["n"] + 1, "share": s["share"] * 0.5, "total": s["total"] + 1}

    state = {"n": 0, "share": 0.5, "total": np.float64(1)}
    got = cg.jit(lambda xs: cg.while_loop(goes_on, step, state)["total"] + xs[0])(XS)
    assert got == 5 and set(dtypes) == {(np.dtype("float32"), np.dtype("float64"), np.dtype("float64"))}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_number_that_a_round_returns_for_an_array_has_its_dtype(loop):
    got = cg.jit(loop(lambda s, x: 2, np.float32(1), 6))(XS)
    assert got == 2 and got.dtype == "float32"
    with pytest.raises(ShapeError, match="int32.* before a round and .*float64.* after it"):
        cg.jit(loop(lambda s, x: 0.5, np.int32(1), 6))(XS)
    with pytest.raises(ShapeError, match="before a round"):
        cg.jit(loop(lambda s, x: np.stack([x, x]), 0, 6))(XS)


@pytest.mark.parametrize(("one", "two", "dtype"), [
    (lambda x: 0, lambda x: x.sum(), "float32"), (lambda x: x.sum(), lambda x: 0.0, "float32"),
    (lambda x: 1, lambda x: 0.5, "float64"), (lambda x: 0.5, lambda x: True, "float64"),
    (lambda x: True, lambda x: 2, "int64"), (lambda x: True, lambda x: x[0] + 0, "float32"),
])  # fmt: skip
def test_branches_have_the_kind_of_both(one, two, dtype):
    for sign, want in ((1, one(XS)), (-1, two(XS))):
        result = cg.jit(lambda x, sign: cg.cond(sign > 0, one, two, x))(XS, sign)
        assert result == want and result.dtype == dtype


def test_numbers_of_both_branches_promote_as_numbers_afterwards():
    for sign in (1, -1):
        result = cg.jit(lambda x, s: x * cg.cond(s > 0, lambda: {"n": [2, 0.5]}, lambda: {"n": [3, 1.5]})["n"][0])(
            XS, sign
        )
        assert result.dtype == "float32"
        np.testing.assert_array_equal(result, XS * (2 if sign > 0 else 3))


def test_loops_without_a_function_or_a_state_are_refused_as_outside():
    for call in (
        lambda: cg.scan(init=0, xs=XS),
        lambda: cg.scan(lambda s, x: (s, x), 0, XS, 6, 7),
        lambda: cg.scan(lambda s, x: (s, x), 0, XS, f=None),
        lambda: cg.while_loop(lambda s: s < 3, lambda s: s + 1),
    ):
        with pytest.raises(TypeError):
            call()
        with pytest.raises(TypeError):
            cg.jit(lambda x: call() + x)(XS)  # noqa: B023


OTHERS = {  # results of one branch beside (1, {"a": 2}): refused, whatever they hold
    "fewer": lambda: (1,), "more": lambda: (1, {"a": 2}, 3), "another key": lambda: (1, {"b": 2}),
    "more keys": lambda: (1, {"a": 2, "b": 3}), "none for a number": lambda: (1, {"a": None}),
    "a number for a dict": lambda: (1, 2.5), "a pair for a number": lambda: ((1, 2), {"a": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_branches_of_other_structures_are_refused_in_either_order(name):
    for one, two in ((OTHERS[name], lambda: (1, {"a": 2})), (lambda: (1, {"a": 2}), OTHERS[name])):
        with pytest.raises(ShapeError, match="cond: one function returns .* the other"):
            cg.jit(lambda s: cg.cond(s > 0, one, two))(1.0)  # noqa: B023


def test_a_list_beside_a_tuple_and_a_dict_in_another_order_are_the_same_structure():
    for sign in (1, -1):
        got = cg.jit(lambda s: cg.cond(s > 0, lambda: (1, {"a": 2, "b": 0.5}), lambda: [3, {"b": 1.5, "a": 4}]))(sign)
        assert (got[0], dict(got[1])) == ((1, {"a": 2, "b": 0.5}) if sign > 0 else (3, {"a": 4, "b": 1.5}))


@pytest.mark.parametrize("loop", LOOPS)
def test_an_array_of_a_narrower_dtype_is_not_converted_to_that_of_the_state(loop):
    """NumPy's loop would end with float32."""
    for state, after in ((np.float64(1), lambda x: x), (np.int64(1), lambda x: x.astype("int32"))):
        with pytest.raises(ShapeError, match="before a round"):
            cg.jit(loop(lambda s, x: after(x), state, 6))(XS)  # noqa: B023
