"""The language of kernels: constants, lanes, signed and unsigned operators, conversions, loops, arguments by name."""

import numpy as np
import pytest

from cgraph.kernels.gemm.signature import TILE
from cgraph.kernels.kernel import Kernel
from cgraph.kernels.llvm.build import INDEX
from cgraph.kernels.stencil.signature import FINISH
from cgraph.kernels.target import host_target
from cgraph.record import replace
from tests.support.emitted import applied, every_target, run_emitted, run_family

HOST = host_target()
INF, NAN = np.inf, np.nan
every_width = pytest.mark.parametrize("lanes", [0, 8])


def ends(dtype):
    if dtype[0] == "f":
        return np.array([0.0, -0.0, 1.5, -2.5, INF, -INF, NAN, 3], dtype)
    info = np.iinfo(dtype)
    return np.array([info.min, info.max, 0, 1, 5, 7, info.max - 1, info.min + 1], dtype)


@every_width
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i4", "i8", "u1", "u4", "u8"])
def test_comparisons_know_signs_and_are_false_beside_a_nan_but_for_unequal(dtype, lanes):
    x, y = (v.ravel().copy() for v in np.meshgrid(ends(dtype), ends(dtype)))
    for sign, f in {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}.items():
        got = applied(lambda k, a, b, sign=sign: k.compare(sign, a, b), HOST, x, y, dtypes=("?",), lanes=lanes)
        np.testing.assert_array_equal(got, f(x, y))
    for sign, f in {"==": np.equal, "!=": np.not_equal}.items():
        got = applied(lambda k, a, b, sign=sign: k.compare(sign, a, b), HOST, x, y, dtypes=("?",), lanes=lanes)
        np.testing.assert_array_equal(got, f(x, y))


@every_width
@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8"])
def test_division_and_right_shifts_know_signs(dtype, lanes):
    x, y = np.resize(ends(dtype), 16), np.resize(np.array([1, 3, 2, 7], dtype), 16)
    quotient, rest = applied(
        lambda k, a, b: (k.binary("div", a, b), k.binary("rem", a, b)), HOST, x, y, dtypes=(dtype, dtype), lanes=lanes
    )
    exact = [int(abs(int(i)) // int(j)) * (-1 if i < 0 else 1) for i, j in zip(x, y)]
    assert quotient.tolist() == exact
    assert rest.tolist() == [int(i) - int(j) * q for i, j, q in zip(x, y, exact)]
    np.testing.assert_array_equal(applied(lambda k, a, b: k.binary("shr", a, b), HOST, x, y, lanes=lanes), x >> y)


@every_width
def test_minimum_and_maximum_are_the_second_operand_beside_a_nan(lanes):
    x, y = np.resize([1, NAN, 2, NAN], 8).astype("f4"), np.resize([NAN, 3, 1, NAN], 8).astype("f4")
    for name, last in (("smaller", 1.0), ("larger", 2.0)):
        got = applied(lambda k, a, b, name=name: getattr(k, name)(a, b), HOST, x, y, lanes=lanes)
        np.testing.assert_array_equal(got[:4], np.array([NAN, 3, last, NAN], "f4"))


@every_target
def test_fma_adds_the_third_operand_in_one_rounding_where_the_target_can(target):
    x, y, z = (np.full(8, v) for v in (1 + 2.0**-30, 1 - 2.0**-30, -1.0))
    got = applied(lambda k, a, b, c: k.fma(a, b, c), target, x, y, z)
    assert got.tolist() == [-(2.0**-60) if target.fma else 0.0] * 8
    assert applied(lambda k, a: k.fma(a, 2.0, 3.0), target, np.arange(8.0)).tolist() == [2 * i + 3 for i in range(8)]


@every_target
@pytest.mark.parametrize("source", ["i1", "u1", "i4", "u4", "i8", "u8", "b1", "f4", "f8"])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "u4", "i8", "u8", "b1", "f4", "f8"])
def test_conversions_are_numpys(source, dtype, target):
    x = np.array([0, 1, 100, 3, 0, 127, 2, 64])
    if source[0] == "i":
        x = -x if dtype[0] != "u" else x
        x[0] = np.iinfo(source).min if dtype[0] != "u" else 0
    elif source[0] == "u":
        x[0] = min(np.iinfo(source).max, np.iinfo("i8").max)
    x = x.astype("?" if source == "b1" else source)
    if source[0] == "f":
        x += np.array([0, 0.75, 0.25, 0, 0, 0, 0.5, 0], source)
    want = x.astype("?" if dtype == "b1" else dtype)
    got = applied(lambda k, a: k.cast(a, dtype), target, x, dtypes=(want.dtype.str[1:].replace("b1", "?"),))
    np.testing.assert_array_equal(got, want)


def test_lanes_are_taken_replaced_cut_and_joined():
    x, y = np.arange(8, dtype="i4"), np.arange(10, 18, dtype="i4")
    got = applied(
        lambda k, a, b: [
            k.splat(k.lane(a, 3), 8),
            k.with_lane(a, 2, k.lane(b, 5)),
            k.join(k.slice(a, 4, 4), k.slice(b, 1, 4)),
            k.iota("i4", 8),
        ],
        HOST, x, y, dtypes=("i4",) * 4,
    )  # fmt: skip
    assert [v.tolist() for v in got] == [
        [3] * 8, [0, 1, 15, 3, 4, 5, 6, 7], [4, 5, 6, 7, 11, 12, 13, 14], list(range(8)),
    ]  # fmt: skip


def test_scalars_are_spread_beside_vectors_and_numbers_take_the_other_sides_dtype():
    x = np.arange(8, dtype="f8")

    def write(k, a):
        first = k.lane(a, 1)
        chosen = k.select(a > 3.0, first, 7)
        return [first + a, 10 - a, chosen, k.select(k.const(1, "b1"), a, 0.0)]

    got = applied(write, HOST, x, dtypes=("f8",) * 4)
    np.testing.assert_array_equal(got, [1 + x, 10 - x, np.where(x > 3, 1, 7), x])


@pytest.mark.parametrize("value", [1 + 2j, -0.5 - 0.25j])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_constants_have_the_bits_of_numpy(dtype, value):
    got = applied(lambda k, a: k.const(value, dtype, a.lanes), HOST, np.zeros(8, dtype), dtypes=(dtype,))
    assert got.tolist() == [value] * 8


def test_bits_and_truth():
    x = np.array([1.0, -0.0, 0, 2, -1, NAN, INF, 1e-45], "f4")
    got = applied(lambda k, a: (k.bits(a, "u4"), k.is_nan(a), -a), HOST, x, dtypes=("u4", "?", "f4"))
    np.testing.assert_array_equal(got[0], x.view("u4"))
    np.testing.assert_array_equal(got[1], np.isnan(x))
    np.testing.assert_array_equal(np.signbit(got[2]), ~np.signbit(x))
    flags = applied(lambda k, a: k.const(5, "b1", a.lanes), HOST, x, dtypes=("?",))
    assert flags.view("u1").tolist() == [1] * 8


@pytest.mark.parametrize("target", [HOST, replace(HOST, has_libc=False)], ids=["with a C library", "without"])
def test_remainders_have_the_sign_of_the_dividend(target):
    x, y = np.array([7, -7, 7.5, -0.0, 1, 5, 6, 2], "f8"), np.array([3, 3, -2, 5, INF, 0, NAN, 2], "f8")
    with np.errstate(invalid="ignore"):
        want = np.fmod(x, y)
    got = applied(lambda k, a, b: a % b, target, x, y)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[:5]), np.signbit(want[:5]))


@pytest.mark.parametrize(("low", "high", "step"), [(0, 5, 1), (2, 11, 3), (3, 3, 1), (5, 2, 1), (-3, 4, 2)])
def test_a_loop_is_pythons_range(low, high, step):
    out = np.full(20, -99)

    def write(k, place):
        count = k.slot(0, "i8")
        with k.loop(low, high, step) as i:
            place.store(i, count.value)
            count.value = count.value + 1

    run_emitted(write, HOST, out)
    want = list(range(low, high, step))
    assert out.tolist() == want + [-99] * (20 - len(want))


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("lanes", [1, 4])
def test_a_tail_loop_visits_each_element_once_whole_vectors_first(count, lanes):
    x, out, widths = np.arange(1.0, 13), np.zeros(12), np.zeros(12, "i8")

    def write(k, source, place, width):
        def body(i, n):
            place.store(place.load(i, n) + source.load(i, n), i)
            width.store(k.const(n, "i8"), i)

        k.tail_loop(count, lanes, body)

    run_emitted(write, HOST, x, out, widths)
    assert out.tolist() == [*x[:count], *[0] * (12 - count)]
    whole = count // lanes * lanes if lanes > 1 else 0
    assert widths[:whole:lanes].tolist() == [lanes] * (whole // lanes) and not widths[whole:count].any()


def test_branches_and_endless_loops_end_where_they_say():
    out = np.zeros(4, "i8")

    def write(k, place):
        n, steps = k.slot(27, "i8"), k.slot(0, "i8")  # Collatz: 111 steps
        with k.loop_while() as w:
            w.until(n.value == 1)
            with k.if_else((n.value & 1) == 0) as (then, otherwise):
                with then:
                    n.value = n.value >> 1
                with otherwise:
                    n.value = n.value * 3 + 1
            steps.value = steps.value + 1
        place.store(steps.value)
        with k.if_(steps.value > 111):
            place.store(1, 1)
        with k.if_(steps.value == 111, likely=False):
            place.store(1, 2)

    run_emitted(write, HOST, out)
    assert out.tolist() == [111, 0, 1, 0]


def test_bytes_are_copied_and_moved_where_ranges_overlap():
    x, out = np.arange(16, dtype="u1"), np.zeros(16, "u1")

    def write(k, source, place):
        k.copy_bytes(place + 1, source + 2, k.const(5, "i8"))
        k.move_bytes(source + 3, source, k.const(8, "i8"))
        assert '@"memmove"' in str(k.function)  # memcpy moves as well in some libraries

    run_emitted(write, HOST, x, out)
    assert out.tolist() == [0, 2, 3, 4, 5, 6, *[0] * 10]
    assert x.tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 5, 6, 7, *range(11, 16)]


def test_arrays_on_the_stack_are_apart_and_begin_at_cache_lines():
    out = np.zeros(3, "i8")

    def write(k, place):
        a, b = k.stack_ptr("i4", 3), k.stack_ptr("b1", 5)
        with k.loop(0, 3) as i:
            a.store(k.cast(i, "i4") + 7, i)
        with k.loop(0, 5) as i:
            b.store(i == 4, i)
        with k.loop(0, 3) as i:
            place.store(k.cast(a.load(i), "i8") + k.cast(b.load(4), "i8"), i)

    run_emitted(write, HOST, out)
    assert out.tolist() == [8, 9, 10]


def test_memory_on_the_stack_is_allocated_once_for_a_loop():
    """Not in each round, in which the stack would grow."""
    out = np.zeros(6, "i8")

    def write(k, place):
        with k.loop(0, 6) as i:
            a = k.stack_ptr("i8", 4)
            a.store(i, i & 3)
            place.store(k.wrap(k.b.ptrtoint(a.v, INDEX), "i8"), i)

    run_emitted(write, HOST, out)
    assert len(set(out.tolist())) == 1 and out[0] != 0


def test_tasks_are_those_of_the_call():
    out = np.zeros(8, "i8")

    def write(k, place):
        with k.task_loop() as i:
            place.store(i + 1, i)

    run_emitted(write, HOST, out, first=2, last=5)
    assert out.tolist() == [0, 0, 3, 4, 5, 0, 0, 0]


def test_arguments_are_read_by_the_names_of_the_signature_and_lists_begin_after_them():
    """move.tiles ends with `rank` and `axes`, two words for each of its axes."""
    out = np.zeros(6, "i8")
    words = np.array([out.ctypes.data, 0, *range(12, 22), 2, 31, 32, 33, 34, 35, 36], np.int64)

    def emit(k, itemsize, lanes):
        a = k.args()
        place = a.out.as_dtype("i8")
        for i, x in enumerate((a.ni, a.rows, a.rank, a.axes.load(0), a.axes.load(3), k.number("each"))):
            place.store(x, i)

    run_family(emit, Kernel("move.tiles", (4, 8)), HOST, words)
    assert out.tolist() == [12, 21, 2, 31, 34, 20]


def test_arguments_after_lists_are_found_behind_all_of_their_words():
    """stencil.finish has a list of two words an item, one of one word, then a number."""
    params = (4, 2)
    out, words = np.zeros(3, "i8"), np.arange(100, 140)
    words[list(FINISH.args).index("border")] = out.ctypes.data
    named = FINISH.named(params, words)

    def emit(k, *_):
        a = k.args()
        place = k.pointer(a.border, "i8")
        for i, x in enumerate((a.row_steps.load(), a.inner.load(1), a.outer_rank)):
            place.store(x, i)

    run_family(emit, Kernel("stencil.finish", params), HOST, words)
    assert out.tolist() == [named["row_steps"][0], named["inner"][1], named["outer_rank"]]
    assert len(set(out.tolist())) == 3


def test_arguments_are_addresses_of_the_params_dtype_and_floats_by_their_bits():
    """gemm.tile: `out` has the dtype of the param `dtype`, `high` is a float64 and the last but one word."""
    out, words = np.zeros(4, "f4"), np.zeros(len(TILE.args), np.int64)
    names = list(TILE.args)
    words[names.index("out")] = out.ctypes.data
    words[names.index("low") : names.index("slope") + 1] = np.array([0.5, 1.5, 2.5]).view("i8")

    def emit(k, *params):
        a = k.args()
        for i, x in enumerate((a.low, a.high, k.number("slope"))):
            a.out.store(k.cast(x, "f4"), i + 1)

    run_family(emit, Kernel("gemm.tile", ("f4", 1, 1, False, "f4", 0)), HOST, words)
    assert out.tolist() == [0, 0.5, 1.5, 2.5]
