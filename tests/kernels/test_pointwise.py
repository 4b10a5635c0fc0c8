"""Fused pointwise kernels agree with NumPy for any strides, dtypes, targets and orders of tasks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.expression import Trace
from cgraph.kernels.kernel import Pointer, View, contiguous
from cgraph.kernels.pointwise.calls import LONG, LONG_ROW, PAST_CACHE, fused_calls, pointwise_calls
from cgraph.kernels.pointwise.signature import POINTWISE
from cgraph.kernels.target import host_target, target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of

HERE = host_target()
every_target = pytest.mark.parametrize("target", TARGETS)


def traced(f, *dtypes):
    m = Trace()
    return m.program(f(m, *(m.load(i, d) for i, d in enumerate(dtypes))))


def polynomial(m, x, y):
    return x * y - x * 3.0 + y


@st.composite
def strided(draw, dtype, shape):
    """A view of `shape`: broadcast, with gaps, flipped or transposed, over random values."""
    kept = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in shape)
    steps = [draw(st.sampled_from([1, 1, 2, -1, -3])) for _ in kept]
    order = draw(st.permutations(range(len(shape))))
    memory = [kept[i] * abs(steps[i]) for i in order]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    base = rng.standard_normal(memory) * 4
    x = np.transpose(base.astype(dtype), np.argsort(order))
    return x[(..., *(slice(None, None, s) for s in steps))]


shapes = st.lists(st.sampled_from([1, 2, 3, 5, 17, 40]), min_size=0, max_size=4).map(tuple)


@settings(max_examples=60)
@given(data=st.data(), shape=shapes, dtype=st.sampled_from(["f4", "f8"]), target=st.sampled_from(TARGETS))
def test_any_strides_give_the_bits_of_numpy(data, shape, dtype, target):
    x, y = (data.draw(strided(dtype, shape)) for _ in range(2))
    out = data.draw(strided(dtype, shape).filter(lambda a: a.shape == shape))
    out[...] = np.nan
    calls = pointwise_calls(
        target_named(target), traced(polynomial, dtype, dtype), view_of(out), view_of(x), view_of(y)
    )
    run_calls(calls, target_named(target), data.draw(st.sampled_from(ORDERS)))
    np.testing.assert_array_equal(out, np.broadcast_to(x * y - x * np.asarray(3, dtype) + y, shape))


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(3, 1, 7, 5), (2, 3, 4, 1), (1, 2, 90, 90)])
@pytest.mark.parametrize("vectors", [1, 2, 3])
def test_images_in_lanes_beside_values_of_their_channels(vectors, shape, dtype, target):
    lanes = vectors * target_named(target).lanes_of(dtype)
    rng = np.random.default_rng(5)
    x = rng.standard_normal((*shape, lanes)).astype(dtype)
    y = rng.standard_normal((1, shape[1], 1, 1, lanes)).astype(dtype)
    out = np.full_like(x, np.nan)
    calls = pointwise_calls(
        target_named(target), traced(polynomial, dtype, dtype), view_of(out), view_of(x), view_of(y)
    )
    run_calls(calls, target_named(target))
    np.testing.assert_array_equal(out, x * y - x * np.asarray(3, dtype) + y)


@every_target
@pytest.mark.parametrize("order", ORDERS)
def test_many_tasks_along_a_long_row_fill_all_of_it(target, order):
    x = np.arange(150_001, dtype="f4")
    out = np.full_like(x, np.nan)
    calls = pointwise_calls(target_named(target), traced(lambda m, x: x * 2.0 + 1.0, "f4"), view_of(out), view_of(x))
    assert calls[0].tasks > 2
    run_calls(calls, target_named(target), order)
    np.testing.assert_array_equal(out, x * 2 + 1)


@every_target
def test_out_may_be_an_operand(target):
    x, y = np.random.default_rng(1).standard_normal((2, 1000)).astype("f4")
    want = x * y - x * np.float32(3) + y
    calls = pointwise_calls(target_named(target), traced(polynomial, "f4", "f4"), view_of(x), view_of(x), view_of(y))
    run_calls(calls, target_named(target))
    np.testing.assert_array_equal(x, want)


@settings(max_examples=60)
@given(
    columns=st.integers(1, 700),
    starts=st.tuples(*[st.integers(0, 17)] * 3),
    in_place=st.booleans(),
    target=st.sampled_from(TARGETS),
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_rows_may_begin_and_end_anywhere(columns, starts, in_place, target, dtype):
    arrays = np.random.default_rng(6).standard_normal((3, 3, 720)).astype(dtype)
    x, y, out = (a[:, start : start + columns] for a, start in zip(arrays, starts))
    out = x if in_place else out
    want = arrays.copy()
    want[0 if in_place else 2, :, starts[0 if in_place else 2] :][:, :columns] = x * y - x * np.asarray(3, dtype) + y
    calls = pointwise_calls(
        target_named(target), traced(polynomial, dtype, dtype), view_of(out), view_of(x), view_of(y)
    )
    run_calls(calls, target_named(target))
    np.testing.assert_array_equal(arrays, want)  # what lies beside a row stays, too


@every_target
def test_an_elements_bits_do_not_depend_on_its_place(target):
    values = np.random.default_rng(2).standard_normal(100).astype("f4")
    program = traced(lambda m, x: m.exp(m.sin(x)), "f4")
    whole, tail = np.full(1037, np.nan, "f4"), np.full(100, np.nan, "f4")
    longer = np.resize(values, 1037)
    run_calls(
        pointwise_calls(target_named(target), program, view_of(whole), view_of(longer)),
        target_named(target),
    )
    run_calls(
        pointwise_calls(target_named(target), program, view_of(tail), view_of(values)),
        target_named(target),
    )
    np.testing.assert_array_equal(whole, np.resize(tail, 1037))


@every_target
def test_dtypes_mix_in_one_program(target):
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal(77).astype("f4"), rng.standard_normal(77)
    n, c = rng.integers(-9, 9, 77), rng.integers(0, 2, 77).astype(bool)

    def f(m, x, y, n, c):
        return m.where(c & (n > 2), m.cast(x, "f8") * y, m.cast(n, "f8"))

    out = np.full(77, np.nan)
    views = [view_of(a) for a in (x, y, n, c)]
    run_calls(
        pointwise_calls(target_named(target), traced(f, "f4", "f8", "i8", "b1"), view_of(out), *views),
        target_named(target),
    )
    np.testing.assert_array_equal(out, np.where(c & (n > 2), x.astype("f8") * y, n))


@every_target
def test_several_results_come_from_one_kernel(target):
    m = Trace()
    x, y = m.load(0, "f4"), m.load(1, "f4")
    total, less = x + y, x < y
    program = tuple(m.instructions)
    a, b = np.random.default_rng(4).standard_normal((2, 3, 50)).astype("f4")
    outs = np.full((3, 50), np.nan, "f4"), np.zeros((3, 50), bool)
    calls = fused_calls(
        target_named(target),
        program,
        (total.position, less.position),
        tuple(map(view_of, outs)),
        (view_of(a), view_of(b)),
    )
    run_calls(calls, target_named(target))
    np.testing.assert_array_equal(outs[0], a + b)
    np.testing.assert_array_equal(outs[1], a < b)


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize(("shape", "dtype", "says"), [((3, 4), "f8", "the output is"), ((1, 4), "f4", "one shape")])
def test_each_result_has_the_dtype_of_its_instruction_and_one_shape(number, shape, dtype, says):
    m = Trace()
    x = m.load(0, "f4")
    results = [x + 1.0, x * 2.0, x - 3.0]
    outs = [np.zeros((3, 4), "f4") for _ in results]

    def calls():
        positions = tuple(r.position for r in results)
        views = tuple(map(view_of, outs))
        return fused_calls(host_target(), tuple(m.instructions), positions, views, (view_of(np.zeros((3, 4), "f4")),))

    assert calls()
    outs[number] = np.zeros(shape, dtype)
    with pytest.raises(ValueError, match=says):
        calls()


@pytest.mark.parametrize("number", [0, 1])
def test_each_operand_has_the_dtype_that_the_program_loads(number):
    program = traced(lambda m, x, y: x + y, "f4", "f4")
    operands = [np.zeros((3, 4), "f4"), np.zeros((3, 4), "f4")]
    operands[number] = operands[number].astype("f8")
    with pytest.raises(ValueError, match=f"operand {number} is f8, the program reads f4. Cast it first"):
        pointwise_calls(host_target(), program, view_of(np.zeros((3, 4), "f4")), *map(view_of, operands))


def test_no_elements_need_no_call():
    out = np.empty((3, 0), "f4")
    assert pointwise_calls(host_target(), traced(lambda m, x: x + 1.0, "f4"), view_of(out), view_of(out)) == []


def test_a_shape_that_does_not_broadcast_is_refused():
    out, x = np.empty((3, 4), "f4"), np.empty((3, 3), "f4")
    with pytest.raises(ValueError, match="does not broadcast"):
        pointwise_calls(host_target(), traced(lambda m, x: x + 1.0, "f4"), view_of(out), view_of(x))


@every_target
@pytest.mark.parametrize("first", [0, 1, 5])
def test_large_results_written_past_the_cache_are_whole(monkeypatch, target, first):
    """The output starts at addresses that are no multiple of a vector; a low limit keeps the test quick."""
    monkeypatch.setattr("cgraph.kernels.pointwise.calls.PAST_CACHE", 1000)
    x = np.random.default_rng(5).standard_normal((3, 70_005)).astype("f4")
    out = np.full(x.shape, np.nan, "f4")
    x, out = x[:, first:], out[:, first:]
    calls = pointwise_calls(target_named(target), traced(lambda m, x: x * 2.0 + 1.0, "f4"), view_of(out), view_of(x))
    assert calls[0].kernel.params[-1] is True
    for order in ORDERS:
        out[...] = np.nan
        run_calls(calls, target_named(target), order)
        np.testing.assert_array_equal(out, x * 2 + 1)


def at_base(base, shape, dtype="f4"):
    return contiguous(Pointer(base), shape, dtype)


def added(more=0):
    """A program of three instructions, and as many more as are asked for."""
    m = Trace()
    x = m.load(0, "f4")
    total = x + m.load(1, "f4")
    for _ in range(more):
        total = total + x
    return m.program(total)


def params_of(program, out, *xs):
    [call] = pointwise_calls(HERE, program, out, *xs)
    return dict(zip(POINTWISE.params, call.kernel.params))


BIG = PAST_CACHE // 4  # elements of four bytes
ROWS = BIG // LONG_ROW


@pytest.mark.parametrize(
    ("shape", "is_past"),
    [((BIG,), True), ((BIG - 1,), False), ((ROWS, LONG_ROW), True), ((2 * ROWS, LONG_ROW - 1), False)],
)
def test_large_results_of_long_rows_are_written_past_the_cache(shape, is_past):
    """Unless they lie in their operands' bytes, whose lines are in it; rows of the second kind lie apart."""
    program = added()
    out, x, y = (at_base(name, shape) for name in "oxy")
    if len(shape) == 2:  # rows that do not merge
        out, x, y = (View(v.at, shape, (4 * shape[1] + 64, 4), "f4") for v in (out, x, y))
    assert params_of(program, out, x, y)["past_cache"] == is_past
    for own in ((out, y), (x, out)):
        assert not params_of(program, out, *own)["past_cache"]
    apart = View(Pointer("x"), shape, tuple(2 * s for s in x.strides), "f4")
    assert not params_of(program, out, apart, y)["past_cache"]
    one = View(Pointer("x"), shape, (0,) * len(shape), "f4")
    assert params_of(program, out, one, y)["past_cache"] == is_past


def test_results_narrower_than_their_operands_and_several_results_stay_in_the_cache():
    m = Trace()
    narrow = m.program(m.cast(m.load(0, "f8"), "f4"))
    wide = m.program(m.cast(m.load(0, "f4"), "f8"))
    assert not params_of(narrow, at_base("o", (2 * BIG,)), at_base("x", (2 * BIG,), "f8"))["past_cache"]
    assert params_of(wide, at_base("o", (BIG,), "f8"), at_base("x", (BIG,)))["past_cache"]
    program = added(1)
    outs = at_base("o", (BIG,)), at_base("p", (BIG,))
    xs = at_base("x", (BIG,)), at_base("y", (BIG,))
    [call] = fused_calls(HERE, program, (len(program) - 2, len(program) - 1), outs, xs)
    assert not dict(zip(POINTWISE.params, call.kernel.params))["past_cache"]


def test_two_registers_are_under_way_for_short_programs_of_whole_vectors():
    shape = (40, 100)
    out, x, y = (at_base(name, shape) for name in "oxy")
    apart = View(Pointer("x"), shape, (800, 8), "f4")
    short, long = added(LONG - 3), added(LONG - 2)
    assert (len(short), len(long)) == (LONG, LONG + 1)
    assert params_of(short, out, x, y)["registers"] == 2 and params_of(long, out, x, y)["registers"] == 1
    assert params_of(short, out, apart, y)["registers"] == 1
    assert params_of(short, apart, x, y)["registers"] == 1  # of the result, too
    ins = params_of(short, out, x, View(Pointer("y"), shape, (4, 0), "f4"))
    assert ins["ins"] == "vs" and ins["registers"] == 2


def test_operands_that_repeat_two_vectors_have_two_registers():
    lanes = HERE.lanes_of("f4")
    for period, access, registers in ((lanes, "p", 2), (2 * lanes, "q", 2)):
        shape = (30, period)
        out, x = at_base("o", shape), at_base("x", shape)
        row = View(Pointer("y"), shape, (0, 4), "f4")
        found = params_of(added(), out, x, row)
        assert (found["ins"], found["registers"]) == ("v" + access, registers)
