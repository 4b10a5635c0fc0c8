"""Philox in NumPy beside the algorithm in Python's integers: known answers, which element takes which word, ranges."""

import numpy as np
import pytest

from cgraph.kernels import philox
from tests.support.tolerance import assert_near

KEY = np.array([0x12345678, 0x9ABCDEF0], np.uint32)
MASK = 0xFFFFFFFF


def block(counter, key):
    """Philox 4x32-10 of Salmon and others 2011, in Python's integers."""
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        x, y = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(y >> 32) ^ c[1] ^ k0, y & MASK, (x >> 32) ^ c[3] ^ k1, x & MASK]
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c


def of_number(n, key=KEY):
    return block((n & MASK, n >> 32, 0, 0), tuple(map(int, key)))


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ((0,) * 4, (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((MASK,) * 4, (MASK, MASK), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_the_oracle_here_has_the_known_answers_of_random123(counter, key, answer):
    assert " ".join(f"{x:08x}" for x in block(counter, key)) == answer


def test_words_are_those_of_the_counter_of_64_bits_and_of_both_halves_of_the_key():
    counters = [0, 1, 2**32 - 1, 2**32, 2**63 + 5, 2**64 - 1]
    got = philox.words(KEY, np.array(counters, np.uint64))
    assert got.dtype == np.uint32 and got.shape == (4, 6)
    assert got.T.tolist() == [of_number(n) for n in counters]
    assert philox.words(KEY[::-1], np.array([7], np.uint64)).T.tolist() == [of_number(7, KEY[::-1])]


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 200])
def test_each_element_takes_the_part_and_the_lane_of_its_number(size):
    got4, got8 = philox.bits(KEY, size, 4), philox.bits(KEY, size, 8)
    assert (got4.dtype, got8.dtype, len(got4), len(got8)) == (np.uint32, np.uint64, size, size)
    for i in range(size):
        group, rest = divmod(i, 64)
        assert got4[i] == of_number(16 * group + rest % 16)[rest // 16]
        group, rest = divmod(i, 32)
        words = of_number(16 * group + rest % 16)
        assert got8[i] == words[2 * (rest // 16)] | words[2 * (rest // 16) + 1] << 32


@pytest.mark.parametrize(("dtype", "itemsize", "bits"), [("f4", 4, 24), ("f8", 8, 53)])
def test_uniform_numbers_are_the_highest_bits_as_a_fraction(dtype, itemsize, bits):
    got = philox.uniform(KEY, 300, dtype)
    whole = philox.bits(KEY, 300, itemsize).astype(object)
    assert got.dtype == dtype and (got >= 0).all() and (got < 1).all()
    assert [int(x * 2**bits) for x in got.tolist()] == [int(x) >> (8 * itemsize - bits) for x in whole]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_normal_numbers_are_two_of_each_pair_cosine_first(dtype):
    """Box and Muller by hand, in float64: a radius of the pair's first number, an angle of its second."""
    got = philox.normal(KEY, 32 if dtype == "f8" else 64, dtype)
    assert got.dtype == dtype
    for lane in range(16):
        words = of_number(lane)
        if dtype == "f4":
            pairs = [((words[2 * i] + 0.5) / 2**32, words[2 * i + 1] / 2**32) for i in range(2)]
        else:
            first, second = (words[2 * i] | words[2 * i + 1] << 32 for i in range(2))
            pairs = [(((first >> 11) + 0.5) / 2**53, (second >> 11) / 2**53)]
        want = []
        for u, turns in pairs:
            radius = np.sqrt(-2 * np.log(u))
            want += [radius * np.cos(2 * np.pi * turns), radius * np.sin(2 * np.pi * turns)]
        name = "float32 formulas near zero" if dtype == "f4" else "float64 formulas near zero"
        assert_near(got[lane::16], np.array(want), name)


def test_a_probability_is_the_share_of_numbers_below_it():
    bits = philox.bits(KEY, 1000, 4)
    for probability in (0.0, 2.0**-32, 0.3, 1.0):
        got = philox.bernoulli(KEY, 1000, probability)
        assert got.dtype == bool and got.tolist() == [int(x) < probability * 2**32 for x in bits]
    assert philox.bernoulli(KEY, 1000, 1.0).all() and not philox.bernoulli(KEY, 1000, 0.0).any()
