"""Fused pointwise kernels agree with NumPy for any strides, dtypes, targets and orders of tasks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.expression import Trace
from cgraph.kernels.pointwise.calls import fused_calls, pointwise_calls
from cgraph.kernels.target import host_target, target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of

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
