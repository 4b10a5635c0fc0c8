"""Random numbers: the published test vectors, the kernels' bits equal the reference's, and the right distribution."""

import numpy as np
import pytest

from cgraph.kernels import philox
from cgraph.kernels.kernel import Pointer, contiguous
from cgraph.kernels.random.calls import random_calls
from cgraph.kernels.random.emit import to_float, words
from cgraph.kernels.target import host_target, target_named
from tests.support.emitted import applied
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near

every_target = pytest.mark.parametrize("target", TARGETS)
KEY = np.array([0x12345678, 0x9ABCDEF0], np.uint32)
REFERENCE = {
    ("bits", "u4"): lambda key, n: philox.bits(key, n, 4),
    ("bits", "u8"): lambda key, n: philox.bits(key, n, 8),
    ("uniform", "f4"): lambda key, n: philox.uniform(key, n, "f4"),
    ("uniform", "f8"): lambda key, n: philox.uniform(key, n, "f8"),
    ("bernoulli", "b1"): lambda key, n: philox.bernoulli(key, n, 0.3),
}


def drawn(kind, dtype, size, target="host", order="all", key=KEY):
    out = np.zeros(size, bool) if dtype == "b1" else np.full(size, -1).astype(dtype)
    run_calls(random_calls(target_named(target), kind, view_of(out), view_of(key), 0.3), target_named(target), order)
    return out


def test_the_first_block_of_key_zero_is_the_published_one():
    """Random123's known answer for philox 4x32-10 with counter and key 0."""
    got = philox.words(np.zeros(2, np.uint32), np.zeros(1, np.uint64))[:, 0]
    np.testing.assert_array_equal(got, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])


@every_target
def test_counters_have_64_bits(target):
    """Numbers of blocks that no array of a test reaches: words differ above and below 2**32."""
    counter = np.array([0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1, 5 << 40], np.uint64)
    key = KEY.tolist()

    def write(k, c):
        return words(k, tuple(k.const(x, "u4", 8) for x in key), c)

    got = applied(write, target_named(target), counter, dtypes=("u4",) * 4)
    np.testing.assert_array_equal(np.stack(got), philox.words(KEY, counter))


@every_target
def test_integers_of_53_bits_become_floats_exactly(target):
    """Both halves, their limits, and values next to powers of two."""
    x = np.array([0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**52, 2**52 + 1, 2**53 - 1], np.uint64)
    got = applied(lambda k, v: to_float(k, v, "f8"), target_named(target), x, dtypes=("f8",))
    assert [int(v) for v in got] == x.tolist()


@every_target
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind, dtype", REFERENCE)
@pytest.mark.parametrize("size", [1, 63, 64, 1000, 70_001])
def test_the_bits_are_those_of_the_reference(target, order, kind, dtype, size):
    np.testing.assert_array_equal(drawn(kind, dtype, size, target, order), REFERENCE[kind, dtype](KEY, size))


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_normal_is_within_rounding_of_the_reference(target, dtype):
    got, want = drawn("normal", dtype, 70_001, target), philox.normal(KEY, 70_001, dtype)
    assert_near(got, want, "normal numbers")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_moments_are_those_of_the_distributions(dtype):
    n = 1_000_000
    u, z = drawn("uniform", dtype, n).astype("f8"), drawn("normal", dtype, n).astype("f8")
    assert u.min() >= 0 and u.max() < 1
    assert_near([u.mean(), u.var()], [1 / 2, 1 / 12], "drawn moments", 1 / np.sqrt(n))
    moments = [z.mean(), z.var(), (z**3).mean(), (z**4).mean()]
    assert_near(moments, [0, 1, 0, 3], "drawn moments", np.sqrt(96 / n))
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 5 / np.sqrt(n)


def test_bernoulli_has_its_probability():
    n = 1_000_000
    assert abs(drawn("bernoulli", "b1", n).mean() - 0.3) < 5 * np.sqrt(0.21 / n)


def test_another_key_gives_other_numbers():
    other = KEY + np.uint32(1)
    assert np.mean(drawn("uniform", "f4", 1000) == drawn("uniform", "f4", 1000, key=other)) < 0.01


def test_a_dtype_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="no random"):
        random_calls(target_named("host"), "uniform", view_of(np.empty(3, "i4")), view_of(KEY))


@every_target
@pytest.mark.parametrize(("probability", "want"), [(0.0, False), (1.0, True)])
def test_with_a_probability_of_none_or_all_every_element_is_the_same(probability, want, target):
    out, key = np.full((30, 40), not want), KEY.view("u8")
    run_calls(random_calls(target_named(target), "bernoulli", view_of(out), view_of(key), probability))
    assert (out == want).all()


@pytest.mark.parametrize(("kind", "dtype"), [*REFERENCE, ("normal", "f4"), ("normal", "f8")])
def test_elements_count_in_c_order_and_a_key_may_be_one_number(kind, dtype):
    out = np.zeros((7, 1, 30), bool) if dtype == "b1" else np.zeros((7, 1, 30), dtype)
    run_calls(random_calls(target_named("host"), kind, view_of(out), view_of(KEY.view("u8")), 0.3))
    np.testing.assert_array_equal(out.ravel(), drawn(kind, dtype, 210))
    empty = contiguous(Pointer(np.zeros((3, 0), out.dtype)), (3, 0), dtype)
    assert random_calls(target_named("host"), kind, empty, view_of(KEY)) == []


@pytest.mark.parametrize("dtype", ["i8", "u4", "u1"])
def test_a_key_has_8_bytes_of_any_dtype(dtype):
    """The same bits are the same key; none, fewer, more, and bytes that lie apart are refused."""
    bits = np.arange(3, 11, dtype="u1")
    results = []
    for key in (bits, bits.view(dtype)):
        out = np.zeros(100, "f4")
        run_calls(random_calls(host_target(), "uniform", view_of(out), view_of(key)))
        results.append(out)
    np.testing.assert_array_equal(*results)
    apart = np.zeros(16, "u1")[::2]
    for key in (bits[:7], np.zeros(9, "u1"), np.zeros(0, "u1"), apart, np.zeros(2, "i8")):
        with pytest.raises(ValueError, match="a key of"):
            random_calls(host_target(), "uniform", view_of(np.zeros(4, "f4")), view_of(key))
    with pytest.raises(ValueError, match="a contiguous view"):
        random_calls(host_target(), "uniform", view_of(np.zeros(8, "f4")[::2]), view_of(bits))
    assert random_calls(host_target(), "uniform", contiguous(Pointer(None), (0,), "f4"), view_of(bits)) == []


@pytest.mark.parametrize(
    ("count", "dtype", "tasks"),
    [(1, "f4", 1), (256 * 64, "f4", 1), (256 * 64 + 1, "f4", 2), (512 * 32, "f8", 1), (512 * 32 + 1, "f8", 2)],
)
def test_a_task_has_half_as_many_numbers_as_those_of_other_kernels(count, dtype, tasks):
    """In groups of 64 numbers of 4 bytes, or 32 of 8."""
    out = contiguous(Pointer(None), (count,), dtype)
    [call] = random_calls(host_target(), "normal", out, view_of(np.zeros(1, "i8")))
    assert call.tasks == tasks
