"""Loops that carry values, tasks as digits, masks, shuffles: what tiles are written with."""

import numpy as np
import pytest

from cgraph.kernels.llvm import flow
from cgraph.kernels.target import host_target
from tests.support.emitted import applied, every_target, run_emitted

HOST = host_target()


@pytest.mark.parametrize(("low", "high", "step"), [(0, 10, 1), (3, 10, 4), (0, 0, 1), (5, 2, 1)])
def test_a_fold_carries_each_value_to_its_place_in_the_next_round(low, high, step):
    out = np.zeros(3, "i8")

    def write(k, place):
        with flow.fold(k, low, high, [k.const(0, "i8"), k.const(1, "i8"), place], step) as s:
            a, b, at = s.values
            s.next = [b, a + b + s.i, at]
        first, second, at = s.values
        at.store(first)
        at.store(second, 1)

    run_emitted(write, HOST, out)
    a, b = 0, 1
    for i in range(low, high, step):
        a, b = b, a + b + i
    assert out.tolist() == [a, b, 0]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_loop_that_counts_down_carries_values_as_often_as_it_is_told(count):
    out = np.zeros(2, "i8")

    def write(k, place):
        with flow.repeat(k, k.const(count, "i8"), [k.const(1, "i8"), place]) as s:
            number, at = s.values
            s.next = [flow.hidden(k, number * 3), at]
        number, at = s.values
        at.store(number, 1)

    run_emitted(write, HOST, out)
    assert out.tolist() == [0, 3**count]


@pytest.mark.parametrize(("first", "last"), [(0, 48), (5, 6), (7, 31), (47, 48), (3, 3)])
def test_tasks_have_their_digits_wherever_a_call_begins(first, last):
    out = np.full((48, 4), -1)

    def write(k, place):
        sizes = [k.const(n, "i8") for n in (2, 3, 4)]
        task = k.slot(k.tasks()[0])
        with flow.each_task(k, *sizes) as digits:
            for i, digit in enumerate(digits):
                place.store(digit, task.value * 4 + i)
            task.value = task.value + 1

    run_emitted(write, HOST, out, first=first, last=last)
    for n in range(48):
        want = [n // 24, n // 12 % 2, n // 4 % 3, n % 4] if first <= n < last else [-1] * 4
        assert out[n].tolist() == want


@pytest.mark.parametrize(("rows", "band"), [(5, 2), (4, 2), (3, 5), (1, 1)])
def test_banded_rows_go_by_images_bands_planes_and_rows_and_leave_out_rows_beyond(rows, band):
    images, planes = 2, 3
    tasks = images * planes * -(-rows // band) * band
    out, count = np.full((tasks, 3), -1), np.zeros(1, "i8")

    def write(k, place, number):
        with flow.banded_rows(k, *(k.const(n, "i8") for n in (planes, rows, band))) as digits:
            at = number.load()
            for i, digit in enumerate(digits):
                place.store(digit, at * 3 + i)
            number.store(at + 1)

    run_emitted(write, HOST, out, count, last=tasks)
    bands = [range(start, min(start + band, rows)) for start in range(0, rows, band)]
    want = [[n, p, r] for n in range(images) for b in bands for p in range(planes) for r in b]
    assert out[: count[0]].tolist() == want


def test_quotient_and_remainder():
    x, y = np.array([0, 7, 8, 9, 100, 5, 63, 64]), np.array([3, 8, 8, 8, 7, 10, 64, 64])
    got = applied(lambda k, a, b: flow.divmod_of(a, b), HOST, x, y, dtypes=("i8", "i8"))
    np.testing.assert_array_equal(got, np.divmod(x, y))


@pytest.mark.parametrize("holds", [0, 1])
def test_values_change_only_if_the_condition_holds(holds):
    flag, out = np.array([holds]), np.zeros(2)

    def write(k, condition, place):
        x, y = k.const(1.0, "f8"), k.const(2.0, "f8")
        with flow.change_if(k, condition.load() != 0, [x, y]) as s:
            s.next = [y * 10.0, x - 5.0]
        for i, value in enumerate(s.values):
            place.store(value, i)

    run_emitted(write, HOST, flag, out)
    assert out.tolist() == ([20, -4] if holds else [1, 2])


@pytest.mark.parametrize("first", [True, False])
def test_one_of_two_addresses_is_chosen(first):
    x, y = np.zeros(1), np.zeros(1)
    run_emitted(lambda k, a, b: flow.choose(k, k.const(first, "b1"), a, b).store(5.0), HOST, x, y)
    assert (x[0], y[0]) == ((5, 0) if first else (0, 5))


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("count", [-3, 0, 1, 5, 8, 100, 2**33 + 1])
def test_masks_touch_the_lanes_before_a_count_alone(count, dtype, target):
    x, out, rest = np.arange(1, 9, dtype=dtype), np.full(8, 9, dtype), np.full(8, 9, dtype)

    def write(k, source, place, other):
        mask = flow.first_lanes(k, k.const(count, "i8"), 8)
        flow.masked_store(k, place, source.load(0, 8), mask)
        other.store(flow.masked_load(k, source, mask))

    run_emitted(write, target, x, out, rest)
    n = min(max(count, 0), 8)
    assert out.tolist() == [*x[:n], *[9] * (8 - n)]
    assert rest.tolist() == [*x[:n], *[0] * (8 - n)]


@every_target
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_a_square_of_vectors_is_transposed(lanes, target):
    x = np.arange(lanes * lanes, dtype="f4").reshape(lanes, lanes)
    out = np.zeros_like(x)

    def write(k, source, place):
        for i, row in enumerate(flow.transpose(k, [source.load(i * lanes, lanes) for i in range(lanes)])):
            place.store(row, i * lanes)

    run_emitted(write, target, x, out)
    np.testing.assert_array_equal(out, x.T)


@every_target
def test_a_total_adds_halves_in_the_same_order_on_every_target(target):
    x, out = np.random.default_rng(0).standard_normal(16).astype("f4"), np.zeros(1, "f4")
    run_emitted(lambda k, source, place: place.store(flow.total(k, source.load(0, 16))), target, x, out)
    halves = x.copy()
    while len(halves) > 1:
        halves = halves[: len(halves) // 2] + halves[len(halves) // 2 :]
    assert out[0] == halves[0]


def test_shuffles_read_both_sides_and_masked_puts_write_the_last_operand():
    x, y, out = np.arange(4, dtype="f4"), np.arange(10, 14, dtype="f4"), np.zeros(4, "f4")

    def write(k, a, b, place):
        mixed = flow.shuffle(k, a.load(0, 4), b.load(0, 4), [6, 1, 4, 3])
        flow.put_where(k, place, flow.first_lanes(k, k.const(3, "i8"), 4), 0, mixed)

    run_emitted(write, HOST, x, y, out)
    assert out.tolist() == [12, 1, 10, 0]


@every_target
@pytest.mark.parametrize("count", [0, 3, 8])
def test_masks_touch_bfloat16_numbers_by_their_two_bytes(count, target):
    """They are float32 in a register."""
    x, out, rest = (np.arange(8) * 0x0101 + 0x3F80).astype("u2"), np.full(8, 0x4444, "u2"), np.full(8, np.nan, "f4")

    def write(k, source, place, other):
        mask = flow.first_lanes(k, k.const(count, "i8"), 8)
        loaded = flow.masked_load(k, source.as_dtype("V2"), mask)
        other.store(loaded)
        flow.masked_store(k, place.as_dtype("V2"), loaded * 2.0, mask)

    run_emitted(write, target, x, out, rest)
    wide = (x.astype("u4") << 16).view("f4")
    assert rest.tolist() == [*wide[:count], *[0] * (8 - count)]
    assert out.tolist() == [*((wide[:count] * 2).view("u4") >> 16), *[0x4444] * (8 - count)]
