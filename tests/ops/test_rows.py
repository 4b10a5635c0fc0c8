"""A cache that an update edge writes: rows at a position that is data, in the Var's own bytes."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, PositionError, ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.rows import SetRows


def cache_and_step(rows=1, can_fail=False):
    """A cache ``[2, 5, 3]``, and a function that writes rows of its input from a position on and sums up."""
    cache = cg.Var((2, 5, 3), name="cache").assign(np.zeros((2, 5, 3), "float32"))
    at = cg.Var((2,), "int64", "at").assign(np.array([0, 3]))
    x = cg.Var((2, rows, 3), name="x") if not can_fail else cg.Var((2, rows), "int64", "x")
    table = np.arange(12, dtype="float32").reshape(4, 3)
    new = cg.set_rows(cache, at, cg.take(table, x, 0) if can_fail else x, 1)
    return cache, at, cg.compile(cg.sum(new, (1, 2)), x, updates={cache: new, at: at + rows})


@pytest.mark.parametrize("rows", [1, 2])
def test_a_cache_is_written_in_place_row_by_row(rows):
    cache, at, step = cache_and_step(rows)
    assert step.nbytes < cache.nbytes
    step(np.zeros((2, rows, 3), "float32"))
    address = cache.cell.value.address
    want = np.zeros((2, 5, 3), "float32")
    for i in range(1, 4):
        given = np.full((2, rows, 3), i, "float32")
        got = step(given)
        for b, first in enumerate(at.value - rows):
            want[b, first : first + rows] = given[b, : max(0, 5 - first)]
        np.testing.assert_array_equal(cache.value, want)
        np.testing.assert_array_equal(got, want.sum((1, 2)))
    assert cache.cell.value.address == address


def test_what_may_fail_before_the_write_leaves_the_cache_as_it_was():
    cache, at, step = cache_and_step(1, can_fail=True)
    assert [source.op.writes for source in step.compiled.sources] == [True, False]
    step(np.array([[1], [2]]))
    before, place = cache.value, at.value
    with pytest.raises(PositionError):
        step(np.array([[1], [4]]))
    np.testing.assert_array_equal(cache.value, before)
    np.testing.assert_array_equal(at.value, place)
    step(np.array([[3], [3]]))
    assert cache.value[0, 1].tolist() == [9, 10, 11]


def test_what_may_fail_after_the_write_keeps_a_copy():
    cache = cg.Var((5, 3), name="cache").assign(np.zeros((5, 3), "float32"))
    x = cg.Var((1, 3), name="x")
    new = cg.set_rows(cache, 2, x)
    picked = cg.take(np.eye(3, dtype="float32"), cg.argmax(new[2]) + 1, 0)
    step = cg.compile(picked, x, updates={cache: new})
    assert [source.op.writes for source in step.compiled.sources] == [False]
    step(np.array([[0, 1, 0]], "float32"))
    before = cache.value
    with pytest.raises(PositionError):
        step(np.array([[0, 0, 1]], "float32"))
    np.testing.assert_array_equal(cache.value, before)


REFUSED = {
    "a float position": (DTypeError, lambda x: apply(SetRows(0), x, x, cg.zeros(()))),
    "positions of another length": (ShapeError, lambda x: cg.set_rows(x, np.arange(3), x, 1)),
    "positions along the rows' own axis": (ShapeError, lambda x: cg.take_rows(x, np.arange(4), 1)),
    "rows of another width": (ShapeError, lambda x: cg.set_rows(x, 0, x[:, :1])),
    "rows of another dtype": (DTypeError, lambda x: apply(SetRows(0), x, x.astype("int32"), cg.zeros((), "int64"))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name):
    kind, build = REFUSED[name]
    with pytest.raises(kind):
        build(cg.Var((4, 5), name="x"))
