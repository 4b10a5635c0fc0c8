"""Reductions agree with NumPy over any axes of any layout, for any target and order of tasks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.expression import Trace
from cgraph.kernels.reduce.calls import KINDS, MANY_OUTPUTS, MOST_PARTIALS, reduce_calls, reduce_nbytes, registers_for
from cgraph.kernels.target import host_target, target_named
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near

every_target = pytest.mark.parametrize("target", TARGETS)
LARGE = [((300_001,), (0,)), ((3, 90_000), (1,)), ((5000, 70), (0,)), ((7, 40_000, 2), (0, 1))]
NUMPY = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "any": np.any, "all": np.all}


def identity(dtype):
    m = Trace()
    return m.program(m.load(0, dtype))


def reduced(kind, x, axes, target="host", order="all", keepdims=False, program=None, **more):
    """The kernel's result; the workspace is as large as promised, and full of NaN."""
    dtype = x.dtype.str[1:]
    kept = tuple(1 if a in axes else n for a, n in enumerate(x.shape) if keepdims or a not in axes)
    out = np.full(kept, -7, "i8" if kind.startswith("arg") else x.dtype)
    room = view_of(np.full(reduce_nbytes(kind, dtype, x.shape, axes, **more), 255, "u1"))
    given = view_of(out), view_of(x)
    program = program or identity(dtype)
    calls = reduce_calls(target_named(target), kind, program, *given, axes=axes, workspace=room, **more)
    run_calls(calls, target_named(target), order)
    return out


def expected(kind, x, axes):
    if not kind.startswith("arg"):
        return NUMPY[kind](x, axis=axes)
    last = np.moveaxis(x, axes, range(-len(axes), 0))
    flat = last.reshape(*last.shape[: x.ndim - len(axes)], -1)
    return (np.argmin if kind == "argmin" else np.argmax)(flat, axis=-1)


@st.composite
def cases(draw):
    kind = draw(st.sampled_from(KINDS))
    dtype = "b1" if kind in ("any", "all") else draw(st.sampled_from(["f4", "f8", "i4", "i8"]))
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 7, 18, 70]), min_size=1, max_size=4))
    steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
    order = draw(st.permutations(range(len(shape))))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    low, high = {"prod": (1, 2), "any": (0, 2), "all": (0, 2)}.get(kind, (-9, 9))
    memory = rng.integers(low, high, [shape[i] * abs(steps[i]) for i in order]).astype(dtype)
    x = np.transpose(memory, np.argsort(order))[tuple(slice(None, None, s) for s in steps)]
    if draw(st.booleans()):
        x = np.broadcast_to(x[:1], x.shape)
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True).map(sorted).map(tuple))
    return kind, x, axes


@settings(max_examples=150)
@given(cases(), st.sampled_from(TARGETS), st.sampled_from(ORDERS))
def test_any_axes_of_any_layout_agree_with_numpy(case, target, order):
    """The values are small integers, whose sums and products are exact in any order."""
    kind, x, axes = case
    np.testing.assert_array_equal(reduced(kind, x, axes, target, order), expected(kind, x, axes))


@every_target
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape, axes", LARGE)
def test_large_reductions_in_parts_have_the_same_bits_in_any_order(target, order, shape, axes):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    got = reduced("sum", x, axes, target, order)
    np.testing.assert_array_equal(got, reduced("sum", x, axes, target))
    assert_near(got, x.sum(axes, dtype="f8"), "float32 sums of many thousand")
    for kind in ("max", "argmax", "argmin"):
        np.testing.assert_array_equal(reduced(kind, x, axes, target, order), expected(kind, x, axes))


@every_target
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [64, 500, 5000])
def test_smaller_parts_reduce_the_same_values(part, kind, target):
    low, high = {"prod": (1, 2), "any": (0, 2), "all": (0, 2)}.get(kind, (-9, 9))
    dtype = "b1" if kind in ("any", "all") else "f4"
    x = np.random.default_rng(part).integers(low, high, (3, 40, 70)).astype(dtype)
    for axes in ((0, 1, 2), (1, 2), (0, 1)):
        got = [reduced(kind, x, axes, target, order, part=part) for order in ORDERS]
        for y in got:
            np.testing.assert_array_equal(y, expected(kind, x, axes))


@every_target
def test_a_whole_reduction_has_the_same_bits_however_many_there_are(target):
    """Rows that are made in bands: a band has fewer of them."""
    x = np.random.default_rng(2).standard_normal((300, 20_000)).astype("f4")
    row, rows = np.zeros((1,), "f4"), np.zeros((300,), "f4")
    for out in (row, rows):
        given = view_of(out), view_of(x[: len(out)])
        calls = reduce_calls(target_named(target), "sum", identity("f4"), *given, axes=(1,), whole=True)
        assert len(calls) == 1
        run_calls(calls, target_named(target), "all")
    assert row[0] == rows[0]


@every_target
@pytest.mark.parametrize("axes, shape", [((0,), (1_000_000,)), ((0,), (20_000, 50)), ((1,), (50, 20_000))])
def test_float_sums_are_as_accurate_as_numpys_pairwise_sum(target, axes, shape):
    x = np.random.default_rng(1).uniform(0, 1, shape).astype("f4")
    exact = x.sum(axes, dtype="f8")
    flat = np.moveaxis(x, axes[0], -1).copy()
    pairwise = np.abs(flat.sum(-1) / exact - 1).max()
    assert np.abs(reduced("sum", x, axes, target) / exact - 1).max() <= max(pairwise, 2.0**-22)


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("columns", [2, 5, 8, 12, 16, 24, 33, 64, 100, 128, 257])
def test_sums_of_short_rows_are_as_accurate_as_numpys_pairwise_sum(target, dtype, columns):
    x = np.random.default_rng(columns).normal(1, 3, (70, columns)).astype(dtype)
    want = x.astype("longdouble").sum(1)
    ours, numpys = (np.abs(y - want).max() for y in (reduced("sum", x, (1,), target), x.sum(1)))
    assert ours <= 2 * numpys + np.finfo(dtype).eps * np.abs(want).max()


@pytest.mark.parametrize(
    "columns, registers",
    [(3, 1), (4, 1), (8, 2), (12, 1), (16, 4), (20, 1), (24, 2), (31, 4), (32, 4), (1000, 4)],
)
def test_a_vector_is_not_longer_than_a_row_and_divides_a_short_one(columns, registers):
    assert registers_for(columns, 4, 4) == registers


@every_target
@pytest.mark.parametrize("kind", ["sum", "prod", "min", "max"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("columns", [2, 4, 7, 8, 9, 17, 32, 48, 129, 197, 256])
def test_short_rows_of_every_length_count_each_element_once(target, kind, dtype, columns):
    """As above, the values are exact; 11 rows are blocks and single rows."""
    low, high = (1, 2) if kind == "prod" else (-9, 9)
    x = np.random.default_rng(columns).integers(low, high, (11, columns)).astype(dtype)
    if kind == "prod":
        x[np.arange(11), np.arange(11) % columns] = np.arange(2, 13)
    np.testing.assert_array_equal(reduced(kind, x, (1,), target, "single"), expected(kind, x, (1,)))


@every_target
@pytest.mark.parametrize("columns", [17, 129, 200])
def test_a_short_row_has_the_same_bits_alone_and_in_a_block(target, columns):
    x = np.random.default_rng(5).standard_normal((9, columns)).astype("f4")
    alone = [reduced("sum", x[i : i + 1], (1,), target)[0] for i in range(9)]
    np.testing.assert_array_equal(reduced("sum", x, (1,), target), alone)


@every_target
@pytest.mark.parametrize("columns", [16, 49])
def test_a_nan_wins_at_every_place_of_a_short_row(target, columns):
    x = np.zeros((columns, columns), "f4")
    x[np.arange(columns), np.arange(columns)] = np.nan
    for kind in ("sum", "min", "max"):
        assert np.isnan(reduced(kind, x, (1,), target)).all()


@every_target
@pytest.mark.parametrize("axis", [0, 1])
def test_a_nan_wins_and_the_first_of_equals_is_found(target, axis):
    x = np.zeros((70, 70), "f4")
    x[3, 5] = x[5, 3] = x[40, 41] = x[41, 40] = np.nan
    x[7, 60] = x[60, 7] = -np.inf
    for kind in ("min", "max", "argmin", "argmax"):
        np.testing.assert_array_equal(reduced(kind, x, (axis,), target), expected(kind, x, (axis,)))


@every_target
def test_infinities_sum_as_in_numpy(target):
    x = np.ones((4, 100))
    x[0, 50], x[1, 3], x[2, 7], x[2, 9], x[3, 0] = np.inf, -np.inf, np.inf, -np.inf, np.nan
    for y, axis in ((x, 1), (x.T, 0), (np.ascontiguousarray(x.T), 0)):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(reduced("sum", y, (axis,), target), y.sum(axis))


@every_target
def test_all_minus_infinity_is_found_at_the_first_place(target):
    for shape in ((5,), (100_000,)):
        x = np.full(shape, -np.inf, "f4")
        assert reduced("argmax", x, (0,), target) == 0


@every_target
def test_a_program_runs_in_the_load(target):
    m = Trace()
    x, y = m.load(0, "f4"), m.load(1, "f4")
    program = m.program(m.cast(x * y, "f8"))
    a = np.random.default_rng(2).standard_normal((40, 33)).astype("f4")
    b = np.random.default_rng(3).standard_normal((40, 1)).astype("f4")
    out = np.full(40, np.nan)
    calls = reduce_calls(target_named(target), "sum", program, view_of(out), view_of(a), view_of(b), axes=(1,))
    run_calls(calls, target_named(target))
    assert_near(out, (a * b).astype("f8").sum(1), "float64 products")


def test_axes_of_one_element_may_stay():
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(reduced("sum", x, (0,), keepdims=True), x.sum(0, keepdims=True))


def test_an_empty_sum_is_zero():
    np.testing.assert_array_equal(reduced("sum", np.empty((3, 0)), (1,)), np.zeros(3))


def test_an_output_of_another_shape_is_refused():
    x, out = np.empty((3, 4)), np.empty(4)
    with pytest.raises(ValueError, match="has shape"):
        reduce_calls(host_target(), "sum", identity("f8"), view_of(out), view_of(x), axes=(1,))


@every_target
@pytest.mark.parametrize("kind", ["sum", "max", "argmax", "argmin"])
@pytest.mark.parametrize("part", [64, 300, 2000])
@pytest.mark.parametrize("rows, columns", [(60, 40), (3, 1500)])
def test_parts_of_rows_that_lie_apart_reduce_every_element_once(rows, columns, part, kind, target):
    """Parts are some rows, or some columns of one row; numbers between the rows would be the extreme ones."""
    rng = np.random.default_rng(part)
    memory = np.full((rows, columns + 5), -99 if kind == "argmin" else 99, "f4")
    memory[:, :columns] = rng.integers(-9, 9, (rows, columns))
    x = memory[:, :columns]
    for order in ORDERS:
        np.testing.assert_array_equal(reduced(kind, x, (0, 1), target, order, part=part), expected(kind, x, (0, 1)))
    both = np.stack([memory, memory[::-1]])[:, :, :columns]
    np.testing.assert_array_equal(reduced(kind, both, (1, 2), target, part=part), expected(kind, both, (1, 2)))


@pytest.mark.parametrize("outputs, calls", [(MANY_OUTPUTS - 1, 2), (MANY_OUTPUTS, 1), (MANY_OUTPUTS + 1, 1)])
def test_many_outputs_along_memory_are_not_divided(outputs, calls):
    x = np.ones((outputs, 3000), "f4")
    out, room = np.zeros(outputs, "f4"), np.zeros(reduce_nbytes("sum", "f4", x.shape, (1,), 500), "u1")
    views = view_of(out), view_of(x)
    made = reduce_calls(host_target(), "sum", identity("f4"), *views, axes=(1,), workspace=view_of(room), part=500)
    assert len(made) == calls
    run_calls(made)
    assert (out == 3000).all()


def test_the_bytes_of_a_workspace_are_those_of_its_parts():
    """A value for each part and output, rounded up to 8 bytes, and 8 bytes for each index."""
    for shape, axes, part, parts, outputs in (
        ((999,), (0,), 500, 1, 1),
        ((1000,), (0,), 500, 2, 1),
        ((3, 1000), (1,), 500, 6, 3),
        ((3, 1000), (1,), 1000, 3, 3),
        ((5, 1000), (0,), 1000, 5, 1000),
        ((7, 2, 300), (0, 2), 300, 14, 2),
    ):
        values = parts * outputs
        for kind, dtype, nbytes in (
            ("sum", "f4", -(-values * 4 // 8) * 8),
            ("prod", "f8", values * 8),
            ("argmax", "f4", -(-values * 4 // 8) * 8 + values * 8),
            ("argmin", "i2", -(-values * 2 // 8) * 8 + values * 8),
        ):
            assert reduce_nbytes(kind, dtype, shape, axes, part) == (nbytes if parts > 1 else 0)
    assert reduce_nbytes("sum", "f4", (MOST_PARTIALS, 4), (1,), 2) == 0
    assert reduce_nbytes("sum", "f4", (MOST_PARTIALS // 2, 8), (1,), 2) == 2 * MOST_PARTIALS // 2 * 4
    assert reduce_nbytes("sum", "f4", (0, 4000), (1,), 2) == 0


@every_target
@pytest.mark.parametrize("shape, axis", [((0, 70), 0), ((70, 0), 1), ((0, 2), 0), ((0,), 0)])
def test_nothing_to_reduce_gives_the_identity_of_every_output(shape, axis, target):
    for kind, want in (("sum", 0), ("prod", 1)):
        got = reduced(kind, np.empty(shape, "f4"), (axis,), target)
        np.testing.assert_array_equal(got, np.full(got.shape, want, "f4"))
    for kind, want in (("any", False), ("all", True)):
        assert (reduced(kind, np.empty(shape, "b1"), (axis,), target) == want).all()


def test_no_outputs_need_no_calls():
    out, x = view_of(np.empty(0, "f4")), view_of(np.empty((0, 5), "f4"))
    for whole in (False, True):
        assert reduce_calls(host_target(), "sum", identity("f4"), out, x, axes=(1,), whole=whole) == []


@pytest.mark.parametrize(
    "kind, out, match",
    [
        ("mean", (3,), "there is no reduction 'mean'. Choose one of sum, prod, min"),
        ("sum", (4,), r"sum of \(3, 4\) over \(1,\) has shape \(3,\), the output has \(4,\)"),
        ("sum", (3, 4), r"an output of shape \(3, 4\) does not fit 2 axes reduced over \(1,\)"),
        ("sum", (3, 1, 1), r"an output of shape \(3, 1, 1\) does not fit 2 axes reduced over \(1,\)"),
        ("sum", (4, 1), r"has shape \(3,\), the output has \(4,\)"),
    ],
)
def test_reductions_that_do_not_fit_are_refused(kind, out, match):
    views = view_of(np.empty(out)), view_of(np.empty((3, 4)))
    with pytest.raises(ValueError, match=match):
        reduce_calls(host_target(), kind, identity("f8"), *views, axes=(1,))


def test_a_workspace_that_is_one_byte_too_small_is_refused():
    x, out = np.ones(5000, "f4"), np.zeros((), "f4")
    need = reduce_nbytes("sum", "f4", x.shape, (0,), 500)
    for room in (None, view_of(np.zeros(need - 1, "u1"))):
        with pytest.raises(ValueError, match=f"these calls need {need}"):
            reduce_calls(
                host_target(), "sum", identity("f4"), view_of(out), view_of(x), axes=(0,), workspace=room, part=500
            )


@every_target
@pytest.mark.parametrize("kind", ["sum", "max", "argmax"])
def test_an_operand_that_all_rows_or_columns_share_is_broadcast(kind, target):
    m = Trace()
    program = m.program(m.load(0, "f4") + m.load(1, "f4"))
    x = np.random.default_rng(6).integers(-9, 9, (20, 70)).astype("f4")
    for shape in ((70,), (1, 70), (20, 1), (1, 1), ()):
        y = np.random.default_rng(7).integers(-9, 9, shape).astype("f4")
        for axes in ((0,), (1,), (0, 1)):
            want = expected(kind, x + y, axes)
            for first, second in ((x, y), (y, x)):
                out = np.full(np.shape(want), -7, "i8" if kind == "argmax" else "f4")
                views = view_of(out), view_of(first), view_of(second)
                run_calls(reduce_calls(target_named(target), kind, program, *views, axes=axes), target_named(target))
                np.testing.assert_array_equal(out, want)


def family_of(kind, x, axes, target=None, dtype="f4"):
    out = np.zeros([n for a, n in enumerate(x.shape) if a not in axes], "i8" if kind.startswith("arg") else dtype)
    made = reduce_calls(target or host_target(), kind, identity(dtype), view_of(out), view_of(x), axes=axes)
    [call] = made
    return call.kernel.family


def test_vectors_lie_along_the_reduced_axes_or_across_them():
    """Across where only there are neighbours, or where rows are shorter than two vectors; never for few columns."""
    lanes = host_target().lanes_of("f4")
    wide = np.zeros((300, 4 * lanes), "f4")
    assert (
        family_of("sum", wide, (0,)) == "reduce.across"
        and family_of("max", wide[:, : lanes - 1], (0,)) == "reduce.along"
    )
    assert family_of("max", wide[:, :lanes], (0,)) == "reduce.across"
    rows = np.zeros((300, 2 * lanes), "f4")
    assert family_of("argmax", rows, (1,)) == "reduce.along"
    assert family_of("argmax", rows[:, : 2 * lanes - 1], (1,)) == "reduce.across"
    assert family_of("argmax", rows[: lanes - 1, : 2 * lanes - 1], (1,)) == "reduce.along"
    both = np.zeros((300, 4 * lanes, 2), "f4")[..., 0]  # neighbours along neither
    assert family_of("argmax", both, (0,)) == family_of("argmax", both, (1,)) == "reduce.along"


def test_short_rows_are_reduced_together():
    lanes = host_target().lanes_of("f4")
    longest = 2 * 16 * lanes
    rows = np.zeros((50, longest + 1), "f4")
    assert family_of("sum", rows[:, :longest], (1,)) == "reduce.block.along"
    assert (
        family_of("sum", rows, (1,)) == "reduce.along"
        and family_of("argmin", rows[:, :longest], (1,)) == "reduce.along"
    )
    assert family_of("sum", rows[: lanes - 1, :lanes], (1,)) == "reduce.block.along"
    assert family_of("sum", rows[: lanes - 1, : lanes - 1], (1,)) == "reduce.along"
    apart = np.zeros((50, 8 * lanes), "f4")[:, ::2]
    assert family_of("sum", apart, (1,)) == "reduce.along"
    two = np.zeros((5, 3, 9, 40), "f4")[:, :2]
    assert family_of("sum", two, (1, 3)) == "reduce.along"  # rows that do not merge
    assert family_of("all", np.zeros((50, longest), "?"), (1,), dtype="b1") != "reduce.block.along"
