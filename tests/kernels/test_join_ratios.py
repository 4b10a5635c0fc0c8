"""Sums of bytes by ratios: the bytes of a division for every pair, in NumPy and in kernels."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.kernels.conv8 import join_ratios
from cgraph.kernels.conv8.calls import Join, Result
from cgraph.kernels.conv8.join_ratios import as_bytes, by_ratios, fused, join_quotient, ratios_of, with_ratios
from cgraph.ops.conv import Conv2d
from cgraph.ops.physical.integer import IntegerConv
from tests.support.emulated import TilesEngine
from tests.support.kernels import TARGETS


def result_of(first, zero, beside, r_zero, last, zero_after, low=0):
    """A sum of a byte around a zero point and of a residual; scales as float32, as files have them."""
    first, beside, last = (float(np.float32(x)) for x in (first, beside, last))
    return Result("u1", zero_after, low, 255, Join(first, -zero, 255 - zero, last, beside, r_zero))


SCALES = st.floats(0.01, 1.0)
BYTES = st.integers(0, 255)


@settings(max_examples=60)
@given(SCALES, BYTES, st.one_of(st.just(0.0), SCALES), BYTES, SCALES, BYTES)
def test_ratios_give_the_byte_of_the_division_for_every_pair(first, zero, beside, r_zero, last, zero_after):
    result = result_of(first, zero, beside, r_zero, last, zero_after)
    ratios = ratios_of(result, result.join)
    byte = np.arange(-zero, 256 - zero)[:, None]
    residual = np.arange(256)[None] if beside else None
    want = as_bytes(result, join_quotient(result.join, byte, residual))
    if ratios:
        got = by_ratios(ratios, byte, np.zeros(1) if residual is None else residual)
        np.testing.assert_array_equal(as_bytes(result, got), want)
    assert with_ratios(result).joins == ("ratios" if ratios else "division")


def test_most_sums_have_ratios():
    """Scales of sums are near each other, since the result contains both operands."""
    rng, some = np.random.default_rng(0), 0
    for _ in range(20):
        first, beside = rng.uniform(0.01, 0.02, 2)
        result = result_of(first, 120, beside, 0, rng.uniform(0.02, 0.04), 0)
        some += bool(ratios_of(result, result.join))
    assert some >= 17


def test_neighbours_are_tried_if_the_nearest_ratios_differ(monkeypatch):
    """With the nearest ratios alone, some of these sums have none."""

    def count(pairs):
        return sum(bool(ratios_of(r, r.join)) for r in pairs)

    rng = np.random.default_rng(1)
    pairs = [result_of(*rng.uniform(0.01, 0.02, 1), 120, *rng.uniform(0.01, 0.02, 1), 9, 0.025, 0) for _ in range(40)]
    with_neighbours = count(pairs)
    monkeypatch.setattr(join_ratios, "MOST_NEAR", -1)
    assert count(pairs) < with_neighbours


@pytest.mark.parametrize(
    "result",
    [
        result_of(0.3, 128, 0.3, 128, 0.6, 0),  # halves of floats that are rounded in either direction
        result_of(2.0**40, 128, 2.0**40, 128, 2.0**-40, 0),  # quotients beyond int32
    ],
)
def test_sums_that_no_ratios_give_are_divided(result):
    assert with_ratios(result).joins == "division"


def test_a_result_without_a_join_stays():
    assert with_ratios(Result("u1", 3)) == Result("u1", 3) and not Result("u1", 3).joins


FLOATS = st.floats(-(2.0**20), 2.0**20, width=32)


@settings(max_examples=300)
@given(FLOATS, FLOATS, FLOATS)
def test_a_fused_sum_is_rounded_once(x, y, z):
    got = fused(np.asarray([x * y]), np.asarray([z]))[0]  # a product of float32 is exact in float64
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    below, above = np.nextafter(got, np.float32(-np.inf)), np.nextafter(got, np.float32(np.inf))
    distance = abs(Fraction(float(got)) - exact)
    assert all(distance <= abs(Fraction(float(other)) - exact) for other in (below, above))


def test_a_fused_sum_in_the_middle_of_float64_is_not_rounded_twice():
    """Float64 rounds 1 + 2**-24 + 2**-60 to the middle of two float32 numbers, which would become the lower one."""
    assert fused(np.asarray([2.0**-60]), np.asarray([1 + 2.0**-24]))[0] == np.nextafter(np.float32(1), np.float32(2))
    assert fused(np.asarray([-(2.0**-60)]), np.asarray([1 + 2.0**-24]))[0] == 1


SUMS = {
    "ratios": with_ratios(result_of(0.013, 121, 0.017, 3, 0.021, 40, 9)),
    "ratios, no residual": with_ratios(result_of(0.013, 0, 0.0, 0, 0.021, 0)),
    "a division": result_of(0.013, 121, 0.017, 3, 0.021, 40, 9),
    "halves": with_ratios(result_of(0.3, 128, 0.3, 128, 0.6, 0)),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SUMS)
def test_kernels_have_the_byte_of_the_division_for_every_pair(name, target):
    """Every byte by a filter that copies it, beside every residual; in vectors and on emulated tiles."""
    result = SUMS[name]
    assert result.joins == ("ratios" if "ratios" in name else "division")
    x, residual = cg.Var((1, 32, 256, 256), "uint8", "x"), cg.Var((1, 4, 256, 256), "uint8", "residual")
    filters = np.zeros((4, 32, 1, 1), "i1")
    filters[:, 0] = 1
    bias, scale = np.full(4, result.join.low, "i4"), np.ones(4, "f4")
    operands = [x, *map(cg.Const, (filters, bias, scale)), *([residual] if result.join.beside else [])]
    y = apply(IntegerConv(Conv2d((1, 1), (0, 0, 0, 0), (1, 1), 1), 0, result), *operands)
    every = np.arange(256, dtype="u1")
    values = [np.broadcast_to(every[:, None], x.shape), np.broadcast_to(every, residual.shape)]
    inputs = [x, residual][: 2 if result.join.beside else 1]
    (want,) = evaluate([y], dict(zip(inputs, values)))
    for engine in (CpuEngine(target, poison=True), TilesEngine(target, poison=True)):
        got = cg.compile(y, inputs, engine=engine)(*values[: len(inputs)])
        np.testing.assert_array_equal(got, want)
