"""Positions that are data: outside their axis they end the run by name; masks; several positions in one place."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import DTypeError, PositionError, ShapeError
from cgraph.ops.shape import axis_of

every_number_of_threads = pytest.mark.parametrize("threads", [1, 2])


@every_number_of_threads
@pytest.mark.parametrize("build", [
    lambda x, i: cg.take(x, i, 0),
    lambda x, i: cg.square(x)[i, i] * 2,
    lambda x, i: cg.scatter_add(x, i, 1.0),
    lambda x, i: cg.take_along_axis(x, i[:, None], 0),
    lambda x, i: cg.put_along_axis(x, i[:, None], 1.0, 0),
    lambda x, i: cg.gather_nd(x, i[:, None]),
], ids=["take", "two", "scatter", "along", "put", "nd"])  # fmt: skip
def test_a_position_outside_its_axis_ends_the_run_and_the_function_stays_usable(build, threads):
    x, i = cg.Var((4, 3), "float64", "x"), cg.Var((2,), "int64", "i")
    f = cg.compile(build(x, i), [x, i], threads=threads)
    want = cg.compile(build(x, i), [x, i], engine="reference")
    value = np.arange(12.0).reshape(4, 3)
    for bad in ([0, 4], [-5, 1]):
        with pytest.raises(PositionError, match=r"at test_index.py:\d+: a position is outside its axis"):
            f(value, np.array(bad))
        np.testing.assert_array_equal(f(value, np.array([2, -1])), want(value, np.array([2, -1])))


def test_known_positions_are_refused_when_the_graph_is_built():
    x = cg.Var((4, 3), name="x")
    with pytest.raises(PositionError, match="axis of 3"):
        x[[0, 1], [2, 3]]


def test_positions_must_be_whole_numbers():
    x = cg.Var((4, 3), name="x")
    with pytest.raises(DTypeError, match="must be integers"):
        cg.take(x, cg.Var((2,)))
    with pytest.raises(DTypeError, match="nonzero with a size"):
        x[cg.Var((4,), bool)]


def test_a_known_mask_selects():
    value = np.arange(12.0).reshape(4, 3)
    mask = np.array([True, False, True, True])
    np.testing.assert_array_equal(cg.Const(value)[mask].eval(), value[mask])
    np.testing.assert_array_equal(cg.Const(value)[mask, 1].eval(), value[mask, 1])
    np.testing.assert_array_equal(cg.Const(value)[value > 3].eval(), value[value > 3])


def test_of_several_updates_of_one_place_the_last_stays():
    x = cg.Var((3,), "float64").assign([0, 0, 0])
    y = cg.Var((4,), "float64").assign([1, 2, 3, 4])
    found = cg.scatter(x, [1, 1, 2, 1], y)
    np.testing.assert_array_equal(found.eval(), [0, 4, 3])
    np.testing.assert_array_equal(cg.gradient(cg.sum(found * 2), y).eval(), [0, 0, 2, 2])


@pytest.mark.parametrize("axis", [0.5, 1.0, "0", None, [0]])
def test_an_axis_is_a_whole_number(axis):
    with pytest.raises(ShapeError, match="not an integer"):
        axis_of(axis, 2)
    assert axis_of(np.int64(-1), 2) == 1


def test_a_value_has_as_many_axes_as_numpy_broadcasts():
    assert cg.Var((1,) * 32).ndim == 32
    with pytest.raises(ShapeError, match="has 33 axes; at most 32"):
        cg.Var((1,) * 33)


def test_an_empty_axis_has_nothing_to_take():
    with pytest.raises(PositionError, match="no element to take"):
        cg.take(cg.Var((0, 3)), [0])
    assert cg.take(cg.Var((0, 3)).assign(np.zeros((0, 3), "f4")), []).eval().shape == (0,)


def test_counts_beyond_the_fixed_size_are_told():
    x = cg.Const(np.array([[3, 0, 1], [1, 2, 3]]))
    places, count = cg.nonzero(x, 2)
    np.testing.assert_array_equal(places.eval(), [[0, 0], [0, 2]])
    assert count.eval() == 5
    values, count = cg.unique(x, 6, -1)
    np.testing.assert_array_equal(values.eval(), [0, 1, 2, 3, -1, -1])
    assert count.eval() == 4


@pytest.mark.parametrize("fill", [0, 7, -1])
def test_indices_beyond_the_count_are_the_fill(fill):
    indices, count = cg.nonzero(cg.Const(np.array([[3, 0], [0, 2]])), 4, fill)
    assert indices.eval().tolist() == [[0, 1, fill, fill], [0, 1, fill, fill]] and count.eval() == 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_sorts_last_in_either_direction(dtype):
    x = cg.Var((5,), dtype)
    value = np.array([2, np.nan, 1, np.inf, -np.inf], dtype)
    f = cg.compile([cg.sort(x), cg.sort(x, descending=True), cg.argsort(x, descending=True), *cg.top_k(x, 4)], [x])
    rising, falling, places, top, top_places = f(value)
    np.testing.assert_array_equal(rising, [-np.inf, 1, 2, np.inf, np.nan])
    np.testing.assert_array_equal(falling, [np.inf, 2, 1, -np.inf, np.nan])
    np.testing.assert_array_equal(places, [3, 0, 2, 4, 1])
    np.testing.assert_array_equal(top, falling[:4])
    np.testing.assert_array_equal(top_places, places[:4])


X, EMPTY = np.arange(12, dtype="f4").reshape(3, 4), np.zeros((3, 0), "f4")
WAYS = {  # a function of an array and positions, the array, and the shape of positions
    "take": (lambda x, i: cg.take(x, i, 0), X, (2,)),
    "take of rows without elements": (lambda x, i: cg.take(x, i, 0), EMPTY, (2,)),
    "index": (lambda x, i: x[i], EMPTY, (2,)),
    "two indices": (lambda x, i: x[i, i], X, (2,)),
    "index behind an axis without elements": (lambda x, i: x[:, i], np.zeros((0, 3), "f4"), (2,)),
    "scatter": (lambda x, i: cg.scatter(x, i, np.zeros((2, 4), "f4")), X, (2,)),
    "scatter of rows without elements": (lambda x, i: cg.scatter(x, i, np.zeros((2, 0), "f4")), EMPTY, (2,)),
    "take_along_axis": (lambda x, i: cg.take_along_axis(x, i, 0), X, (2, 4)),
    "put_along_axis": (lambda x, i: cg.put_along_axis(x, i, np.zeros((2, 4), "f4"), 0), X, (2, 4)),
    "gather_nd": (cg.gather_nd, X, (1, 2)),
    "gather_nd of no elements": (cg.gather_nd, np.zeros((3, 3, 0), "f4"), (1, 2)),
    "gather_nd in a batch": (lambda x, i: cg.gather_nd(x, i, 1), X[:, :3], (3, 1)),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("bad", [-5, 4])
@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_a_position_outside_its_axis_is_refused_on_every_way(name, bad, engine):
    """With and without elements to move, when it runs and while constants are computed; one inside is not."""
    function, value, shape = WAYS[name]
    for place in (bad, -3, 2):
        places = np.zeros(shape, np.int64)
        places.flat[-1] = place
        x, i = cg.Var(value.shape, name="x"), cg.Var(shape, "int64", name="i")

        def at_run(x=x, i=i, places=places):
            return cg.compile(function(x, i), [x, i], engine=engine)(value, places)

        def while_compiling(places=places):
            return cg.compile(function(cg.Const(value), cg.Const(places)), engine=engine)()

        if place == bad:
            for way in (at_run, while_compiling):
                with pytest.raises(PositionError):
                    way()
        else:
            np.testing.assert_array_equal(at_run(), while_compiling())


def test_arrays_beside_every_other_part_of_an_index():
    """Up to four parts: what stands between two arrays, even an empty ellipsis, moves their axes to the front."""
    array = np.arange(24.0).reshape(2, 3, 4)
    x = cg.Var(array)
    parts = (slice(None), slice(None, None, -2), None, ..., 1, np.array([1, 0]), np.array([[0], [-1], [1]]))
    indices = [index for n in (1, 2, 3, 4) for index in product(parts, repeat=n) if fits(index)]
    for index, node in zip(indices, evaluate([x[index] for index in indices])):
        np.testing.assert_array_equal(node, array[index], err_msg=str(index))


def fits(index):
    arrays = sum(isinstance(part, np.ndarray) for part in index)
    axes = sum(part is not None and part is not ... for part in index)
    return arrays and axes <= 3 and sum(part is ... for part in index) <= 1
