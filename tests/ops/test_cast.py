"""Floats as integers: one meaning for every float, on every target, in the reference and when folded."""

import math

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.engine.reference import evaluate
from cgraph.ir.spec import DTYPES
from tests.support.kernels import TARGETS

INTEGERS = [str(d) for d in DTYPES if d.kind in "iu"]
FLOATS = ("float32", "float64")
POWERS = (7, 8, 15, 16, 31, 32, 62, 63, 64, 65, 100)
NEAR_ZERO = (0.0, -0.0, 0.4, 0.999, -0.999, -1.0, -1.5, 2.5, -2.0, -129.0, 300.7)
NOT_FINITE = (math.nan, math.inf, -math.inf)


def floats(dtype: str) -> np.ndarray:
    """Both sides of every limit of an integer dtype, and what no integer is."""
    limits = [np.array(sign * 2.0**n, dtype) for n in POWERS for sign in (1, -1)]
    beside = [np.nextafter(x, np.array(y, dtype)) for x in limits for y in (-math.inf, math.inf)]
    added = [x + x.dtype.type(5) for x in limits]
    return np.array([*limits, *beside, *added, *NEAR_ZERO, *NOT_FINITE], dtype)


def expected(x: float, to: np.dtype) -> int:
    """By Python's whole numbers."""
    if to == np.uint64 and x >= 2.0**63:
        return (in_bits(x - 2.0**63, 64) ^ (1 << 63)) % (1 << 64)
    bits = 8 * to.itemsize
    low = in_bits(x, 32 if to == np.int32 or bits < 32 else 64) % (1 << bits)
    return low - (1 << bits) if to.kind == "i" and low >> (bits - 1) else low


def in_bits(x: float, bits: int) -> int:
    """Towards zero, or the smallest integer of so many bits."""
    least = -(1 << (bits - 1))
    return math.trunc(x) if math.isfinite(x) and least <= math.trunc(x) < -least else least


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", FLOATS)
def test_every_target_gives_the_one_meaning(source, target):
    a = floats(source)
    x = cg.Var(a.shape, source, "x")
    function = cg.compile([x.astype(to) for to in INTEGERS], [x], engine=CpuEngine(target=target))
    for to, got in zip(INTEGERS, function(a)):
        assert got.tolist() == [expected(float(v), np.dtype(to)) for v in a], to


@pytest.mark.parametrize("length", [1, 3, 17])
@pytest.mark.parametrize("source", FLOATS)
def test_single_elements_are_no_other_than_those_in_vectors(source, length):
    a = np.resize(floats(source)[::-1], length)
    x = cg.Var(a.shape, source, "x")
    for to, got in zip(INTEGERS, cg.compile([x.astype(to) for to in INTEGERS], [x])(a)):
        assert got.tolist() == [expected(float(v), np.dtype(to)) for v in a], to


@pytest.mark.parametrize("source", FLOATS)
def test_reference_folded_and_frozen_values_are_the_same(source):
    a = floats(source)
    x, held = cg.Var(a.shape, source, "x"), cg.Var(a.shape, source).assign(a)
    for to in INTEGERS:
        want = cg.compile(x.astype(to), [x])(a)
        np.testing.assert_array_equal(cg.compile(x.astype(to), [x], engine="reference")(a), want)
        np.testing.assert_array_equal(cg.Const(a).astype(to).eval(), want)
        np.testing.assert_array_equal(cg.compile(held.astype(to), freeze=[held])(), want)


@pytest.mark.parametrize("source", FLOATS)
def test_what_an_integer_dtype_holds_is_what_numpy_gives(source):
    a = floats(source)
    for to in INTEGERS:
        limits = np.iinfo(to)
        held = np.array(
            [v for v in a.tolist() if math.isfinite(v) and limits.min <= math.trunc(v) <= limits.max], source
        )
        np.testing.assert_array_equal(cg.Const(held).astype(to).eval(), held.astype(to))


@pytest.mark.parametrize("to", ("uint8", "int8", "int32"))
def test_numbers_beyond_all_limits_are_quantized_alike_everywhere(to):
    given = np.resize(np.array([*NOT_FINITE, 1e30, -1e30, 0.5, 1.5, -0.5, 3e9, -3e9], "float32"), 40)
    x = cg.Var(given.shape, name="x")
    made = cg.quantize(x, 0.5, 3, to)
    (want,) = evaluate([made], {x: given})
    for target in TARGETS:
        np.testing.assert_array_equal(cg.compile(made, [x], engine=CpuEngine(target))(given), want)
