"""while_loop, fori and cond: values, gradients, engines, files, endless loops, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph import DTypeError, GraphError, NoGradientError, ShapeError
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.ops.conditional import Conditional
from cgraph.ops.loop import Body
from cgraph.ops.shape import items
from cgraph.ops.while_loop import WhileLoop
from tests.autodiff.differences import check_first, check_second
from tests.support.graphs import draw_values, graphs
from tests.support.interrupts import interrupt_after
from tests.support.tolerance import assert_close

ENGINES = ["reference", CpuEngine(threads=1, poison=True), CpuEngine(threads=2), "cuda-sim"]


def draw(*shape):
    return np.random.default_rng(len(shape)).normal(0, 0.5, shape)


def steps_to_one(n):
    """The steps of Collatz's rule until 1."""

    def after(s):
        n, count = s
        return cg.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), count + 1

    return cg.while_loop(lambda s: s[0] != 1, after, (n, np.int64(0)))[1]


def collatz(n):
    count = 0
    while n != 1:
        n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
    return count


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_ends_when_its_condition_is_false(engine):
    n = cg.Var((), "int64")
    function = cg.compile(steps_to_one(n), n, engine=engine)
    assert [int(function(k)) for k in (1, 2, 3, 7, 27)] == [collatz(k) for k in (1, 2, 3, 7, 27)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("start", [np.nan, np.inf, -np.inf, 0.0])
def test_conditions_of_values_that_are_not_finite_are_those_of_numpy(engine, start):
    x = cg.Var((), "float64")
    last, count = cg.while_loop(lambda s: s[0] * s[0] < 100, lambda s: (s[0] + 3, s[1] + 1), (x, np.int64(0)))
    want, rounds = start, 0
    while want * want < 100:
        want, rounds = want + 3, rounds + 1
    got = cg.compile([last, count], x, engine=engine)(start)
    np.testing.assert_array_equal(got, [want, rounds])


@pytest.mark.parametrize("maximum", [0, 1, 3, 20])
def test_a_maximum_ends_a_loop(maximum):
    x = cg.Var((), "int64")
    last = cg.while_loop(lambda s: s < 10, lambda s: s + 1, x, maximum=maximum)
    assert int(cg.compile(last, x)(0)) == min(maximum, 10) == int(evaluate([last], {x: np.int64(0)})[0])


@settings(max_examples=30)
@given(data=st.data(), drawn=graphs(most_nodes=10), rounds=st.integers(0, 4))
def test_loops_and_choices_over_random_bodies_have_the_bits_of_their_bodies(data, drawn, rounds):
    names = tuple(drawn.leaves)
    after = tuple(data.draw(st.sampled_from([y for y in drawn.nodes if y.spec == x.spec])) for x in names)
    count, name = cg.Var((), "int64", "count"), cg.Var((), "int64", "name")
    test = Body((), (), (count, *names), (), (count < rounds,))
    loop = WhileLoop(test, Body((count, *names), (), (), (count + 1, *after), ()))
    values = draw_values(drawn.leaves)
    one = cg.compile(after, names, passes=False)
    want = values
    for _ in range(rounds):
        want = [np.array(x) for x in one(*want)]
    choice = cg.Var((), bool, "choice")
    branches = Conditional(Body((), (), names, (), after), Body((), (), names, (), names))
    inputs = [cg.Var(x.shape, x.dtype, f"input{i}") for i, x in enumerate(names)]
    outputs = [*items(apply(loop, name, *inputs)), *items(apply(branches, choice, *inputs))]
    function = cg.compile(outputs, [name, choice, *inputs], passes=False, engine=CpuEngine(poison=True))
    for taken in (True, False):
        got = function(np.int64(0), np.bool_(taken), *values)
        expected = [rounds, *want, *(one(*values) if taken else values)]
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)


# -- nesting ----------------------------------------------------------------------------------------------------------


def newton(x):
    return cg.while_loop(lambda y: cg.abs(y * y - x) > 1e-9, lambda y: (y + x / y) / 2, x, maximum=30)


def newton_in_numpy(x):
    y = x
    while abs(y * y - x) > 1e-9:
        y = (y + x / y) / 2
    return y


@pytest.mark.parametrize("engine", ENGINES)
def test_loops_that_end_by_a_condition_run_inside_scans_and_scans_inside_them(engine):
    xs = cg.Var((7,), "float64")

    def row(total, x):
        root = newton(x)
        return total + root, cg.fori(0, cg.astype(x, "int64"), lambda i, y: y + root * cg.astype(i, "float64"), total)

    total, ys = cg.scan(row, np.float64(0), xs)

    def after(s):
        return cg.scan(lambda t, x: (t + x * x, None), s, xs)[0]

    grown = cg.while_loop(lambda s: s < 1000, after, total)
    values, want, total_ = np.arange(1.0, 8.0), [], 0.0
    for x in values:
        root = newton_in_numpy(x)
        want.append(total_ + root * sum(range(int(x))))
        total_ += root
    grown_ = total_
    while grown_ < 1000:
        grown_ += (values**2).sum()
    got = cg.compile([total, ys, grown], xs, engine=engine)(values)
    for a, b in zip(got, [total_, want, grown_], strict=True):
        assert_close(a, np.asarray(b))


def test_states_are_nested_as_the_caller_nests_them():
    start = {"x": np.float64(1), "pair": (np.int64(0), [np.ones(2)])}
    last = cg.while_loop(
        lambda s: s["pair"][0] < 3,
        lambda s: {"pair": [s["pair"][0] + 1, (s["pair"][1][0] * 2,)], "x": s["x"] + 1},
        start,
    )
    x, count, ones = cg.compile([last["x"], last["pair"][0], last["pair"][1][0]])()
    assert (x, count, ones.tolist()) == (4, 3, [8, 8])


@pytest.mark.parametrize("lower, upper", [(0, 0), (3, 1), (2, 4), (-2, 9)])
def test_fori_counts_from_the_lower_bound_to_the_upper_one(lower, upper):
    a, b = cg.Var((), "int64"), cg.Var((), "int64")
    want = sum(i * i for i in range(lower, upper))
    fixed = cg.fori(lower, upper, lambda i, s: s + i * i, np.int64(0))
    drawn = cg.fori(a, b, lambda i, s: s + i * i, np.int64(0))
    assert [int(x) for x in cg.compile([fixed, drawn], [a, b])(lower, upper)] == [want, want]


# -- gradients --------------------------------------------------------------------------------------------------------


def test_gradients_of_bounded_loops_agree_with_differences():
    def powers(x):
        return cg.while_loop(lambda s: cg.sum(s[0]) < 8, lambda s: (s[0] * x, s[1] + cg.sin(s[0])), (x, x), maximum=9)

    check_first(lambda x: cg.sum(cg.concat(list(powers(x)))), [np.array([1.5, 1.2])])
    check_second(lambda x: cg.sum(powers(x)[1]), [np.array([1.5, 1.2])])
    check_first(lambda x, y: cg.sum(cg.fori(0, 6, lambda i, s: cg.sin(s) * y + x, x)), [draw(3), draw(3)])


def test_rounds_after_the_last_one_spoil_no_gradient():
    x = cg.Var((), "float64")
    y = cg.while_loop(lambda s: s > 1, lambda s: cg.sqrt(s - 1), x, maximum=12)
    function = cg.compile([y, cg.gradient(y, x)], x)
    np.testing.assert_array_equal(function(0.5), [0.5, 1])
    np.testing.assert_array_equal(function(2.0), [1, 0.5])


def test_a_loop_without_a_maximum_has_no_gradient_and_says_so():
    x = cg.Var((), "float64")
    with pytest.raises(NoGradientError, match="pass maximum="):
        cg.gradient(cg.while_loop(lambda s: s < 1, lambda s: s + x, x), x)


@pytest.mark.parametrize("choice", [True, False])
def test_the_gradient_of_a_choice_reaches_what_its_functions_read_from_outside(choice):
    def f(x, y):
        return cg.cond(choice, lambda: cg.sum(cg.sin(x) * y), lambda: cg.sum(cg.exp(y)))

    check_first(f, [draw(3), draw(3)])
    check_second(f, [draw(3), draw(3)])


def test_what_the_other_function_computes_from_outside_spoils_no_gradient():
    x = cg.Var((), "float64").assign(0.0)
    y = cg.cond(x > 0, lambda: cg.log(x), lambda: 3 * x)
    np.testing.assert_array_equal(cg.compile([y, cg.gradient(y, x)])(), [0, 3])


# -- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_a_run_computes_one_function_of_a_choice(engine):
    calls = []

    def noted(name):
        return lambda v: calls.append(name) or v

    p, x = cg.Var((), bool), cg.Var(2, "float64")
    y = cg.cond(p, lambda x: cg.delay(noted("f"), x), lambda x: cg.delay(noted("g"), x), x)
    function = cg.compile(y, [p, x], engine=engine)
    calls.clear()
    for choice in (True, False, False):
        function(choice, np.ones(2))
    assert calls == ["f", "g", "g"]


def test_python_functions_inside_a_loop_are_called_in_each_round():
    calls = []
    double = lambda v: calls.append(1) or 2 * v  # noqa: E731
    function = cg.compile(cg.while_loop(lambda s: s < 100, lambda s: cg.delay(double, s), np.float64(1)))
    calls.clear()
    assert function() == 128 and len(calls) == 7


def test_saved_loops_and_choices_have_the_same_bits(tmp_path):
    x, p = cg.Var((), "float64", "x"), cg.Var((), bool, "p")
    function = cg.compile([newton(x), cg.cond(p, cg.sin, cg.cos, x)], [x, p])
    function.save(tmp_path / "saved")
    loaded = cg.load(tmp_path / "saved")
    for args in ((2.0, True), (3.0, False), (0.0, False)):
        assert [float(v) for v in loaded(*args)] == [float(v) for v in function(*args)]


@pytest.mark.parametrize("threads", [2, 3])
def test_any_number_of_threads_gives_the_same_bits(threads):
    w, x = cg.Var((96, 96), "float64"), cg.Var((64, 96), "float64")
    y = cg.while_loop(lambda s: cg.sum(cg.square(s)) > 1, lambda s: cg.tanh(s @ w), x)
    values = [0.02 * np.random.default_rng(0).normal(size=w.shape), np.random.default_rng(1).normal(size=x.shape)]
    alone, team = (cg.compile(y, [w, x], threads=n)(*values) for n in (1, threads))
    np.testing.assert_array_equal(alone, team)


def test_a_loop_that_fails_leaves_vars_alone():
    table, x, seen = cg.Const(np.arange(4)), cg.Var((), "int64"), cg.Var((), "int64", "seen").assign(np.int64(0))
    last = cg.while_loop(lambda s: s != 3, lambda s: cg.take(table, s) + 1, x)
    function = cg.compile(last, x, updates={seen: seen + 1})
    assert function(0) == 3 and seen.value == 1
    with pytest.raises(cg.PositionError, match="take at"):
        function(5)
    assert seen.value == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_an_endless_loop_ends_with_an_interrupt_and_changes_nothing(engine):
    x, w = cg.Var((), "float64", "x"), cg.Var((64,), name="w").assign(np.ones(64, "f4"))
    endless = cg.while_loop(lambda s: s > 0, lambda s: s + 1, x)
    function = cg.compile(endless, x, updates={w: w * 2}, engine=engine)
    assert function(-1.0) == -1 and (w.value == 2).all()
    with pytest.raises(KeyboardInterrupt), interrupt_after(0.05):
        function(1.0)
    assert (w.value == 2).all()
    assert function(-2.0) == -2 and (w.value == 4).all()


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_conditions_and_states_that_do_not_fit_are_refused():
    x = cg.Var(3, "float64")
    with pytest.raises(ShapeError, match="while_loop: the condition .* has 3 elements; reduce it"):
        cg.while_loop(lambda s: s < 1, lambda s: s, x)
    with pytest.raises(ShapeError, match=r"the state is float64\[3\] before a round and float32\[3\] after it"):
        cg.while_loop(lambda s: cg.sum(s) < 1, lambda s: s.astype("float32"), x)
    with pytest.raises(ShapeError, match="return the same structure"):
        cg.while_loop(lambda s: cg.sum(s[0]) < 1, lambda s: s[0], (x,))
    with pytest.raises(GraphError, match="pass the initial state"):
        cg.while_loop(lambda s: True, lambda s: s, ())
    with pytest.raises(GraphError, match="maximum=-1 is negative"):
        cg.while_loop(lambda s: True, lambda s: s, x, maximum=-1)
    with pytest.raises(DTypeError, match="not an integer; convert it"):
        cg.fori(0, cg.sum(x), lambda i, s: s, x)
    with pytest.raises(ShapeError, match="has 3 elements; pass one integer"):
        cg.fori(0, x.astype("int64"), lambda i, s: s, x)
    with pytest.raises(ShapeError, match="fori: the state is"):
        cg.fori(0, 9, lambda i, s: s[1:], x)
    with pytest.raises(GraphError, match="the functions returned no nodes"):
        cg.cond(True, lambda: None, lambda: None)


def bounded(maximum, condition=None):
    """2 s + w while s < 20."""
    s, w = cg.Var((), "float64"), cg.Var((), "float64")
    test = Body((), (), (s, w), (), ((s < 20) if condition is None else condition(s, w),))
    return WhileLoop(test, Body((s,), (), (w,), (s * 2 + w,), ()), maximum)


def test_the_op_ends_at_the_condition_or_the_maximum_and_differentiates_the_rounds_that_ran():
    s, w = cg.Var(np.array(3.0)), cg.Var(np.array(1.0))
    for maximum, last, to_s, to_w in ((0, 3, 1, 0), (2, 15, 4, 3), (3, 31, 8, 7), (9, 31, 8, 7)):
        (y,) = items(apply(bounded(maximum), s, w))
        assert [v.tolist() for v in evaluate([y, *cg.gradient(y, [s, w])])] == [last, to_s, to_w]
    assert bounded(None).meaning(np.array(3.0), np.array(1.0))[0] == 31
    assert bounded(None).can_fail


def test_a_condition_may_read_what_every_round_reads():
    loop = bounded(5, lambda s, w: s < 10 * w)
    assert loop.meaning(np.array(3.0), np.array(1.0))[0] == 15
    assert loop.meaning(np.array(3.0), np.array(2.0))[0] == 38
    assert loop.bodies == (loop.condition, loop.body)
    swapped = loop.with_bodies([loop.body, loop.condition])
    assert (swapped.condition, swapped.body, swapped.maximum) == (loop.body, loop.condition, 5)
    with pytest.raises(ShapeError, match="but the body of while_loop reads"):
        loop.infer(cg.Var((), "float64").spec, cg.Var((2,), "float64").spec)
