"""Storage dtypes in kernels: registers and memory, one instruction or integer arithmetic, one rounding of any dtype."""

import ml_dtypes
import numpy as np
import pytest

from cgraph.dtypes.storage import BFLOAT16, FLOAT16, STORAGE_DTYPES
from cgraph.kernels.llvm.storage import (
    is_one_instruction,
    memory_dtype,
    narrow,
    register_dtype,
    round_to_odd,
    round_to_storage,
    widen,
)
from cgraph.kernels.target import host_target
from cgraph.record import replace
from tests.support.emitted import applied, every_target

PEERS = {x.code: np.float16 if x.is_native else getattr(ml_dtypes, x.name) for x in STORAGE_DTYPES}
every_storage = pytest.mark.parametrize("storage", STORAGE_DTYPES, ids=lambda x: x.name)


def peer(storage, x):
    with np.errstate(all="ignore"):
        return x.astype(PEERS[storage.code])


def bits(x):
    return x.view(f"u{x.dtype.itemsize}")


NUMBERS = np.array(
    [0, -0.0, 1, -1, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1.0625, 1.1875, 2.0**-9,
     2.0**-10, -3 * 2.0**-10, 2.0**-24, 2.0**-25, 3e-45, 448, 464, 465, 65504, 65520, 65519, np.inf, -np.inf],
    "f4",
)  # fmt: skip
"""Halfway cases to even and to odd, ends of the ranges of each dtype, denormal numbers."""


def test_what_a_register_and_what_memory_has():
    for storage in STORAGE_DTYPES:
        assert register_dtype(storage.code) == "f4" and memory_dtype(storage.code) == f"u{storage.bits // 8}"
    for dtype in ("f4", "f8", "i8", "b1", "u2"):
        assert register_dtype(dtype) == memory_dtype(dtype) == dtype


@every_storage
@every_target
@pytest.mark.parametrize("lanes", [0, 8])
def test_every_bit_pattern_widens_to_its_number(lanes, target, storage):
    every = np.arange(1 << storage.bits).astype(storage.unsigned)
    if not lanes:
        every = every[:: 1 if storage.bits == 8 else 97].copy()
    got = applied(lambda k, x: widen(k, x, storage.code), target, every, dtypes=("f4",), lanes=lanes)
    with np.errstate(invalid="ignore"):
        want = every.view(PEERS[storage.code]).astype("f4")
    is_number = ~np.isnan(want)
    np.testing.assert_array_equal(bits(got)[is_number], bits(want)[is_number])
    assert np.isnan(got[~is_number]).all() and not is_number.all()


@every_storage
@every_target
@pytest.mark.parametrize("lanes", [0, 8])
def test_numbers_narrow_to_the_nearest_and_to_even(lanes, target, storage):
    got = applied(lambda k, x: narrow(k, x, storage.code), target, NUMBERS, dtypes=(storage.unsigned,), lanes=lanes)
    want = peer(storage, NUMBERS)
    np.testing.assert_array_equal(got[~np.isnan(want.astype("f4"))], bits(want)[~np.isnan(want.astype("f4"))])
    assert np.isnan(got.view(PEERS[storage.code]).astype("f4")[np.isnan(want.astype("f4"))]).all()


def test_only_float16_has_an_instruction_and_only_where_the_target_says_so():
    class Asked:
        def __init__(self, converts: bool) -> None:
            self.target = replace(host_target(), converts_half=converts)

    has = [[is_one_instruction(Asked(converts), s) for s in STORAGE_DTYPES] for converts in (True, False)]
    assert has == [[x == FLOAT16 for x in STORAGE_DTYPES], [False] * len(STORAGE_DTYPES)]


@every_target
@pytest.mark.parametrize("lanes", [0, 8])
def test_rounding_to_odd_leaves_a_trace_of_what_was_cut_off(lanes, target):
    """An exact number stays; of the two neighbours of any other, the one with an odd last bit."""
    step, tiny = 2.0**-23, 2.0**-50
    xs = np.array([1, 1 + step, 1 + tiny, 1 - tiny, 1 + step + tiny, 1 + step - tiny, 1 + 2 * step - tiny, 0])
    want = np.array([1, 1 + step, 1 + step, 1 - step / 2, 1 + step, 1 + step, 1 + step, 0], "f4")
    for sign in (1, -1):
        got = applied(round_to_odd, target, sign * xs, dtypes=("f4",), lanes=lanes)
        np.testing.assert_array_equal(got, sign * want)
    ends = np.array([1e308, -1e308, np.inf, -np.inf, 5e-324, -5e-324, 2.0**-149, np.nan])
    most, least = np.finfo("f4").max, 2.0**-149
    got = applied(round_to_odd, target, ends, dtypes=("f4",), lanes=lanes)
    np.testing.assert_array_equal(got, np.array([most, -most, np.inf, -np.inf, least, -least, least, np.nan], "f4"))


@every_target
@pytest.mark.parametrize("storage", [FLOAT16, BFLOAT16], ids=lambda x: x.name)
def test_float64_and_wide_integers_are_rounded_once(target, storage):
    """A rounding to float32 in between would reach the halfway point and go to the even neighbour."""
    last = 2.0**-storage.mantissa
    half = last / 2
    xs = np.array([1 + half + 2.0**-40, 1 + half - 2.0**-40, 1 + half, 1 + 3 * half, -1 - half - 2.0**-40, 2, 0, -0.5])
    want = np.array([1 + last, 1, 1, 1 + 2 * last, -1 - last, 2, 0, -0.5], "f4")
    np.testing.assert_array_equal(
        applied(lambda k, x: round_to_storage(k, x, storage.code), target, xs, dtypes=("f4",)), want
    )
    whole = 1 << 30
    integers = np.array([whole + 1, whole, -whole - 1, 0, 1, -1, 3, 127]) + np.array([whole >> 9, *[0] * 7])
    got = applied(lambda k, x: round_to_storage(k, x, BFLOAT16.code), target, integers, dtypes=("f4",))
    # 2**30 + 2**21 + 1 lies between the halfway points of bfloat16, whose last place is 2**23 there
    assert got.tolist() == [whole, whole, -whole, 0, 1, -1, 3, 127]
    above = np.array([whole + (1 << 22) + 1, -whole - (1 << 22) - 1, whole + (1 << 22), *[0] * 5])
    got = applied(lambda k, x: round_to_storage(k, x, BFLOAT16.code), target, above, dtypes=("f4",))
    assert got[:3].tolist() == [whole + (1 << 23), -whole - (1 << 23), whole]


@every_target
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "f4"])
def test_what_float32_holds_is_rounded_from_there(target, dtype):
    xs = NUMBERS[:8].copy() if dtype == "f4" else np.array([0, 1, 127, 100, 17, 3, 9, np.iinfo(dtype).max], dtype)
    if dtype[0] == "i":
        xs[1], xs[2] = -1, np.iinfo(dtype).min
    got = applied(lambda k, x: round_to_storage(k, x, BFLOAT16.code), target, xs, dtypes=("f4",))
    np.testing.assert_array_equal(got, peer(BFLOAT16, xs.astype("f4")).astype("f4"))
