"""Windows over axes: which of them see padding alone, counted and derived."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import ShapeError
from cgraph.ops import window
from cgraph.ops.window import Windows
from tests.support.kernels import ORDERS
from tests.support.ops import computing, contiguous, kernel_result, values_of


@given(
    n=st.integers(1, 9),
    r=st.integers(1, 6),
    stride=st.integers(1, 5),
    dilation=st.integers(1, 12),
    pad=st.tuples(st.integers(0, 30), st.integers(0, 30)),
)
def test_windows_that_see_padding_alone_are_found_without_counting(n, r, stride, dilation, pad):
    moves = Windows((r,), (stride,), pad, (dilation,))
    try:
        results = (moves.result((n,)), moves.ceil_result((n,)))
    except ShapeError:
        return
    for found in results:
        assert moves.leave_out((n,), found) == bool((moves.counts((n,), found, False) == 0).any())


def test_small_windows_are_found_without_counting_one_by_one():
    for n, r, stride, dilation, before, behind in product(range(1, 4), (1, 2), range(1, 5), (1, 3), range(4), range(5)):
        moves = Windows((r,), (stride,), (before, behind), (dilation,))
        if n + before + behind < moves.extent[0]:
            continue
        for found in (moves.result((n,)), moves.ceil_result((n,))):
            assert moves.leave_out((n,), found) == bool((moves.counts((n,), found, False) == 0).any()), moves


EMPTY = [
    ((2, 4), (5, 4, 2), 1), ((0, 4), (5, 4, 2), 1), ((2, 0), (5, 0, 2), 1), ((2, 4), (0, 4, 2), 1),
    ((2, 4), (5, 4, 0), 1), ((2, 0), (4, 0, 2), 2), ((0, 0), (0, 0, 0), 1),
]  # fmt: skip


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("leading, filters, groups", EMPTY, ids=str)
def test_convolutions_of_nothing_and_their_gradients_fill_their_results(leading, filters, groups, axes):
    """Kernels alone, into arrays of NaN, for every operand that has no element."""
    x = cg.Var((*leading, *[5] * axes), "float64", "x")
    f = cg.Var((*filters, *[filters[2]] * (axes - 1)), "float64", "f")
    y = getattr(cg, f"conv{axes}d")(x, f, pad=1, groups=groups)
    given = {v: np.ones(v.shape) for v in (x, f)}
    known = values_of([y, *cg.gradient(cg.sum(y), [x, f])], given)
    for node in computing(known):
        for order in ORDERS:
            (found,) = kernel_result(node, [contiguous(known[v]) for v in node.operands], order)
            np.testing.assert_array_equal(found, known[node])


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("stride, dilation", [(4, 1), (5, 1), (3, 2), (1, 3)])
def test_the_gradient_of_max_pooling_reaches_the_first_largest_and_nothing_in_the_gaps(axes, stride, dilation):
    """Windows that leave gaps, along every axis but one another way; every kernel into arrays of NaN."""
    steps, apart = (stride, stride + 1, 2)[:axes], (dilation, 1, 2)[:axes]
    x = cg.Var((2, 3, *(13, 9, 8)[:axes]), "float64", "x")
    y = getattr(cg, f"max_pool{axes}d")(x, 2, steps, (1, 0, 1)[:axes] * 2, dilation=apart)
    image = np.random.default_rng(0).integers(-3, 0, x.shape).astype(float)
    g = np.random.default_rng(1).integers(1, 9, y.shape).astype(float)
    want = np.zeros(x.shape)
    for at in np.ndindex(y.shape):
        taps = [
            (*at[:2], *(p * s - pad + t * d for p, s, pad, t, d in zip(at[2:], steps, (1, 0, 1), tap, apart)))
            for tap in np.ndindex((2,) * axes)
        ]
        taps = [t for t in taps if all(0 <= i < n for i, n in zip(t, x.shape))]
        want[max(taps, key=lambda t: image[t])] += g[at]
    gradient = cg.gradient(cg.sum(y * g), [x])
    np.testing.assert_array_equal(cg.compile(gradient, [x], engine=CpuEngine(poison=True))(image)[0], want)
    known = values_of(gradient, {x: image})
    for node in computing(known):
        (found,) = kernel_result(node, [contiguous(known[v]) for v in node.operands], "all")
        np.testing.assert_array_equal(found, known[node])


def test_an_axis_without_windows_has_none_in_the_padding():
    assert not Windows((1, 1), (1, 1), (9, 0, 9, 0), (1, 1)).leave_out((3, 3), (0, 3))


def test_huge_windows_and_images_are_looked_at_without_counting(monkeypatch):
    wide = Windows((3,), (1,), (1, 1), (1,))
    assert not wide.leave_out((1 << 50,), wide.result((1 << 50,)))
    full = Windows((1 << 40,), (1,), ((1 << 40) - 1,) * 2, (1,))
    assert not full.leave_out((8,), full.result((8,)))
    monkeypatch.setattr(window, "MOST_BEFORE", 9)
    stepped = Windows((2,), (1,), (11, 0), (11,))
    with pytest.raises(ShapeError, match="10 windows of 12 begin in the padding of 11; at most 9 may"):
        stepped.leave_out((10,), stepped.result((10,)))
    monkeypatch.setattr(window, "MOST_BEFORE", 10)
    assert not stepped.leave_out((10,), stepped.result((10,)))
