"""Assignment to traced arrays: NumPy's rules for slices, views, masks and augmented assignment, or a refusal."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError, DTypeError, GraphError, ShapeError
from tests.support.tolerance import all_near

A = np.arange(12.0).reshape(3, 4)

PROGRAMS = [
    "x[1:, ::2] = 7",
    "x[0] = x[1]",
    "x[:, 1:] = x[:, :-1]",
    "x[-1, -1] += 5",
    "x[...] = 3",
    "x[:, None, 1] = 4",
    "x[::-1] = x",
    "y = x[1:]; y[0] = -1",
    "y = x[1:, 1:]; z = y.T; z[0] *= 2; x[2] += 1",
    "y = x; y += 1",
    "y = x.copy(); y += 1",
    "y = x + 0; y[0] = 9; x[1] = 8",
    "y = x.T; y[1] = 5; x = y",
    "y = x.swapaxes(0, 1)[1:3]; y -= 3",
    "y = np.flip(x, 0); y[0] = 5",
    "y = x[None]; y[0, 0] = 2",
    "y = np.squeeze(x[:1]); y[:] = 2",
    "y, z = x[:1], x[1:]; y[:] = 2; z *= y",
    "y, z = np.split(x, [1]); z[0, 0] = 99",
    "y = np.moveaxis(x, 0, 1); y[0, 0] = 3",
    "for row in x: row[0] = row.sum()",
    "for i in range(3): x[i, i] = i * x[i, i + 1]",
    "s = x[0, 0]; s += 1; x[1, 1] = s",
    "s = x[0, ...]; s += 1",
    "s = x.sum(); t = s; s += 1; x[0, 0] = t",
    "x[x > 5] = 0",
    "x[x.sum(1) > 10] = -1",
    "x[x.sum(1) > 10] = x[0]",
    "x[[0, 2]] = 1",
    "x[[0, 2], [1, 3]] = [8, 9]",
    "x[i] = x[0] + 1",
    "x[i, i + 1] += 10",
    "x[:, [3, 0]] = x[:, [0, 3]]",
    "x[np.array([True, False, True])] = 5",
    "np.add(x, 1, out=x)",
    "np.multiply(x[1:], 2, out=x[1:])",
    "x.sort(); x.fill(2) if False else None",
    "x.fill(4)",
    "x *= np.float32(2); x //= 3; x **= 2; x -= x[0]; x %= 5; x /= 2",
    "y = x.astype(int); y += 1; x = y",
    "y = x.reshape(4, 3); y[0] = 1; x = y",
    "y = x.ravel(); y[::2] = 0; x = y",
    "y = x.flatten(); y[0] = 5",
    "x = np.reshape(x, (3, 4)); y = x; y[0] = 1",
    "y = np.zeros_like(x); y[1] = x[0]; x = y",
    "y = np.broadcast_to(x[0], (2, 4)); x[0] = 5; z = y + 0; x[1:] = z",
    "x[1] = np.arange(4)",
    "x[2, :2] = [5, 6]",
    "x[0] = x[0][::-1]",
    "x[i:] = 1",
    "y = x.view(); y[0] = 5",
    "x[[i, 0]] = x[[0, i + 1]]",
    "x[:, [[i], [-1]]] += x[[i, -1], [0, i]].sum()",
    "x[[True, False, True]] = x[[[i, 0], [0, i]], [0, 1]][0, 0]",
]
"""Programs on an array `x` of three by four and an integer `i`, which is 1."""


def run(program, x, i):
    names = {"np": np, "x": x, "i": i}
    exec(program, names)
    return names["x"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_what_numpy_gives_and_leaves_its_argument_unchanged(program):
    static = ("i",) if "i:]" in program else ()
    before, argument = A.copy(), A.copy()
    want = run(program, A.copy(), 1)
    got = cg.jit(lambda x, i: run(program, x, i), static_argnames=static)(argument, 1)
    assert got.dtype == want.dtype and all_near(got, want)
    assert np.array_equal(argument, before)


def statement(rng, names):
    """A random statement on the arrays `names`, all of which are six by six, or views of them."""
    name = rng.choice(names)
    a, b = sorted(rng.integers(0, 7, 2))
    step = rng.choice([1, 2, -1])
    part = f"{name}[{a}:{b}:{step}]" if step > 0 else f"{name}[::-1][{a}:{b}]"
    other = rng.choice(names)
    match int(rng.integers(9)):
        case 0:
            return f"{part} = {rng.integers(9)}"
        case 1:
            return f"{part} += 1"
        case 2:
            # without + 0, NumPy copies overlapping rows and columns in place, with a result that depends on strides
            return f"{name}[:, {rng.integers(6)}] = {other}[{rng.integers(6)}] + 0"
        case 3:
            return f"{rng.choice(['p', 'q'])} = {other}.T"
        case 4:
            return f"{rng.choice(['p', 'q'])} = {other}[::-1, ::-1]"
        case 5:
            return f"{rng.choice(['p', 'q'])} = {other} * 2"
        case 6:
            return f"{name}[{other} > {rng.integers(9)}] = {rng.integers(9)}"
        case 7:
            return f"{name} -= {other}"
        case _:
            return f"{name}[[{rng.integers(6)}, {rng.integers(6)}]] = {other}[{rng.integers(6)}]"


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_with_views_give_what_numpy_gives(seed):
    rng = np.random.default_rng(seed)
    code = "\n".join(["p, q = x.T, x[:, ::-1]", *[statement(rng, ["x", "p", "q"]) for _ in range(12)]])

    def program(x):
        names = {"np": np, "x": x}
        exec(code, names)
        return names["x"], names["p"], names["q"]

    start = rng.integers(0, 9, (6, 6)).astype(float)
    want = program(start.copy())
    got = cg.jit(program, engine="reference")(start)
    for x, y in zip(got, want):
        assert np.array_equal(x, y), code


@pytest.mark.parametrize(
    "program, error, words",
    [
        ("y = x.reshape(-1); y[0] = 5", GraphError, "perhaps a view"),
        ("y = x.T.ravel(); x[0] = 5; x = y", GraphError, "perhaps a view"),
        ("y = np.broadcast_to(x[0], (2, 4)); y[0] = 1", GraphError, "read-only"),
        ("x[x > 3] = x[x > 3] + 1", CgraphError, "cg.where"),
        ("x[x > 3] = np.arange(8)", ShapeError, "np.where"),
        ("x[0] = 1j * x[1]", DTypeError, "np.real"),
        ("y = x.astype(int); y += 0.5", DTypeError, "astype"),
        ("s = x.sum(); s[...] = 1", DTypeError, "number"),
        ("x[5] = 1", ShapeError, "outside an axis"),
        ("x[0] = np.arange(3)", ShapeError, "broadcast"),
        ("np.add(x, 1, out=np.zeros((3, 4)))", GraphError, "zeros_like"),
    ],
)
def test_what_numpy_leaves_open_or_refuses_is_refused(program, error, words):
    with pytest.raises(error, match=words):
        cg.jit(lambda x: run(program, x, 1) + 0)(A)


def test_an_array_of_an_enclosing_function_is_not_assigned():
    def outer(x):
        def inner(z):
            x[0] = z.sum()
            return z.sum()

        return cg.grad(inner)(x + 1)

    with pytest.raises(GraphError, match="enclosing function"):
        cg.jit(outer)(A)


def test_assignment_works_in_the_body_of_a_loop_and_of_a_branch():
    def f(x):
        def body(state, row):
            state[0] += row.sum()
            row[1] = 0
            return state, row

        total, rows = cg.scan(body, np.zeros(2), x)
        return total, rows, cg.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, x)

    x = np.ones((7, 3))
    total, rows, branch = cg.jit(f)(x)
    assert total.tolist() == [21, 0] and rows[:, 1].tolist() == [0] * 7 and np.array_equal(branch, x + 1)


def test_functions_of_loops_may_be_given_by_keyword():
    def f(x):
        def halve(state):
            state[0] /= 2
            return state

        def first(state, row):
            row[1] = 0
            return state + row, row

        ended = cg.while_loop(condition=lambda state: state[0] > 1, body=halve, state=x)
        total, rows = cg.scan(f=first, init=np.zeros(2), xs=np.ones((3, 2)) * x[0])
        return ended, total, rows

    ended, total, rows = cg.jit(f)(np.array([3.0, 5.0]))
    assert ended.tolist() == [0.75, 5] and total.tolist() == [9, 0] and rows.tolist() == [[3, 0]] * 3


def test_assignment_works_in_loops_that_end_by_a_condition():
    def f(x, n):
        def halve(state):
            state["x"][state["i"]] /= 2
            return {"i": state["i"] + 1, "x": state["x"]}

        def count(i, y):
            y[0] += i
            return y

        last = cg.while_loop(lambda state: (state["x"] > 1).any() & (state["i"] < 3), halve, {"i": 0, "x": x})
        return last["x"], last["i"], cg.fori(0, n, count, np.zeros(2))

    x, i, total = cg.jit(f)(np.array([3.0, 2.0, 8.0, 9.0]), 5)
    assert x.tolist() == [1.5, 1, 4, 9] and i == 3 and total.tolist() == [10, 0]
    x, i, _ = cg.jit(f)(np.array([1.5, 1.0, 0.5, 0.2]), 5)
    assert x.tolist() == [0.75, 1, 0.5, 0.2] and i == 1


def test_arrays_of_cgraph_numpy_are_filled_inside():
    def f(x):
        out = cg.numpy.zeros((2, 3))
        out += x
        out[1] = cg.tanh(x[0])
        return out

    got = cg.jit(f)(A[:2, :3])
    assert all_near(got, [A[0, :3], np.tanh(A[0, :3])])
