"""FirstRows and FirstWrites: as many rows as a count says, rounded up."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ir.graph import apply
from cgraph.ops.leaf import Var
from cgraph.ops.physical.first_rows import FirstRows, FirstWrites, row_counts
from cgraph.ops.take import Scatter
from tests.support.tolerance import assert_near

ENGINES = ["reference", CpuEngine(poison=True), CpuEngine(threads=2), "cuda-sim"]


def test_counts_grow_by_at_most_a_half():
    for n in range(1, 200):
        counts = row_counts(n)
        assert counts[-1] == n and counts == sorted(set(counts))
        assert all(b <= a + max(a // 2, 1) for a, b in zip(counts, counts[1:]))


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


@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_writes_that_count_happen_and_the_value_is_copied_without_any(engine):
    x, i, v, n = Var((9, 3), name="x"), Var((8,), "int64", "i"), Var((8, 3), name="v"), Var((), "int64", "n")
    f = cg.compile(apply(FirstWrites(Scatter(0, "set")), x, i, v, n)[:8], [x, i, v, n], engine=engine)
    base, values = np.zeros((9, 3), "f4"), np.arange(1, 25, dtype="f4").reshape(8, 3)
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
