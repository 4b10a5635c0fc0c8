"""Running reductions: identities, which value wins, sums that keep their rounding errors, ties of indices."""

import math

import numpy as np
import pytest

from cgraph.kernels.llvm.accumulate import Accumulator, get, identity_of, put
from cgraph.kernels.target import host_target
from tests.support.emitted import every_target, run_emitted

HOST = host_target()
INF, NAN = np.inf, np.nan
NUMPY = {
    "sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "any": np.any, "all": np.all,
    "argmin": np.argmin, "argmax": np.argmax,
}  # fmt: skip


def reduced(kind, x, target=HOST, lanes=4, chain=2, indices=None):
    """What an accumulator makes of all elements: its states are flushed after every `chain` vectors."""
    finds_index = kind.startswith("arg")
    out, index = np.zeros(1, x.dtype), np.zeros(1, "i8")
    where = np.arange(len(x)) if indices is None else indices

    def write(k, source, numbers, place, at):
        acc = Accumulator(k, kind, source.dtype, indices is not None)
        total = [k.slot(v) for v in acc.total_start(lanes)]
        for start in range(0, len(x), chain * max(lanes, 1)):
            state = acc.start(lanes)
            for i in range(start, min(start + chain * max(lanes, 1), len(x)), max(lanes, 1)):
                state = acc.add(state, source.load(i, lanes), numbers.load(i, lanes) if finds_index else None)
            put(total, acc.flush(get(total), state))
        result = acc.finish(acc.join_lanes(get(total)))
        place.store(result[0])
        if finds_index:
            at.store(result[1])

    run_emitted(write, target, x, where, out, index)
    return index[0] if finds_index else out[0]


@pytest.mark.parametrize("kind", ["min", "max", "argmin", "argmax", "sum", "prod"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i8", "u1", "u8"])
def test_identities_change_no_value_of_the_dtype(dtype, kind):
    identity = identity_of(kind, dtype)
    info = np.iinfo(dtype) if dtype[0] != "f" else np.finfo(dtype)
    for x in (info.min, info.max, dtype[0] == "f" and -INF, dtype[0] == "f" and INF):
        x, start = np.array(x, dtype), np.array(identity, dtype)
        if kind in ("sum", "prod"):
            f = np.add if kind == "sum" else np.multiply
            assert f(start, x) == x
        else:
            f = np.minimum if kind.endswith("min") else np.maximum
            assert f(start, x) == x and (dtype[0] != "f" or np.isinf(start))
    assert [identity_of(kind, "b1") for kind in ("any", "all", "min", "max")] == [0, 1, 1, 0]


@every_target
@pytest.mark.parametrize("kind", ["sum", "prod", "min", "max", "argmin", "argmax"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u8"])
@pytest.mark.parametrize("lanes", [0, 4])
def test_reductions_are_numpys(lanes, dtype, kind, target):
    rng = np.random.default_rng(0)
    x = rng.integers(0 if dtype[0] == "u" else -3, 4, 24).astype(dtype)
    if kind == "prod":
        x[x == 0] = 1
    if dtype == "u8" and kind[-3:] in ("min", "max"):
        x[7] = np.iinfo(dtype).max  # negative as a number with a sign
    want = NUMPY[kind](x, **({"dtype": dtype} if kind in ("sum", "prod") else {}))
    got = reduced(kind, x, target, lanes)
    assert got == want, x  # lanes meet last; ties keep the least index


@pytest.mark.parametrize("kind", ["any", "all"])
@pytest.mark.parametrize("values", [[0] * 8, [1] * 8, [0, 0, 0, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 0, 1, 1]])
def test_truth_is_numpys(values, kind):
    x = np.array(values, "?")
    assert reduced(kind, x) == NUMPY[kind](x)


@pytest.mark.parametrize("kind", ["min", "max", "argmin", "argmax"])
@pytest.mark.parametrize("at", [[0], [5], [5, 2], [15]])
def test_a_nan_wins_and_the_first_of_several_has_the_index(at, kind):
    x = np.arange(16.0)
    x[at] = NAN
    x[8], x[9] = INF, -INF
    np.testing.assert_equal(reduced(kind, x), NUMPY[kind](x))


@pytest.mark.parametrize("kind", ["argmin", "argmax"])
def test_of_equal_values_that_come_in_any_order_the_least_index_is_kept(kind):
    x, indices = np.array([1, 5, 5, 1, 5, 1, 1, 5], "i4"), np.array([9, 8, 3, 12, 2, 7, 11, 4])
    assert reduced(kind, x, lanes=0, indices=indices) == (2 if kind == "argmax" else 7)
    assert reduced(kind, x, lanes=4, indices=indices) == (2 if kind == "argmax" else 7)
    nans = np.array([1, NAN, 2, NAN, NAN, 0, 1, 1])
    assert reduced(kind, nans, lanes=4, indices=indices) == 2


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_sum_keeps_what_each_flush_would_round_away(dtype, target):
    """Each chain sums without error here, so that the total, with its rounding errors, is exact to the last bit."""
    large = 2.0**30 if dtype == "f4" else 2.0**60
    x = np.array([large, 1, 1, 1, -large, 1, 1, 0.25], dtype)
    assert reduced("sum", x, target, lanes=0, chain=1) == 5.25
    lanes = np.repeat(np.array([large, 1, 1, 0.25, -large], dtype), 4)
    assert reduced("sum", lanes, target, lanes=4, chain=1) == 9
    x = np.random.default_rng(0).uniform(0.5, 1, 512).astype(dtype)
    exact = math.fsum(x.astype("f8"))
    assert abs(reduced("sum", x, target, lanes=4, chain=4) - exact) <= 8 * np.finfo(dtype).eps * exact / 4


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_an_infinite_sum_is_infinite_and_not_a_nan(dtype):
    x = np.ones(16, dtype)
    x[3] = INF
    got = reduced("sum", x)
    assert got.real == INF and (dtype[0] == "f" or got.imag == 0)
    x[9] = -INF
    assert np.isnan(reduced("sum", x).real)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_sums_keep_the_errors_of_both_parts(dtype):
    large = 2.0**30 if dtype == "c8" else 2.0**60
    x = np.array([complex(large, 1), complex(1, large), complex(-large, 1), complex(1, -large)], dtype)
    assert reduced("sum", x, lanes=0, chain=1) == 2 + 2j


def test_the_parts_of_a_state_have_their_dtypes():
    dtypes = {kind: Accumulator(None, kind, "f4") for kind in NUMPY}
    assert dtypes["sum"].total_dtypes == ["f4", "f4"] and dtypes["sum"].dtypes == ["f4"]
    assert dtypes["argmax"].total_dtypes == ["f4", "i8"] == dtypes["argmin"].dtypes
    assert dtypes["max"].total_dtypes == ["f4"]
    assert Accumulator(None, "sum", "i8").total_dtypes == ["i8"]
