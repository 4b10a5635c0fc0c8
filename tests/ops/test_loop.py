"""Loops: specs, order of rounds, gradients by hand; in programs one emission of the body, threads, files, parts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.cpu.ring import jump_spans
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.ops.loop import Body, Loop, align_floats, gradient_body, select_floats
from cgraph.ops.shape import items
from cgraph.storage.weight_file import StreamedWeights
from tests.support.graphs import draw_values, graphs
from tests.support.tolerance import assert_close

ENGINES = [CpuEngine(threads=1), CpuEngine(threads=2, poison=True), "cuda-sim"]


def draw(*shape):
    return np.random.default_rng(len(shape)).normal(0, 0.5, shape)


def recurrent(length, width=4):
    """A recurrent layer, its gradients, and their Vars."""
    xs = [cg.Var(shape, "float64") for shape in ((2, width), (length, 2, width), (width, width))]
    h, rows, w = xs
    last, ys = cg.scan(lambda h, x: (cg.tanh(h @ w + x), cg.sum(h, -1)), h, rows)
    loss = cg.sum(cg.square(last)) + cg.sum(ys)
    return [last, ys, *cg.gradient(loss, xs)], xs


def code_of(length):
    outputs, xs = recurrent(length)
    return cg.compile(outputs, xs).program.code


def test_the_size_of_a_program_does_not_depend_on_the_rounds():
    sizes = {(len(code.table), len(code.args), len(code.kernels)) for code in map(code_of, (10, 500, 4000))}
    assert len(sizes) == 1 and sizes.pop()[0] < 60


def test_the_text_of_a_program_names_its_loops():
    text = code_of(500).text()
    assert text.count("begin the rounds") == text.count("repeat [") == 2
    assert "repeat [0, 500," in text


@settings(max_examples=40)
@given(data=st.data(), drawn=graphs(most_nodes=10), length=st.integers(0, 7), backward=st.booleans())
def test_a_loop_over_a_random_body_has_the_bits_of_its_rounds_one_by_one(data, drawn, length, backward):
    roles = [data.draw(st.sampled_from(("carry", "xs", "shared"))) for _ in drawn.leaves]
    carry, xs, shared = (
        tuple(x for x, r in zip(drawn.leaves, roles) if r == role) for role in ("carry", "xs", "shared")
    )
    after = tuple(data.draw(st.sampled_from([y for y in drawn.nodes if y.spec == x.spec])) for x in carry)
    body = Body(carry, xs, shared, after, tuple(drawn.outputs))
    loop = Loop(body, length, backward, data.draw(st.booleans()))
    value = dict(zip(drawn.leaves, draw_values(drawn.leaves)))
    operands = [
        *(value[x] for x in carry),
        *(np.array([value[x] + i for i in range(length)], x.dtype).reshape(length, *x.shape) for x in xs),
        *(value[x] for x in shared),
    ]
    inputs = [cg.Var(v.shape, v.dtype, f"input{i}") for i, v in enumerate(operands)]
    outputs = items(apply(loop, *inputs))
    want = rounds_one_by_one(loop, operands)
    for engine in ENGINES[:2]:
        for got, expected in zip(
            cg.compile(outputs, inputs, engine=engine, passes=False)(*operands), want, strict=True
        ):
            np.testing.assert_array_equal(got, expected)


def rounds_one_by_one(loop, operands):
    """The results of a loop, each round of which is a run of a function of its own."""
    body, (state, xs, shared) = loop.body, loop.parts(operands)
    one = cg.compile(body.results, body.inputs, passes=False)
    stacked = [np.empty((loop.length, *y.shape), y.dtype) for y in (*body.ys, *(body.carry if loop.states else ()))]
    for i in loop.rounds:
        results = [np.array(x) for x in one(*state, *(x[i] for x in xs), *shared)]
        for out, y in zip(stacked, (*results[len(state) :], *state)):
            out[i] = y
        state = results[: len(state)]
    return [*state, *stacked]


@pytest.mark.parametrize("engine", ENGINES)
def test_loops_and_their_gradients_repeat_on_every_engine(engine):
    outputs, xs = recurrent(9)
    arrays = [draw(*x.shape) for x in xs]
    function, want = cg.compile(outputs, xs, engine=engine), evaluate(outputs, dict(zip(xs, arrays)))
    for _ in range(4):
        for got, expected in zip(function(*arrays), want, strict=True):
            assert_close(got, expected)


@pytest.mark.parametrize("threads", [2, 3])
def test_any_number_of_threads_gives_a_loop_the_same_bits(threads):
    outputs, xs = recurrent(20, 96)
    arrays = [draw(*x.shape) for x in xs]
    alone, team = (cg.compile(outputs, xs, threads=n)(*arrays) for n in (1, threads))
    for a, b in zip(alone, team, strict=True):
        np.testing.assert_array_equal(a, b)


def nested(x):
    """Sums of rows, each by an inner loop that runs backwards over the state."""

    def rows(total, line):
        within, sums = cg.scan(lambda s, v: (s + v * total, s), cg.sum(line), line)
        return total + 0.1 * within, sums

    return cg.scan(rows, np.float64(1), x)


@pytest.mark.parametrize("engine", ENGINES)
def test_loops_in_loops_repeat_on_every_engine(engine):
    x = cg.Var((6, 7), "float64")
    outputs = [*nested(x), cg.gradient(cg.sum(nested(x)[1]), x)]
    function, value = cg.compile(outputs, x, engine=engine), draw(6, 7)
    for _ in range(2):
        for got, expected in zip(function(value), evaluate(outputs, {x: value}), strict=True):
            assert_close(got, expected)


def test_a_saved_loop_has_the_same_bits(tmp_path):
    x = cg.Var((6, 7), "float64", "x")
    function, value = cg.compile(nested(x), x), draw(6, 7)
    function.save(tmp_path / "saved")
    loaded = cg.load(tmp_path / "saved")
    for got, expected in zip(loaded(value), function(value), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert loaded.program.code.jumps() == function.program.code.jumps()


def test_a_loop_after_one_that_failed_begins_anew():
    table, rows = cg.Const(np.arange(4.0)), cg.Var((9,), "int64")
    last, _ = cg.scan(lambda s, i: (s + cg.take(table, i), None), np.float64(0), rows)
    function, positions = cg.compile(last, rows), np.arange(9) % 4
    want = function(positions)
    with pytest.raises(cg.PositionError):
        function(np.where(np.arange(9) == 5, 7, positions))
    assert function(positions) == want


def test_only_the_loops_that_a_changed_var_affects_run_again():
    a, b = (cg.Var((8, 3), "float64", name).assign(draw(8, 3)) for name in "ab")
    outputs = [cg.scan(lambda s, row: (s + row * 2, None), np.zeros(3), x)[0] for x in (a, b)]
    function = cg.compile(outputs, changing=[b])
    function()
    b.assign(np.ones((8, 3)))
    for got, expected in zip(function(), evaluate(outputs), strict=True):
        assert_close(got, expected)


def test_weights_that_a_loop_reads_stay_in_the_ring_for_all_rounds(tmp_path):
    rng = np.random.default_rng(0)
    x = y = cg.Var((2, 256), name="x")
    for _ in range(4):
        w = cg.Const(rng.normal(0, 0.05, (256, 256)).astype("f4")) * 2  # folded, so that the loop has it as an operand
        y, _ = cg.scan(lambda s, _, w=w: (cg.tanh(s @ w), None), y, length=7)
    function = cg.compile(y, x, weights=StreamedWeights(str(tmp_path / "w"), 1 << 19))
    code, value = function.program.code, rng.normal(size=x.shape).astype("f4")
    assert [(p.first, p.last) for p in code.ring.pieces] == jump_spans(code)
    for _ in range(3):
        np.testing.assert_array_equal(function(value), cg.compile(y, x)(value))


# -- the op by itself -------------------------------------------------------------------------------------------------


def counted(length=3, **fields):
    """carry' = 2 carry + x * w, and y = carry - x, with an integer beside them that counts; and the operands."""
    c, n, x, w = (
        cg.Var((), "float64", "c"),
        cg.Var((), "int64", "n"),
        cg.Var((), "float64", "x"),
        cg.Var((), "float64", "w"),
    )
    body = Body((c, n), (x,), (w,), (c * 2 + x * w, n + 1), (c - x,))
    rows = np.array([1.0, 10, 100])[:length]
    return Loop(body, length, **fields), [cg.Var(np.array(v)) for v in (5.0, 7, rows, 3.0)]


def test_rounds_run_forwards_or_backwards_and_states_come_before_each():
    loop, operands = counted(states=True)
    last, n, ys, states, counts = evaluate(items(apply(loop, *operands)))
    assert (last, n) == (40 + 12 + 60 + 300, 10)
    assert (ys.tolist(), states.tolist(), counts.tolist()) == ([4, 3, -44], [5, 13, 56], [7, 8, 9])
    loop, operands = counted(backward=True)
    last, n, ys = evaluate(items(apply(loop, *operands)))
    assert (last, ys.tolist(), [*loop.rounds]) == (40 + 1200 + 60 + 3, [650 - 1, 310 - 10, -95], [2, 1, 0])


def test_a_loop_of_no_rounds_returns_its_state_and_no_rows():
    loop, operands = counted(0)
    last, n, ys = evaluate(items(apply(loop, *operands)))
    assert (last, n, ys.shape) == (5, 7, (0,))


def test_gradients_by_hand_of_every_operand():
    loop, (c, n, xs, w) = counted()
    last, _, ys = items(apply(loop, c, n, xs, w))
    to_c, to_xs, to_w = evaluate(cg.gradient(last, [c, xs, w]))
    assert (to_c, to_xs.tolist(), to_w) == (8, [12, 6, 3], 4 + 20 + 100)
    to_c, to_xs, to_w = evaluate(cg.gradient(cg.sum(ys * np.array([1.0, 10, 100])), [c, xs, w]))
    assert (to_c, to_xs.tolist(), to_w) == (1 + 20 + 400, [-1 + 30 + 600, -10 + 300, -100], 10 + 200 + 1000)
    assert apply(loop, c, n, xs, w).op.grad(apply(loop, c, n, xs, w), (w, n, xs))[1] is None


def test_gradients_of_the_states_themselves():
    loop, operands = counted(states=True)
    states = items(apply(loop, *operands))[3]
    to_c = evaluate([cg.gradient(cg.sum(states * np.array([1.0, 10, 100])), operands[0])])[0]
    assert to_c == 1 + 20 + 400


def test_operands_that_do_not_fit_the_body_are_refused_with_both_specs():
    loop, (c, n, xs, w) = counted()
    message = (
        r"operands are float64\[\], int64\[\], float64\[2\], float64\[\], but the body of loop reads .*float64\[3\]"
    )
    with pytest.raises(cg.ShapeError, match=message):
        apply(loop, c, n, cg.Var((2,), "float64"), w)
    assert loop.parts("abcd") == ("ab", "c", "d")
    assert loop.with_bodies([gradient_body(loop.body)]).body is not loop.body and loop.bodies == (loop.body,)


def test_floats_are_selected_and_aligned_by_position():
    of = [cg.Var((), d) for d in ("float32", "int8", "complex64", "bool")]
    assert select_floats(of, "abcd") == ["a", "c"] and align_floats(of, "ac") == ["a", None, "c", None]


def test_loops_differ_by_each_field():
    loop, operands = counted()
    others = [Loop(loop.body, 3, backward=True), Loop(loop.body, 3, states=True)]
    assert len({apply(x, *operands) for x in (loop, Loop(loop.body, 3), *others)}) == 3
