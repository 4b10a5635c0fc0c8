"""Numbers of 16 bits in halves of words, by arithmetic where instructions are absent: signs, wrapping sums."""

import numpy as np
import pytest

from cgraph.kernels.llvm import halves
from cgraph.kernels.target import target_named
from cgraph.record import replace
from tests.support.emitted import run_emitted

TARGET = replace(target_named("portable"), architecture="generic")
WORDS = np.array([0, -1, 0x7F80FF01, -0x7F7F7F80, 0x12FE34DC, -(2**31), 2**31 - 1], "i4")


def computed(function, *operands):
    """What a function of words returns for each row of its operands."""
    out = np.zeros(len(operands[0]), "i4")

    def write(k, *places):
        for i in range(len(out)):
            places[-1].store(function(k, *(x.load(i) for x in places[:-1])), i)

    run_emitted(write, TARGET, *operands, out)
    return out


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("signed", [False, True])
def test_every_other_byte_becomes_a_number_of_16_bits(odd, signed):
    got = computed(lambda k, x: halves.bytes_as_halves(k, x, odd, signed), WORDS)
    each = WORDS.view("i1" if signed else "u1").reshape(-1, 4)[:, odd::2]
    assert got.view("i2").reshape(-1, 2).tolist() == each.astype("i2").tolist()


def test_products_of_halves_are_added_and_wrap():
    x, y, z = WORDS, WORDS[::-1].copy(), np.roll(WORDS, 1)
    parts = x.view("i2").reshape(-1, 2).astype("i4") * y.view("i2").reshape(-1, 2).astype("i4")
    with np.errstate(over="ignore"):
        assert computed(halves.add_products, x, y, z).tolist() == (z + parts[:, 0] + parts[:, 1]).tolist()
        for high in (0, 1):
            got = computed(lambda k, *xs, high=high: halves.add_product(k, *xs, high), x, y, z)
            assert got.tolist() == (z + parts[:, high]).tolist()


@pytest.mark.parametrize("added", [0, 1 << 31])
def test_the_upper_word_of_a_product(added):
    x, y = (grid.ravel().astype("i4") for grid in np.meshgrid(WORDS, WORDS))
    got = computed(lambda k, *xs: halves.upper_product(k, *xs, added), x, y)
    assert got.tolist() == [((int(a) * int(b) + added) >> 32 & 0xFFFFFFFF ^ 2**31) - 2**31 for a, b in zip(x, y)]


def test_halves_are_multiplied_crosswise_and_put_together():
    x, y, z = WORDS, WORDS[::-1].copy(), np.roll(WORDS, 1)
    left, right = (a.view("i2").reshape(-1, 2) for a in (x, y))
    with np.errstate(over="ignore"):
        for high in (0, 1):
            got = computed(lambda k, *xs, high=high: halves.add_crossed(k, *xs, high), x, y, z)
            assert got.tolist() == (z + left[:, high].astype("i4") * right[:, 1 - high]).tolist()
    for i, function in enumerate((halves.low_halves, halves.high_halves)):
        got = computed(function, x, y).view("i2").reshape(-1, 2)
        assert got.tolist() == np.stack([left[:, i], right[:, i]], 1).tolist()


def test_the_nearest_byte():
    x = np.array([-(2**31), -1, 0, 7, 255, 256, 2**31 - 1], "i4")
    assert computed(halves.saturated_byte, x).tolist() == [0, 0, 0, 7, 255, 255, 255]


def test_two_words_are_stored_and_loaded_together():
    x, out = WORDS[:6].copy(), np.zeros(6, "i4")

    def write(k, source, to):
        first, second = halves.load_pair(k, source + 1)
        halves.store_pair(k, to + 3, second, first)

    run_emitted(write, TARGET, x, out)
    assert out.tolist() == [0, 0, 0, x[2], x[1], 0]
