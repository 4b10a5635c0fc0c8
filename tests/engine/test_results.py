"""Outputs that a run computes where the caller's array is: which they are, and that nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu import results
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.record import replace as compiled_with
from tests.support.tolerance import assert_near

SHAPE = (60, 50)
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=SHAPE), RNG.normal(size=SHAPE)


@pytest.fixture(autouse=True)
def outputs_of_any_size(monkeypatch):
    monkeypatch.setattr(results, "LEAST_NBYTES", 1)


def variables():
    return cg.Var(SHAPE, "float64", "x"), cg.Var(SHAPE, "float64", "y")


def direct(f):
    """The numbers of the outputs that a run may compute outside of the arena."""
    instance = f.program.instance()
    return [i for i, x in enumerate(f.program.code.views) if x in instance.results]


def spoil(f):
    """Fill the arenas of a Function that is at rest."""
    for record in f._idle:
        record.instance.arena[...] = 0xFF


def test_an_output_with_bytes_of_its_own_is_never_in_the_arena():
    x, y = variables()
    f = cg.compile([cg.exp(x) * y, cg.cumsum(x, 0)], [x, y])
    assert direct(f) == [0, 1]
    f(A, B)
    spoil(f)
    first = f(A, B)
    np.testing.assert_array_equal(first[1], np.cumsum(A, 0))
    for record in f._idle:
        assert (record.instance.arena == 0xFF).all()  # there are no other values
    copies = [np.array(value) for value in first]
    f(B, A)
    for value, copy in zip(first, copies, strict=True):
        np.testing.assert_array_equal(value, copy)
        assert value.flags.writeable


def test_an_output_that_overwrites_others_takes_them_along():
    x, y = variables()
    z = cg.sort(cg.cumsum(x + y, 0), 1)
    f = cg.compile(cg.cumsum(z, 1) * 2.0, [x, y])
    assert direct(f) == [0]
    want = np.cumsum(np.sort(np.cumsum(A + B, 0), 1), 1) * 2
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(cg.compile(cg.cumsum(z, 1) * 2.0, [x, y], threads=threads)(A, B), f(A, B))
    assert_near(f(A, B), want, "float64 formulas near zero")


def test_outputs_that_share_bytes_stay_in_the_arena():
    x, y = variables()
    z = cg.exp(x) + y
    f = cg.compile([z, cg.reshape(z, (50, 60)), z[1:], z], [x, y])
    assert direct(f) == []
    whole, reshaped, rows, again = f(A, B)
    for value, want in ((reshaped, whole.reshape(50, 60)), (rows, whole[1:]), (again, whole)):
        np.testing.assert_array_equal(value, want)


def test_results_of_one_step_move_each_by_itself():
    x, y = variables()
    both = [cg.exp(x) * y, cg.exp(x) + y]
    f = cg.compile(both, [x, y])
    assert direct(f) == [0, 1] and len(f.program.code.table) == 1
    alone = [cg.compile(node, [x, y])(A, B) for node in both]
    for threads in (1, 2, 3):
        got = cg.compile(both, [x, y], threads=threads)(A, B)
        np.testing.assert_array_equal(got, alone)
    shares = cg.compile([*both, cg.reshape(both[1], (50, 60))], [x, y])
    assert direct(shares) == [0]
    np.testing.assert_array_equal(shares(A, B)[2], alone[1].reshape(50, 60))


def test_views_inputs_and_constants_are_no_results():
    x, y = variables()
    f = cg.compile([x, cg.transpose(x), (x + y)[2:], cg.Const(B)], [x, y])
    assert direct(f) == []
    np.testing.assert_array_equal(f(A, B)[2], (A + B)[2:])


def test_a_result_of_parts_is_computed_in_place_with_its_parts():
    x, y = variables()
    f = cg.compile(cg.concat([cg.exp(x), cg.cumsum(y, 0), x * y], 0), [x, y])
    assert direct(f) == [0]
    got = f(A, B)
    np.testing.assert_array_equal(got[60:120], np.cumsum(B, 0))
    np.testing.assert_array_equal(got[120:], A * B)


def test_a_loop_writes_its_rows_where_the_caller_reads_them():
    x = cg.Var((500, 7), "float64", "x")
    last, rows = cg.scan(lambda s, row: (0.5 * s + row, s), np.zeros(7), x)
    f = cg.compile([last, rows], [x])
    value, want = RNG.normal(size=(500, 7)), [np.zeros(7)]
    for row in value:
        want.append(0.5 * want[-1] + row)
    for _ in range(2):
        got = f(value)
        assert_near(got[1], np.array(want[:-1]), "float64 formulas")
        assert_near(got[0], want[-1], "float64 formulas")


def test_views_and_own_arrays_follow_runs_with_new_arrays():
    x, y = variables()
    f = cg.compile(cg.cumsum(x * y, 0), [x, y])
    want, room = np.cumsum(A * B, 0), np.empty(SHAPE)
    for _ in range(2):
        np.testing.assert_array_equal(f(A, B), want)
        view = f(A, B, copy=False)
        np.testing.assert_array_equal(view, want)
        np.testing.assert_array_equal(f(B, B), np.cumsum(B * B, 0))
        np.testing.assert_array_equal(view, want)  # the run in between wrote nothing in the arena
        assert f(A, B, out=[room]) is room
        np.testing.assert_array_equal(room, want)


def test_a_run_after_a_failure_reads_no_memory_of_the_failed_one():
    x, index = cg.Var(SHAPE, "float64", "x"), cg.Var((3,), "int64", "index")
    f = cg.compile([cg.exp(x), cg.take(x, index, 0)], [x, index])
    first, _ = f(A, np.array([0, 1, 2]))
    with pytest.raises(cg.errors.PositionError):
        f(A, np.array([0, 1, 99]))
    again, rows = f(A, np.array([3, 4, 5]))
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(rows, A[3:6])


def test_values_that_stay_for_later_runs_stay_in_the_arena():
    """A step that reads only a cell runs once; its output is not computed again for a new array."""
    x, cell = cg.Var(SHAPE, "float64", "x"), cg.Var(SHAPE, "float64", "cell").assign(B)
    f = cg.compile([cg.cumsum(cell, 0), x + cell], [x])
    for value in (A, B, A):
        total, plus = f(value)
        np.testing.assert_array_equal(total, np.cumsum(B, 0))
        np.testing.assert_array_equal(plus, value + B)
    cell.assign(A)
    np.testing.assert_array_equal(f(A)[0], np.cumsum(A, 0))


def test_a_function_with_an_update_edge_copies_its_results():
    x, cell = cg.Var(SHAPE, "float64", "x"), cg.Var(SHAPE, "float64", "cell").assign(B)
    new = cell + x
    f = cg.compile(new, [x], {cell: new})
    for i in range(1, 4):
        assert_near(f(A), B + i * A, "float64 formulas near zero")
        np.testing.assert_array_equal(cell.value, f.state["cell"].value)


def test_poison_and_small_outputs_go_through_the_arena(monkeypatch):
    x, y = variables()
    f = cg.compile(x + y, [x, y], engine=CpuEngine(poison=True))
    assert direct(f) == []
    np.testing.assert_array_equal(f(A, B), A + B)
    monkeypatch.setattr(results, "LEAST_NBYTES", A.nbytes + 1)
    assert direct(cg.compile(x - y, [x, y])) == []


def test_addresses_of_results_are_in_the_arena_unless_they_move():
    """Each at its own place; runs that return views compute them there."""
    x, y = variables()
    f = cg.compile([cg.cumsum(x * y, 0), cg.sort(y, 1), cg.cumsum(x, 1)], [x, y])
    code = f.program.code
    (arena,) = (r for r in code.relocations if str(r.symbol) == "arena")
    offset_at = dict(zip(arena.positions.tolist(), arena.offsets.tolist()))
    starts = {output: code.views[output].at.offset for output in code.results}
    assert len(set(starts.values())) == 3 and not [r for r in code.relocations if r.symbol.kind == "result"]
    for output, result in code.results.items():
        assert len(result.positions)
        for position, offset in zip(result.positions.tolist(), result.offsets.tolist()):
            assert offset_at[position] == starts[output] + offset
    for got, want in zip(f(A, B, copy=False), (np.cumsum(A * B, 0), np.sort(B, 1), np.cumsum(A, 1)), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("missing", [0, 1])
def test_an_output_of_at_least_so_many_bytes_moves(monkeypatch, missing):
    x, y = variables()
    monkeypatch.setattr(results, "LEAST_NBYTES", A.nbytes + missing)
    assert direct(cg.compile(cg.cumsum(x * y, 0), [x, y])) == [0] * (1 - missing)


@pytest.mark.parametrize(
    "turn", [np.transpose, lambda x: x[::-1], lambda x: x[:, ::2]], ids=["turned", "flipped", "cut"]
)
def test_a_result_whose_elements_are_not_in_c_order_stays_in_the_arena(turn):
    x, _ = variables()
    f = cg.compile(turn(cg.cumsum(x, 0)), [x])
    np.testing.assert_array_equal(f(A), turn(np.cumsum(A, 0)))
    assert direct(f) == []


def test_no_output_moves_where_values_that_overlap_have_several_operands():
    x, y = variables()
    compiled = cg.compile([cg.exp(x) * y], [x, y]).compiled
    assert results.places_of(compiled)
    several = replace(compiled.usage, pieces=compiled.usage.problem)
    assert results.places_of(compiled_with(compiled, usage=several)) == {}


@pytest.mark.parametrize("rows", [slice(30), slice(30, None), slice(10, 20), slice(59)], ids=str)
def test_a_result_that_is_a_part_of_a_larger_value_stays_in_the_arena(rows):
    """The step writes the other rows, too."""
    x, y = variables()
    total = cg.cumsum(x, 0)
    for outputs, moved in (([total[rows]], []), ([total[rows], cg.exp(y)], [1])):
        f = cg.compile(outputs, [x, y])
        assert direct(f) == moved
        for a in (A, B):
            np.testing.assert_array_equal(f(a, B)[0], np.cumsum(a, 0)[rows])
