"""FirstRows and FirstWrites: as many rows as a count says, rounded up."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ir.graph import apply
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.kernels.target import host_target
from cgraph.ops.leaf import Var
from cgraph.ops.physical.first_rows import (
    LEAST_NBYTES,
    UNBOUNDED,
    FirstRows,
    FirstWrites,
    least_rows,
    row_counts,
)
from cgraph.ops.take import Scatter
from tests.support.tolerance import assert_near

ENGINES = ["reference", CpuEngine(poison=True), CpuEngine(threads=2), "cuda-sim"]


def test_counts_grow_by_at_most_a_half():
    for n in range(1, 200):
        counts = row_counts(n)
        assert counts[-1] == n and counts == sorted(set(counts))
        assert all(b <= a + max(a // 2, 1) for a, b in zip(counts, counts[1:]))


def test_counts_begin_with_the_least():
    assert row_counts(30) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 30]
    assert row_counts(30, 6) == [6, 8, 12, 16, 24, 30]
    assert row_counts(30, 7) == [8, 12, 16, 24, 30]
    assert row_counts(30, 30) == row_counts(30, 1000) == [30]
    assert row_counts(24, 0) == [1, 2, 3, 4, 6, 8, 12, 16, 24]


SIZES = [  # op, specs, the least number of rows
    (cg.add(Var((500, 32)), Var((500, 32))).op, ((500, 32), (500, 32)), LEAST_NBYTES // 256),
    (cg.add(Var((500, 33)), Var((500, 33))).op, ((500, 33), (500, 33)), LEAST_NBYTES // 264),
    (cg.add(Var((500, 5000)), Var((500, 5000))).op, ((500, 5000), (500, 5000)), 0),
    (cg.matmul(Var((500, 8)), Var((8, 4))).op, ((500, 8), (8, 4)), 1),
    (cg.take(Var((500, 8)), np.arange(70), 0).op, ((500, 8), (70,)), 1),
    (cg.exp(Var((500, 0))).op, ((500, 0),), LEAST_NBYTES),
    (cg.exp(Var((0, 2))).op, ((0, 2),), LEAST_NBYTES),
]


@pytest.mark.parametrize(("op", "shapes", "least"), SIZES)
def test_few_bytes_are_no_choice_but_products_and_rows_that_can_fail_are(op, shapes, least):
    first, *others = (Spec(shape, np.dtype("f4")) for shape in shapes)
    specs = (first, *(Spec(x.shape, np.dtype("i8")) if op.can_fail else x for x in others))
    rule = op.row_rule(*specs) or RowRule((0,), lambda rows: op)
    assert least_rows(op, rule, specs) == least
    if shapes[0][0]:
        sizes = FirstRows(op).sizes(host_target(), specs)
        counts = row_counts(op.infer(*specs).shape[0], least)
        assert [size.rows for size in sizes] == counts
        assert [size.low for size in sizes] == [0, *counts[:-1]]
        assert [size.high for size in sizes] == [*counts[:-1], UNBOUNDED]


def test_writes_which_can_fail_are_a_choice_from_one_row_on():
    specs = [Spec((9, 3), np.dtype("f4")), Spec((500,), np.dtype("i8")), Spec((500, 3), np.dtype("f4"))]
    sizes = FirstWrites(Scatter(0, "set")).sizes(host_target(), tuple(specs))
    assert [size.rows for size in sizes] == row_counts(500)
    assert sizes[0].low == -UNBOUNDED and sizes[-1].high == UNBOUNDED


@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_rows_that_count_are_those_of_the_op(engine):
    rng = np.random.default_rng(0)
    x, w, n = Var((21, 8), name="x"), Var((8, 5), name="w"), Var((), "int64", "n")
    product = x @ w
    f = cg.compile(apply(FirstRows(product.op), x, w, n), [x, w, n], engine=engine)
    g = cg.compile(product, [x, w], engine=engine)
    a, b = (rng.normal(size=v.shape).astype("f4") for v in (x, w))
    for count in (-1, 0, 1, 4, 5, 20, 21, 1000):
        rows = max(count, 0)
        assert_near(f(a, b, np.int64(count))[:rows], g(a, b)[:rows], "float32 formulas near zero")


@pytest.mark.parametrize("columns", [3, 400])
@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_rows_of_any_width_are_those_of_the_op(engine, columns):
    x, n = Var((21, columns), "int32", "x"), Var((), "int64", "n")
    f = cg.compile(apply(FirstRows((x + x).op), x, x, n), [x, n], engine=engine)
    values = np.arange(x.size, dtype="i4").reshape(x.shape)
    for count in (-1, 0, 1, 2, 3, 5, 12, 20, 21, 1000):
        rows = max(count, 0)
        assert np.array_equal(f(values, np.int64(count))[:rows], 2 * values[:rows])


@pytest.mark.parametrize("columns", [3, 400])
@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_writes_that_count_happen_and_the_value_is_copied_without_any(engine, columns):
    shapes = (9, columns), (8, columns)
    x, v = (Var(shape, name=name) for shape, name in zip(shapes, "xv"))
    i, n = Var((8,), "int64", "i"), Var((), "int64", "n")
    f = cg.compile(apply(FirstWrites(Scatter(0, "set")), x, i, v, n)[:8], [x, i, v, n], engine=engine)
    base, values = np.zeros(x.shape, "f4"), np.arange(1, v.size + 1, dtype="f4").reshape(v.shape)
    for count in (-1, 0, 1, 3, 5, 8, 1000):
        rows = min(max(count, 0), 8)
        indices = np.array([*range(rows), *[8] * (8 - rows)])  # what does not count goes to the last row
        wanted = np.concatenate([values[:rows], base[rows:8]])
        assert np.array_equal(f(base, indices, values, np.int64(count)), wanted)


def test_counts_below_one_and_above_all_rows_mean_none_and_all():
    x, w = np.arange(12.0).reshape(4, 3), np.eye(3)
    op = FirstRows(cg.Var((4, 3), "float64").__matmul__(cg.Var((3, 3), "float64")).op)
    for count in (-5, -1, 0, 1, 3, 4, 5, 99):
        rows = min(max(count, 0), 4)
        got = op.meaning(x, w, np.int64(count))
        np.testing.assert_array_equal(got[:rows], x[:rows])
        assert not got[rows:].any()
        written = FirstWrites(Scatter(0, "add")).meaning(np.zeros((4, 3)), np.arange(4), x, np.int64(count))
        np.testing.assert_array_equal(written[:rows], x[:rows])
        assert not written[rows:].any()
