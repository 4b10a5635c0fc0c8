"""Sweeps: an array replaced by what is computed around each of its elements, in any order of tasks, on every target."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cgraph.ir.spec import Spec
from cgraph.kernels.expression import Trace
from cgraph.kernels.stencil import calls as stencil
from cgraph.kernels.stencil.calls import stencil_calls, sweep_of
from cgraph.kernels.target import target_named
from cgraph.record import replace
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.ops import filled

FAR = 6  # how far a window may lie from its place
WEIGHTS = (1, 2, 3)
MOST = ((90,), (40, 40), (12, 12, 12), (6, 5, 5, 6))  # elements along each axis, by rank


def weighted(dtype: str):
    """The sum of windows, weighted, and of one operand more."""
    m = Trace()
    total = m.load(len(WEIGHTS), dtype)
    for i, weight in enumerate(WEIGHTS):
        total = total + m.load(i, dtype) * m.const(weight, dtype)
    return m.program(total)


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=80)
@given(data=st.data(), dtype=st.sampled_from(["f4", "u1"]), order=st.sampled_from(ORDERS))
def test_an_array_takes_what_is_computed_around_its_elements(target, data, dtype, order):
    most = data.draw(st.sampled_from(MOST))
    lengths = tuple(data.draw(st.integers(1, n)) for n in most)
    margins = [(data.draw(st.integers(0, FAR)), data.draw(st.integers(0, FAR))) for _ in most]
    shifts = [tuple(data.draw(st.integers(-a, b)) for a, b in margins) for _ in WEIGHTS]
    assume(any(map(any, shifts)))
    rng = np.random.default_rng(0)
    array = filled(Spec(tuple(a + n + b for n, (a, b) in zip(lengths, margins)), np.dtype(dtype)))
    array[...] = rng.integers(0, 9, array.shape)
    place = tuple(slice(a, a + n) for n, (a, _) in zip(lengths, margins))
    moved = [tuple(slice(s.start + by, s.stop + by) for s, by in zip(place, shift)) for shift in shifts]
    other = rng.integers(0, 9, lengths if data.draw(st.booleans()) else [1] * len(lengths)).astype(dtype)
    other = np.broadcast_to(other, lengths)
    want = array.copy()
    want[place] = sum(weight * array[window] for weight, window in zip(WEIGHTS, moved)) + other
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stencil, "MANY", data.draw(st.integers(1, 4)))
        patch.setattr(stencil, "MOST_PIECE", data.draw(st.integers(5, 40)))
        for name in ("FEW", "LEAST_PIECE", "BAND_ELEMENTS"):
            patch.setattr(stencil, name, 1)
        patch.setattr(stencil, "BANDS", 64)
        sweep = sweep_of(lengths, array.itemsize, shifts)
        ends = (0, 0, 0)
        if sweep.axis < len(lengths) - 1 and data.draw(st.booleans()):
            ends = (*margins[-1], 5)
            before, behind = slice(0, place[-1].start), slice(place[-1].stop, None)
            want[(*place[:-1], before)] = want[(*place[:-1], behind)] = 5
        slots = filled(Spec((sweep.nbytes,), np.dtype("u1")))
        views = [view_of(array[window]) for window in moved]
        calls = stencil_calls(
            weighted(dtype), sweep, view_of(array[place]), [*views, view_of(other)], view_of(slots), ends
        )
    run_calls(calls, target_named(target), order)
    np.testing.assert_array_equal(array, want)


@pytest.mark.parametrize(("shape", "shifts"), [
    ((4, 5), [(0, 0), (0, 0)]), ((4, 5), []), ((0, 5), [(1, 0)]), ((4, 0), [(1, 0)]), ((), [()]),
])  # fmt: skip
def test_nothing_is_swept_where_nothing_is_shifted_or_there_are_no_elements(shape, shifts):
    assert sweep_of(shape, 4, shifts) is None


PIECE = stencil.MOST_PIECE


@pytest.mark.parametrize(("shape", "shifts", "sweep"), [
    ((3, 40, 50, 60), [(0, -2, 1, 0), (0, 1, 0, -3)], (1, 2, 1, 3, 40, 50, 60)),
    ((30, 60), [(3, 0)], (0, 0, 3, 1, 30, 1, 60)),
    ((30, 60), [(-3, 9)], (0, 3, 0, 1, 30, 1, 60)),
    ((2, 6, 100), [(0, 0, 3)], (1, 0, 0, 2, 6, 1, 100)),  # whole lines
    ((2, 6, 2 * PIECE - 1), [(0, 0, 3)], (1, 0, 0, 2, 6, 1, 2 * PIECE - 1)),
    ((2, 6, 2 * PIECE), [(0, 0, -1), (0, 0, 65)], (2, 1, 2, 12, 64, 1, 64)),
    ((100,), [(-64,), (65,)], (0, 1, 2, 1, 2, 1, 64)),
    ((64 * 100 + 1,), [(1,)], (0, 0, 1, 1, 65, 1, 100)),
    ((10**6,), [(PIECE,)], (0, 0, 1, 1, 489, 1, PIECE)),
])  # fmt: skip
def test_the_first_axis_that_is_shifted_is_swept_with_the_rows_that_are_read_before_and_behind(shape, shifts, sweep):
    assert sweep_of(shape, 8, shifts) == stencil.Sweep(*sweep, 8)


def test_a_workspace_holds_the_slots_of_all_bands():
    x, sweep = np.zeros((6, 40), "f4"), sweep_of((4, 40), 4, [(1, 0), (-1, 0)])
    views = view_of(x[1:5]), [view_of(x[2:]), view_of(x[:4])]
    m = Trace()
    program = m.program(m.load(0, "f4") + m.load(1, "f4"))
    assert sweep.nbytes == sweep.tasks * 3 * sweep.line_nbytes and sweep.line_nbytes == 256
    for nbytes in (sweep.nbytes, sweep.nbytes - 1):
        room = view_of(np.zeros(nbytes, "u1"))
        if nbytes == sweep.nbytes:
            assert len(stencil_calls(program, sweep, *views, room)) == 2
            continue
        with pytest.raises(ValueError, match=f"has {nbytes} bytes, these calls need {sweep.nbytes}"):
            stencil_calls(program, sweep, *views, room)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("steps", [1, 40])
def test_operands_that_lie_apart_and_long_programs_have_one_vector(steps, target, order):
    rng = np.random.default_rng(0)
    array = rng.integers(0, 9, (23, 70)).astype("f4")
    apart = rng.integers(0, 3, (20, 140)).astype("f4")[:, ::2]
    m = Trace()
    total = m.load(0, "f4") - m.load(1, "f4")
    for _ in range(steps):
        total = total + m.load(2, "f4")
    place, windows = array[1:21], (array[3:23], array[:20])
    for other in (apart, np.ascontiguousarray(apart)):
        kept = array.copy()
        want = array.copy()
        want[1:21] = windows[0] - windows[1] + steps * other
        sweep = sweep_of(place.shape, 4, [(2, 0), (-1, 0)])
        room = view_of(np.full(sweep.nbytes, 0xFF, "u1"))
        views = view_of(place), [view_of(x) for x in (*windows, other)]
        made = stencil_calls(m.program(total), sweep, *views, room)
        assert made[0].kernel.params[2] == (1 if other is apart or steps > stencil.LONG else 2)
        run_calls(made, target_named(target), order)
        np.testing.assert_array_equal(array, want)
        array[...] = kept


def test_bands_are_long_enough_for_their_slots_and_for_a_task():
    """Some times the buffered rows, more if there are many rows, and at least so many elements."""
    few, many, bands = stencil.FEW, stencil.MANY, stencil.BANDS
    for rows, slots, lines, columns in ((10**6, 3, 4, 4096), (1000, 3, 64, 4096), (5000, 2, 16, 4096), (50, 2, 1, 8)):
        sweep = stencil.Sweep(0, slots - 1, 0, 1, rows, lines, columns, 4)
        enough = min(many * slots, max(few * slots, rows // bands))
        least = max(enough, stencil.BAND_ELEMENTS // (lines * columns))
        assert sweep.slots == slots and sweep.each == -(-rows // max(1, rows // least))
        assert (sweep.bands - 1) * sweep.each < rows <= sweep.bands * sweep.each
        assert sweep.tasks == sweep.bands and replace(sweep, batches=3).tasks == 3 * sweep.bands
