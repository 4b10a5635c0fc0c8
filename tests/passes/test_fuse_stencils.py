"""Pointwise ops inside larger arrays: same bits, one pass over memory, and arrays overwritten while they are read."""

import numpy as np
import pytest
from hypothesis import given, settings

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.kernels.target import host_target
from cgraph.ops.physical.stencil import PAGE, Stencil
from cgraph.passes.fuse_pointwise import fuse_pointwise
from cgraph.passes.fuse_stencils import fuse_stencils
from tests.support.graphs import graphs
from tests.support.interrupts import seconds_of, was_interrupted
from tests.support.kernels import TARGETS
from tests.support.rewrites import assert_keeps_values, assert_leaves_nothing, assert_left, assert_same_values
from tests.support.tolerance import assert_close


@settings(max_examples=60)
@given(drawn=graphs())
def test_joined_ops_keep_the_values(drawn):
    assert_keeps_values(lambda outputs: fuse_stencils(fuse_pointwise(outputs), host_target()), drawn)


@settings(max_examples=30)
@given(drawn=graphs())
def test_nothing_is_left_to_join(drawn):
    assert_leaves_nothing(lambda outputs: fuse_stencils(fuse_pointwise(outputs), host_target()), drawn)


def var(*shape: int, dtype: str = "float32", seed: int = 0) -> cg.Var:
    value = np.random.default_rng(seed).normal(size=shape) * 4
    return cg.Var(shape, dtype, f"v{seed}").assign(value.astype(dtype))


def inner(m, x):
    """Half of each element, and a quarter of its neighbours along every axis, less a product of two of them."""
    place = [slice(1, -1)] * x.ndim
    total = x[tuple(place)] * 0.5
    for axis in range(x.ndim):
        before, behind = list(place), list(place)
        before[axis], behind[axis] = slice(0, -2), slice(2, None)
        total = total + (x[tuple(before)] + x[tuple(behind)]) * 0.25 - x[tuple(before)] * 0.125
    return total


def padded(x):
    return cg.pad(inner(cg, x), 1, constant_values=2)


def inside(x):
    return cg.set_slice(x, (slice(1, -1),) * x.ndim, inner(cg, x))


def stencils(function: cg.Function) -> list[bool]:
    """For each stencil, whether it writes into a Var."""
    ops = [n.op for n in function.compiled.layout.steps]
    return [op.writes for op in ops if isinstance(getattr(op, "op", op), Stencil)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("step", [padded, inside])
@pytest.mark.parametrize("shape", [(9000,), (40, 5000), (290, 300), (3, 4), (40, 30, 50), (20, 8, 6, 100)])
def test_an_update_overwrites_what_it_reads(shape, step, target):
    x = var(*shape)
    engine = CpuEngine(target=target, threads=3)
    function = cg.compile([], updates={x: step(x)}, engine=engine)
    assert stencils(function) == [True]
    assert function.nbytes <= max(PAGE, x.nbytes // 4)
    for _ in range(3):
        want = evaluate([step(x)])[0]
        function()
        np.testing.assert_array_equal(x.value, want)


@pytest.mark.parametrize("first, last", [((1, 1), (1, 2)), ((1, 2), (2, 1)), ((0, 2), (0, 3)), ((2, 1), (3, 0))])
def test_borders_may_have_another_width_on_each_side(first, last):
    """An array is overwritten row by row, in rows and in columns."""
    (a, b), (c, d) = first, last
    for n, m in ((300, 200), (40, 5000)):
        x = var(n, m)
        rows, columns = slice(a, n - b), slice(c, m - d)
        around = x[: n - a - b, columns] + x[a + b :, columns] * 2 - x[rows, : m - c - d] - x[rows, c + d :] * 3
        new = cg.pad(around * x[rows, columns], (first, last), constant_values=7)
        function, want = cg.compile([], updates={x: new}), evaluate([new])[0]
        function()
        assert stencils(function) == [True]
        np.testing.assert_array_equal(x.value, want)


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "int64"])
def test_any_dtype_can_be_overwritten(dtype):
    x = cg.Var((70, 600), dtype).assign(np.random.default_rng(0).integers(0, 9, (70, 600)).astype(dtype))
    around = x[:-2, 1:-1] + x[2:, 1:-1] * 2 + x[1:-1, 2:] * 3
    new = cg.pad(cg.where(around > 9, around - 9, x[1:-1, 1:-1]).astype(dtype), 1, constant_values=3)
    function = cg.compile([], updates={x: new})
    want = evaluate([new])[0]
    function()
    assert stencils(function) == [True]
    np.testing.assert_array_equal(x.value, want)


def test_a_chain_of_steps_needs_one_array():
    x = var(260, 250)
    y = x
    for _ in range(6):
        y = padded(y)
    function = cg.compile(y, [x])
    assert len(stencils(function)) == 6
    assert function.nbytes <= 1.3 * x.nbytes
    np.testing.assert_array_equal(function(x.value), evaluate([y])[0])


def test_the_state_of_a_loop_is_overwritten():
    x = var(260, 250)
    last, _ = cg.scan(lambda state, _: (padded(state), cg.zeros(())), x, length=9)
    function = cg.compile(last, [x])
    assert function.nbytes <= 1.3 * x.nbytes
    np.testing.assert_array_equal(function(x.value), evaluate([last])[0])


def test_two_arrays_that_read_each_other():
    x, y = var(90, 80), var(90, 80, seed=1)
    new_x, new_y = inside(x) + y * 0, inside(y) * 0.5 + padded(x)
    function = cg.compile(cg.sum(x), updates={x: new_x, y: new_y})
    for _ in range(3):
        want = evaluate([cg.sum(x), new_x, new_y])
        assert_close(function(), want[0])
        assert_close(x.value, want[1])
        assert_close(y.value, want[2])


def test_a_step_back_and_a_step_on():
    """The wave equation: what is new is made of the present and the last state."""
    last, present = var(100, 90), var(100, 90, seed=1)
    new = cg.pad(2.0 * present[1:-1, 1:-1] - last[1:-1, 1:-1] + 0.1 * inner(cg, present), 1)
    function = cg.compile([], updates={last: present, present: new})
    for _ in range(4):
        want = evaluate([present, new])
        function()
        np.testing.assert_array_equal(last.value, want[0])
        np.testing.assert_array_equal(present.value, want[1])


def test_two_functions_on_one_var_and_reads_in_between():
    x, y = var(200, 210), var(200, 210, seed=1)
    one, other = cg.compile([], updates={x: padded(x)}), cg.compile(cg.max(x), updates={x: inside(x) + y})
    for function, new in ((one, padded(x)), (other, inside(x) + y), (one, padded(x)), (one, padded(x))):
        want = evaluate([new])[0]
        function()
        assert_close(x.value, want)
    x.assign(y.value)
    want = evaluate([padded(x)])[0]
    one()
    np.testing.assert_array_equal(x.value, want)


def test_another_way_to_read_the_array_keeps_it():
    x = var(64, 64)
    new = cg.pad(inner(cg, x) + x[::-1, ::-1][1:-1, 1:-1], 1)
    function = cg.compile([], updates={x: new})
    want = evaluate([new])[0]
    function()
    np.testing.assert_array_equal(x.value, want)


def test_not_joined_where_it_would_take_more_bytes():
    x, y = var(300, 300), var(300, 300, seed=1)
    a, b = cg.sort(x), cg.sort(y)  # both die where they are multiplied
    function = cg.compile(cg.pad(a * b, 1), [x, y])
    assert stencils(function) == []
    function = cg.compile(cg.pad(a * 3.0, 1), [x, y])
    assert stencils(function) == [False]
    function = cg.compile([cg.pad(a * b, 1), a], [x, y])  # only b dies there
    assert stencils(function) == [False]


def test_a_shift_as_wide_as_the_array_needs_another():
    x = var(256, 256)
    new = cg.pad(x[:128] + x[128:], ((64, 64), (0, 0)))
    function = cg.compile([], updates={x: new})
    want = evaluate([new])[0]
    function()
    np.testing.assert_array_equal(x.value, want)


@pytest.mark.slow
def test_an_interrupt_leaves_a_whole_step():
    x = var(2000, 1500)
    function = cg.compile([], updates={x: padded(x)})
    function()
    seconds, count = seconds_of(function), 0
    for i in range(40):
        before, after = x.value, evaluate([padded(x)])[0]
        count += was_interrupted(function, seconds * i / 40)
        assert np.array_equal(x.value, after) or np.array_equal(x.value, before)
    assert count


A = cg.Var((8, 8), "float64", "a")
MIDDLE = (slice(1, 7), slice(1, 7))
DOUBLE = A[MIDDLE] * 2.0
OTHER = cg.Var((6, 6), "float64", "other")
APART = {
    "a place with steps": (cg.set_slice(A, (slice(0, 8, 2), slice(0, 8, 2)), A[::2, ::2] * 2.0),),
    "a place backwards": (cg.set_slice(A, (slice(6, 0, -1), slice(1, 7)), DOUBLE),),
    "what somebody else reads": (cg.pad(DOUBLE, 1), cg.exp(DOUBLE)),
    "an output": (cg.pad(DOUBLE, 1), DOUBLE),
    "no pointwise op": (cg.pad(cg.cumsum(OTHER, 0), 1), cg.set_slice(A, MIDDLE, OTHER)),
    "windows with steps of the array that is overwritten": (
        cg.set_slice(A, (slice(0, 4), slice(0, 4)), A[::2, ::2] * 2.0),
    ),
    "the same bytes turned": (cg.set_slice(A, MIDDLE, DOUBLE + A.T[MIDDLE]),),
}
JOINED = {
    "a pad": cg.pad(DOUBLE, 1),
    "a set slice": cg.set_slice(A, MIDDLE, DOUBLE),
    "a set slice at an edge": cg.set_slice(A, (slice(0, 6), slice(2, 8)), A[:6, :6] + OTHER),
    "a pad of another array": cg.pad(cg.sin(OTHER), 1, constant_values=3),
    "windows with steps of another array": cg.pad(cg.Var((16, 16), "float64", "w")[2:14:2, 2:14:2] * 2.0, 1),
}


def for_host(outputs):
    return fuse_stencils(outputs, host_target())


@pytest.mark.parametrize("name", APART)
def test_not_joined(name):
    assert_left(for_host, *APART[name])


@pytest.mark.parametrize("name", JOINED)
def test_joined(name):
    assert isinstance(for_host((JOINED[name],))[0].op, Stencil)
    assert_same_values(for_host, JOINED[name])


def test_an_array_that_is_set_in_itself_stays():
    y = cg.exp(cg.Var((40, 30), name="x"))
    assert_left(lambda outputs: fuse_stencils(outputs, host_target()), cg.set_slice(y, np.s_[:, :], y))
