"""Fixed-point arithmetic of TFLite by hand: factors and shifts, halves away from zero, bounds, tables."""

from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.engine.reference import evaluate
from cgraph.errors import FormatError
from cgraph.formats.tflite.fixed import (
    as_bytes,
    as_words,
    bounds_of,
    byte_of,
    bytes_of,
    floats_for,
    halves_away,
    nearest,
    of_floats,
    parts_of,
    scale_factor,
    subtract_zero,
)
from cgraph.formats.tflite.value import QuantisedFormat, TfliteValue
from cgraph.ops.leaf import Const

HALVES = np.array([-2.5, -1.5, -0.5, -0.49, 0, 0.49, 0.5, 1.5, 2.5])
AWAY = [-3, -2, -1, 0, 0, 0, 1, 2, 3]


def form(scale=0.5, zero=3, signed=False):
    return QuantisedFormat(np.array([scale], "f4"), np.array([zero]), 0, signed)


def value(node):
    return evaluate([node], {})[0]


@pytest.mark.parametrize(
    ("scale", "factor", "shift"),
    [
        (1.0, 2**30, 1),
        (0.5, 2**30, 0),
        (0.75, 3 * 2**29, 0),
        (3.0, 3 * 2**29, 2),
        (2.0**-32, 2**30, -31),
        (2.0**-33, 0, 0),
        (2.0**29, 2**30, 30),
        (2.0**40, 2**31 - 1, 30),
        (np.nextafter(1, 0), 2**30, 1),  # its fraction rounds up to 1
    ],
)
def test_a_scale_is_a_fraction_of_31_bits_and_a_shift(scale, factor, shift):
    assert parts_of(scale).tolist() == [factor, shift] and parts_of(scale).dtype == np.int32


def test_scales_are_finite_and_positive():
    assert parts_of([0.5, 3.0]).tolist() == [[2**30, 3 * 2**29], [0, 2]]
    for scale in (0.0, -1.0, np.inf, np.nan, [0.5, 0.0]):
        with pytest.raises(FormatError, match="a scale is 0 or infinite"):
            parts_of(scale)


def test_halves_go_away_from_zero():
    assert nearest(HALVES).tolist() == AWAY
    assert value(halves_away(Const(HALVES))).tolist() == AWAY
    x = Const(np.array([5, -5, 4], "i4"))
    assert value(scale_factor(x, 0.25, once=True)).tolist() == [1, -1, 1]
    assert value(scale_factor(x, 0.25)).tolist() == [2, -1, 1]  # 5 / 4 is rounded twice: 5 / 2 to 3, then 3 / 2 to 2
    assert value(scale_factor(x, 3.0)).tolist() == [15, -15, 12]


def test_bytes_and_zero_points():
    numbers = Const(np.array([-300, -4, 0, 7, 300], "i4"))
    assert value(as_bytes(numbers, form())).tolist() == [0, 0, 3, 10, 255]
    assert value(as_bytes(numbers, form(), (2, 9))).tolist() == [2, 2, 3, 9, 9]
    assert value(as_bytes(numbers, form(signed=True))).tolist() == [0, 127, 131, 138, 255]
    assert value(bytes_of(Const(np.array([-9, -0.5, 0.5, 999], "f4")), form())).tolist() == [0, 2, 4, 255]
    x = TfliteValue(Const(np.array([0, 3, 255], "u1")), quantised=form())
    assert value(subtract_zero(x)).tolist() == [-3, 0, 252]
    assert value(floats_for(x, x.node)).tolist() == [-1.5, 0, 126]
    assert byte_of(1.25, form()) == 6 and byte_of(-1.25, form()) == 0 and byte_of(1e30, form()) == 3 + 2**30


def context(result, activation=0, operands=()):
    return SimpleNamespace(option=lambda name: activation, result=result, __getitem__=None, operands=operands)


@pytest.mark.parametrize(
    ("activation", "bounds"),
    [(0, (0, 255)), (1, (3, 255)), (2, (1, 5)), (3, (3, 15))],
    ids=["none", "relu", "unit", "6"],
)
def test_an_activation_bounds_bytes(activation, bounds):
    assert bounds_of(context(form(), activation)) == bounds and bounds_of(context(form()), activation) == bounds
    low, high = bounds_of(context(form(0.01, 250), activation))
    assert 0 <= low <= high <= 255


def test_another_activation_is_refused():
    with pytest.raises(FormatError, match="the activation 4 is not supported on quantised values"):
        bounds_of(context(form(), 4))


class Operand(SimpleNamespace):
    """Stands for an operator with one operand."""

    def __getitem__(self, i):
        return self.x


def test_a_function_is_a_table_of_bytes():
    numbers = np.arange(256).astype("u1").reshape(2, 2, 8, 8)
    x = TfliteValue(Const(numbers), first=True, quantised=form(0.5, 128))
    got = of_floats(Operand(x=x, result=form(0.25, 10)), lambda v: v * v / 4)
    want = np.clip(nearest((0.5 * (numbers.astype(float) - 128)) ** 2 / 4 / 0.25) + 10, 0, 255)
    assert got.first
    np.testing.assert_array_equal(value(got.node), want)


@pytest.mark.parametrize(("scale", "to"), [(0.45, 0.3), (0.9, 0.6), (0.7, 0.2)])
def test_a_functions_results_are_multiplied_by_the_rounded_reciprocal_of_the_scale(scale, to):
    """Many of these results lie halfway between two bytes, so the order of roundings decides them."""
    x = TfliteValue(Const(np.arange(256).astype("u1")), quantised=form(scale, 128))
    got = value(of_floats(Operand(x=x, result=form(to, 128)), lambda v: v).node)
    numbers = np.float32(scale) * np.arange(-128, 128).astype("f4")
    products, quotients = numbers * (np.float32(1) / np.float32(to)), numbers / np.float32(to)
    want, other = (np.clip(nearest(z) + 128, 0, 255) for z in (products, quotients))
    assert (want != other).any()
    np.testing.assert_array_equal(got, want)


def scaled_words(x, scale):
    """As `MultiplyByQuantizedMultiplier` of int64 in TFLite's common.h, in exact integers."""
    factor, shift = (int(n) for n in parts_of(scale))
    short = (factor + (1 << 15)) >> 16 if factor < 0x7FFF0000 else 0x7FFF
    places = 15 - shift
    return (x * short + (1 << (places - 1))) >> places


WIDE = QuantisedFormat(np.array([0.5], "f4"), np.array([0]), 0, False, np.dtype("int16"))


@pytest.mark.parametrize(
    "scale",
    [1 - 2.0**-31, 1 - 2.0**-16, 1 - 2.0**-17, 1 - 2.0**-15, 0.5 - 2.0**-20, 0.5, 0.3, 1.0, 1.7, 2.0**-20, 2.0**13,
     2.0**14 - 1],
)  # fmt: skip
def test_sums_of_int16_are_scaled_by_15_bits_and_halves_go_up(scale):
    numbers = [0, 1, -1, 2, -2, 5, -5, 1023, -1024, 32767, -32768, 10**6, -(10**6), 2**31, -(2**31)]
    for low, high in ((-(2**15), 2**15 - 1), (0, 2**15 - 1), (-7, 900)):
        got = value(as_words(Const(np.array(numbers)), scale, WIDE, (low, high)))
        assert got.dtype == np.int16
        assert got.tolist() == [min(max(scaled_words(n, scale), low), high) for n in numbers]


def test_each_channel_of_int16_has_its_scale_and_none_is_too_large():
    numbers, scales = np.arange(-6, 6).reshape(1, 3, 2, 2) * 999, np.array([0.25, 1.5, 3.0]).reshape(3, 1, 1)
    got = value(as_words(Const(numbers), scales, WIDE, WIDE.limits))
    for channel in range(3):
        want = [scaled_words(int(n), scales[channel, 0, 0]) for n in numbers[0, channel].ravel()]
        assert got[0, channel].ravel().tolist() == want
    for scale in (2.0**14, [0.5, 2.0**14], 2.0**20):
        with pytest.raises(FormatError, match="a scale is too large"):
            as_words(Const(numbers), np.reshape(scale, (-1, 1, 1)), WIDE, WIDE.limits)
