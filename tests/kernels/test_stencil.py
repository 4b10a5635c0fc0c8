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
