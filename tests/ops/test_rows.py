"""A cache that an update edge writes: rows at a position that is data, in the Var's own bytes."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import DTypeError, PositionError, ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.rows import SetRows

RNG = np.random.default_rng(0)


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


def by_hand(x, y, start, axis):
    """The rows that are read, and `x` with the rows of `y`, one row after another."""
    x, y = np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0)
    read, written = np.zeros_like(y), x.copy()
    for row in range(len(y)):
        if 0 <= start + row < len(x):
            read[row], written[start + row] = x[start + row], y[row]
    return np.moveaxis(read, 0, axis), np.moveaxis(written, 0, axis)


@pytest.mark.parametrize(("axis", "each"), [(0, False), (1, False), (1, True), (2, True), (-1, False)])
@pytest.mark.parametrize("count", [1, 3, 7])
def test_rows_from_before_the_first_to_behind_the_last(axis, each, count):
    """Every position, as many elements of the first axis, and those at the ends of int64."""
    starts = [-(2**63), *range(-count - 1, 7), 2**63 - 1 - count]
    shape = [len(starts) if each else 2, 5, 4]
    shape[axis] = 5
    x = RNG.standard_normal(shape).astype("f4")
    y = RNG.standard_normal([count if i == axis % 3 else n for i, n in enumerate(shape)]).astype("f4")
    nodes = cg.Var(x.shape, name="x"), cg.Var(y.shape, name="y"), cg.Var((len(starts),) * each, "int64", "start")
    outputs = [
        cg.take_rows(nodes[0], nodes[2], count, axis=axis), cg.set_rows(nodes[0], nodes[2], nodes[1], axis=axis)
    ]  # fmt: skip
    function = cg.compile(outputs, nodes)
    if each:
        want = [np.stack(z) for z in zip(*(by_hand(a, b, s, axis - 1) for a, b, s in zip(x, y, starts)))]
        cases = [(np.array(starts), want)]
    else:
        cases = [(np.int64(s), by_hand(x, y, s, axis)) for s in starts]
    for start, want in cases:
        values = dict(zip(nodes, (x, y, np.asarray(start, np.int64))))
        for got in (function(*values.values()), evaluate(outputs, values)):
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)
