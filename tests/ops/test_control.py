"""scan and cond: values, gradients, and what they refuse."""

import numpy as np
import pytest

import cgraph as cg
from cgraph import GraphError, ShapeError
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.errors import DTypeError
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.ops.control import UNROLLED
from cgraph.ops.loop import Body, Loop
from cgraph.ops.physical.rounds import Rounds
from cgraph.ops.shape import items
from cgraph.passes.tidy_loops import tidy_loops
from tests.autodiff.differences import check_first, check_second
from tests.support.ops import work_of
from tests.support.tolerance import assert_close

LENGTHS = (1, UNROLLED, UNROLLED + 1, 12)
rng = np.random.default_rng(0)


def drawn(*shapes, dtype="float64"):
    return [np.random.default_rng(i).normal(0, 0.5, shape).astype(dtype) for i, shape in enumerate(shapes)]


def recurrent(h, xs, w, u):
    """A recurrent layer: the last state and all states."""

    def round_of(h, x):
        after = cg.tanh(h @ w + x @ u)
        return after, cg.sum(after * h, -1)

    last, ys = cg.scan(round_of, h, xs)
    return last, ys


def recurrent_in_numpy(h, xs, w, u):
    ys = []
    for x in xs:
        after = np.tanh(h @ w + x @ u)
        ys.append((after * h).sum(-1))
        h = after
    return h, np.stack(ys)


def joined(parts):
    return cg.concat([cg.ravel(x) for x in parts])


def loops_in(*nodes):
    return [n for n in post_order(nodes) if isinstance(n.op, Loop)]


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("length", LENGTHS)
def test_scan_is_a_loop(length, engine):
    arrays = drawn((2, 3), (length, 2, 4), (3, 3), (4, 3))
    xs = [cg.Var(a.shape, a.dtype) for a in arrays]
    found = recurrent(*xs)
    assert bool(loops_in(*found)) == (length > UNROLLED)
    for passes in (True, False):
        got = cg.compile(found, xs, engine=engine, passes=passes)(*arrays)
        for a, b in zip(got, recurrent_in_numpy(*arrays)):
            assert_close(a, b)


def test_the_length_of_a_loop_changes_neither_nodes_nor_workspace():
    sizes, nodes = [], []
    for length in (10, 200):
        xs = [cg.Var(shape) for shape in ((2, 3), (length, 2, 4), (3, 3), (4, 3))]
        (loop,) = loops_in(recurrent(*xs)[0])
        nodes.append(len(post_order(recurrent(*xs))))
        sizes.append(work_of(loop).nbytes)
    assert nodes[0] == nodes[1]
    assert sizes[0] == sizes[1] > 0


@pytest.mark.parametrize("length", LENGTHS)
def test_gradient_of_scan_agrees_with_differences(length):
    check_first(lambda *xs: joined(recurrent(*xs)), drawn((2, 3), (length, 2, 4), (3, 3), (4, 3)))


@pytest.mark.parametrize("length", [2, 6])
def test_second_gradient_of_scan_agrees_with_differences(length):
    check_second(lambda *xs: joined(recurrent(*xs)), drawn((1, 2), (length, 1, 2), (2, 2), (2, 2)))


@pytest.mark.parametrize("recompute", [False, True])
def test_compiled_gradients_of_scan_equal_reference_gradients(recompute):
    arrays = drawn((2, 3), (9, 2, 4), (3, 3), (4, 3))
    xs = [cg.Var(a.shape, a.dtype) for a in arrays]
    wanted = [*recurrent(*xs), *cg.gradient(cg.sum(cg.sin(joined(recurrent(*xs)))), xs)]
    got = cg.compile(wanted, xs, engine=CpuEngine(poison=True), recompute=recompute)(*arrays)
    for a, b in zip(got, evaluate(wanted, dict(zip(xs, arrays)))):
        assert_close(a, b)


def test_a_training_graph_runs_each_loop_once():
    xs = [cg.Var(shape) for shape in ((2, 3), (9, 2, 4), (3, 3), (4, 3))]
    loss = cg.sum(joined(recurrent(*xs)))
    function = cg.compile([loss, *cg.gradient(loss, xs)], xs)
    assert len([n for n in function.compiled.layout.steps if isinstance(n.op, Rounds)]) == 2


def test_what_nobody_asks_of_a_loop_is_dropped():
    xs = [cg.Var(shape) for shape in ((2, 3), (9, 2, 4), (3, 3), (4, 3))]
    last, _ = recurrent(*xs)
    (to_w,) = cg.gradient(cg.sum(last), [xs[2]])
    once = tidy_loops((to_w,))
    loops = loops_in(*once)
    assert [len(loop.spec.specs) for loop in loops] == [2, 2]  # state and states; its gradient and the total for w
    assert all(a is b for a, b in zip(tidy_loops(once), once))


def test_the_body_of_a_loop_is_fused():
    xs = [cg.Var(shape) for shape in ((2, 3), (9, 2, 4), (3, 3), (4, 3))]
    last, _ = recurrent(*xs)
    (before,), (after,) = loops_in(last), loops_in(*tidy_loops((last,)))
    assert len(after.op.body.order) < len(before.op.body.order)


def test_a_running_total_needs_no_workspace():
    x = cg.Var((9, 4), "float64").assign(rng.normal(size=(9, 4)))
    last, _ = cg.scan(lambda s, row: (s + row, None), np.zeros(4), x)
    (loop,) = loops_in(last)
    assert work_of(loop).nbytes == 0
    assert_close(cg.compile(last)(), x.value.sum(0))


def test_states_may_be_exchanged_passed_on_and_counted():
    def fibonacci(state, _):
        a, b, fixed, count = state
        return (b, a + b, fixed, count + 1), (a, fixed[::-1], count)

    init = (np.int64(0), np.int64(1), np.array([1.5, 2.5]), np.int32(0))
    state, ys = cg.scan(fibonacci, init, length=10)
    a, b, fixed, count, values, turned, counts = cg.compile([*state, *ys])()
    assert (a, b, count) == (55, 89, 10)
    np.testing.assert_array_equal(fixed, [1.5, 2.5])
    np.testing.assert_array_equal(values, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34])
    np.testing.assert_array_equal(turned, np.tile([2.5, 1.5], (10, 1)))
    np.testing.assert_array_equal(counts, np.arange(10))


def test_a_body_may_scan_itself():
    x = cg.Var((6, 7), "float64")

    def rows(total, line):
        within, sums = cg.scan(lambda s, v: (s + v, s), np.float64(0), line)
        return total + within, sums

    value = rng.normal(size=x.shape)
    total, sums = cg.scan(rows, np.float64(0), x)
    got = cg.compile([total, sums], [x])(value)
    assert_close(got[0], value.sum())
    assert_close(got[1], np.cumsum(value, 1) - value)
    check_first(lambda x: cg.scan(rows, np.float64(0), cg.sin(x))[0], [value])


def test_a_body_may_decompose_matrices_and_draw_numbers():
    key = cg.Const(cg.random_key(1))

    def round_of(h, x):
        _, values, _ = cg.svd(x + h)
        return values[0] * 0.1, cg.dropout(values, key, 0.5)

    xs = cg.Var((7, 3, 3), "float64").assign(rng.normal(size=(7, 3, 3)))
    found = cg.scan(round_of, np.float64(0.3), xs)
    for a, b in zip(cg.compile(found)(), evaluate(found)):
        assert_close(a, b)


def test_whole_numbers_in_the_state_carry_no_gradient():
    def f(x):
        def round_of(state, row):
            total, i = state
            return (total + row * cg.astype(i, "float64"), i + 1), total * total

        (total, _), ys = cg.scan(round_of, (np.float64(0), np.int64(1)), x)
        return cg.sum(ys) + total

    check_first(f, drawn((8,)))
    check_second(f, drawn((8,)))


def test_a_state_that_a_round_does_not_read_has_a_gradient_of_zeros():
    x, h = (cg.Var(shape, "float64").assign(rng.normal(size=shape)) for shape in ((6, 2), (2,)))
    last, _ = cg.scan(lambda _, row: (row * 2, None), h, x)
    to_x, to_h = evaluate(cg.gradient(cg.sum(last), [x, h]))
    np.testing.assert_array_equal(to_x, [[0, 0]] * 5 + [[2, 2]])
    np.testing.assert_array_equal(to_h, [0, 0])


@pytest.mark.parametrize("length", [0, 3, 8])
def test_a_scan_without_a_result_or_without_a_state(length):
    x = cg.Var((length, 2), "float64").assign(rng.normal(size=(length, 2)))
    last, nothing = cg.scan(lambda s, row: (s + row, None), np.zeros(2), x)
    none, doubled = cg.scan(lambda s, row: (None, row * 2), None, x)
    assert nothing is None and none is None
    total, twice = cg.compile([last, doubled])()
    assert_close(total, x.value.sum(0))
    np.testing.assert_array_equal(twice, x.value * 2)


def test_sequences_of_different_lengths_are_refused():
    with pytest.raises(ShapeError, match="pass sequences of one length"):
        cg.scan(lambda s, row: (s, None), np.zeros(2), (cg.Var((5, 2)), cg.Var((6, 2))))


def test_a_loop_over_nothing_is_refused():
    with pytest.raises(GraphError, match="pass xs or length="):
        cg.scan(lambda s, row: (s, None), np.zeros(2))


@pytest.mark.parametrize("length", [2, 9])
def test_a_state_that_changes_its_shape_is_refused(length):
    with pytest.raises(ShapeError, match=r"float64\[2\] before a round and float64\[4\] after it"):
        cg.scan(lambda s, row: (cg.concat([s, s]), None), np.zeros(2), length=length)


def test_a_function_that_returns_no_pair_is_refused():
    with pytest.raises(GraphError, match="return a pair"):
        cg.scan(lambda s, row: s, np.zeros(2), length=9)


# -- cond -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", [True, False])
def test_cond_takes_one_of_two_results(choice):
    p, x = cg.Var((), "bool", "p"), cg.Var(3, "float64", "x")
    found = cg.cond(p, lambda x: (cg.sin(x), x), lambda x: (x * x, -x), x)
    value = rng.normal(size=3)
    got = cg.compile(found, [p, x])(np.bool_(choice), value)
    want = (np.sin(value), value) if choice else (value * value, -value)
    for a, b in zip(got, want):
        assert_close(a, b)


@pytest.mark.parametrize("choice", [True, False])
def test_the_gradient_of_cond_is_that_of_the_function_taken(choice):
    check_first(lambda x, y: cg.cond(choice, lambda x, y: x * y, lambda x, y: cg.exp(x) - y, x, y), drawn((3,), (3,)))


def test_what_is_not_taken_spoils_no_gradient():
    x = cg.Var((), "float64").assign(0.0)
    y = cg.cond(x > 0, lambda x: cg.log(x) + cg.sqrt(x), lambda x: 3 * x, x)
    np.testing.assert_array_equal(cg.compile([y, cg.gradient(y, x)])(), [0, 3])


def test_cond_of_several_choices_or_unequal_results_is_refused():
    x = cg.Var(3, "float64")
    with pytest.raises(ShapeError, match="elements; reduce it"):
        cg.cond(x > 0, lambda x: x, lambda x: x, x)
    with pytest.raises(ShapeError, match="one function returns"):
        cg.cond(True, lambda x: x, lambda x: x[1:], x)


def test_the_steps_inside_a_loop_are_planned_checked_and_shown():
    arrays = drawn((2, 3), (9, 2, 4), (3, 3), (4, 3))
    xs = [cg.Var(a.shape, a.dtype) for a in arrays]
    function = cg.compile(recurrent(*xs), xs)
    (inner,) = function.compiled.inner.values()
    assert inner.nbytes == inner.lower_bound > 0 and len(inner.layout.steps) > 1
    names = {node.name for node in inner.layout.steps}
    assert names <= {label.split(" at ")[0] for label in function.program.code.labels}
    assert str(cg.report(inner)) in str(cg.report(function))
    assert "<svg" in cg.function_svg(inner)


def test_a_position_outside_inside_a_loop_names_the_step_and_leaves_vars_alone():
    table, rows, seen = cg.Var((4,)), cg.Var((9,), "int64"), cg.Var((), "int64")
    last, _ = cg.scan(lambda s, i: (s + cg.take(table, i), None), np.float32(0), rows)
    function = cg.compile(last, [table, rows], updates={seen: seen + 1})
    seen.assign(np.int64(0))
    with pytest.raises(cg.PositionError, match="take at test_control.py"):
        function(np.ones(4, "f4"), np.full(9, 7))
    assert seen.value == 0
    assert function(np.ones(4, "f4"), np.full(9, 3)) == 9 and seen.value == 1


def test_a_loop_over_an_impure_body_runs_each_time():
    calls = []
    x = cg.Var((9, 2), "float64")

    def noted(v):
        calls.append(1)
        return v

    last, _ = cg.scan(lambda s, row: (s + cg.delay(noted, row), None), np.zeros(2), x)
    function = cg.compile(last, [])
    x.assign(np.ones((9, 2)))
    assert function().tolist() == function().tolist() == [9, 9]
    assert len(calls) == 18


FAILING = {
    "take": (lambda s, i: s + cg.take(cg.Const(np.ones(4, "f4")), i), None),
    "a scan in a scan": (
        lambda s, i: cg.scan(lambda t, j: (t + cg.take(cg.Const(np.ones(4, "f4")), i + j), None), s, np.zeros(9, int))[
            0
        ],
        None,
    ),
}


@pytest.mark.parametrize("bad", [None, 0, 8])
@pytest.mark.parametrize("name", FAILING)
def test_a_loop_that_fails_leaves_every_var_beside_it_as_it_was(name, bad):
    """An update that does not need the loop could be written in place before it."""
    rows, w, v = cg.Var((9,), "int64", "rows"), cg.Var((64,), name="w"), cg.Var((64,), name="v")
    body = FAILING[name][0]
    last, _ = cg.scan(lambda s, i: (body(s, i), None), np.float32(0), rows)
    total = cg.Var((), name="total").assign(0.0)
    function = cg.compile([], [rows], updates={w: w * 2, v: v + w, total: last})  # the loop comes last
    w.assign(np.ones(64, "f4")), v.assign(np.full(64, 3, "f4"))
    positions = np.full(9, 3)
    if bad is not None:
        positions[bad] = 7
        with pytest.raises(cg.PositionError):
            function(positions)
        assert (w.value == 1).all() and (v.value == 3).all()
        positions[bad] = 0
    function(positions)
    assert (w.value == 2).all() and (v.value == 4).all()


@pytest.mark.parametrize("length", [0, 3, 8, 40])
def test_scans_of_one_body_that_differ_in_one_field_stay_apart(length):
    """Forwards and backwards, and a round more or less: none is taken for another."""
    x = cg.Var((length, 2), "float64", "x").assign(np.arange(2.0 * length).reshape(length, 2))
    state, row = cg.Var((2,), "float64", "state"), cg.Var((2,), "float64", "row")
    body = Body((state,), (row,), (), (2 * state + row,), (state - row,))
    start = np.ones(2)
    loops = [
        apply(Loop(body, length, backward, states), cg.Const(start), x) for backward in (0, 1) for states in (0, 1)
    ]
    outputs = [part for loop in loops for part in items(loop)]
    for got, want in zip(cg.compile(outputs)(), evaluate(outputs)):
        np.testing.assert_array_equal(got, want)
    alone = Body((state,), (), (), (2 * state + 1,), ())
    rounds = [items(apply(Loop(alone, length + i), cg.Const(start)))[0] for i in range(3)]
    for i, got in enumerate(cg.compile(rounds)()):
        np.testing.assert_array_equal(got, 2.0 ** (length + i + 1) - 1)


def test_results_of_one_function_alone_are_named_in_the_refusal():
    x = cg.Var((2,), name="x")
    for f, g, words in (
        (lambda: (), lambda: (x,), r"one function returns none, the other float32\[2\]"),
        (lambda: (x,), lambda: (), r"one function returns float32\[2\], the other none"),
        (lambda: (x, x), lambda: (x,), r"returns float32\[2\], float32\[2\], the other float32\[2\]"),
    ):
        with pytest.raises(ShapeError, match=words):
            cg.cond(True, f, g)
    with pytest.raises(ShapeError, match=r"the state is float32\[2\] before a round and none after it"):
        cg.while_loop(lambda s: cg.sum(s[0]) > 0, lambda s: (), (x,))
    with pytest.raises(GraphError, match="returned no nodes"):
        cg.cond(True, tuple, tuple)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_bounds_of_any_integer_dtype_give_an_index_of_int64(dtype, shape):
    low, high, x = cg.Var(shape, dtype, "low"), cg.Var(shape, dtype, "high"), cg.Var((), "float64", "x")
    seen = []

    def body(i, s):
        seen.append((i.dtype, i.shape))
        return s * 2 + i

    node = cg.fori(low, high, body, x)
    assert set(seen) == {(np.dtype("int64"), ())}
    got = cg.compile(node, [low, high, x])(np.full(shape, 2, dtype), np.full(shape, 5, dtype), 1.0)
    assert got == ((1 * 2 + 2) * 2 + 3) * 2 + 4
    for bad, error in ((cg.Var((), "float32"), DTypeError), (cg.Var((2,), "int64"), ShapeError)):
        with pytest.raises(error, match="fori: the bound"):
            cg.fori(0, bad, body, x)
