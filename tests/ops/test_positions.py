"""Reading and writing at positions, and results of a size of their own, beside NumPy in plain loops."""

import numpy as np
import pytest

import cgraph as cg
from tests.support.draws import Draws
from tests.support.tolerance import assert_close

WRITES = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


@pytest.mark.parametrize("how", ["set", *WRITES])
@pytest.mark.parametrize("seed", range(6))
def test_writes_at_positions_are_numpys(how, seed):
    """Of several at one position, the last stays."""
    d = Draws(seed, len(how))
    x = d.drawn(*d.shape(1, 3))
    axis = d.axis(x.ndim)
    n, behind = x.shape[axis], x.shape[axis:][1:]
    places = d.numbers("int64", *d.shape(0, 2), low=-n, high=n - 1)
    values = d.numbers(str(x.dtype), *x.shape[: axis % x.ndim], *places.shape, *behind)
    want = np.moveaxis(x, axis, 0).copy()
    rank = axis % x.ndim
    moved = np.moveaxis(values, range(rank, rank + places.ndim), range(places.ndim))
    for at in np.ndindex(places.shape):
        row = places[at] % n
        want[row] = moved[at] if how == "set" else WRITES[how](want[row], moved[at])
    want = np.moveaxis(want, 0, axis)
    for engine in ("reference", "cpu"):
        assert_close(cg.compile(cg.scatter(x, places, values, how, axis), engine=engine, passes=False)(), want)
    along = d.numbers("int64", *(d.whole(1, 3) if i == rank else m for i, m in enumerate(x.shape)), low=-n, high=n - 1)
    each = d.numbers(str(x.dtype), *along.shape)
    want = x.copy()
    for at in np.ndindex(along.shape):
        place = (*at[:rank], along[at] % n, *at[rank + 1 :])
        want[place] = each[at] if how == "set" else WRITES[how](want[place], each[at])
    for engine in ("reference", "cpu"):
        assert_close(cg.compile(cg.put_along_axis(x, along, each, axis, how), engine=engine, passes=False)(), want)


@pytest.mark.parametrize("seed", range(8))
def test_what_has_a_size_of_its_own_is_cut_or_filled_up(seed):
    d = Draws(seed)
    x = d.numbers(d.of("float32", "int16"), *d.shape(1, 3), low=-2, high=2)
    size, fill = d.whole(1, 9), d.whole(-3, 3)
    places, count = (v.eval() for v in cg.nonzero(x, size, fill))
    found = np.array(np.nonzero(x)).reshape(x.ndim, -1)[:, :size]
    np.testing.assert_array_equal(places, np.pad(found, ((0, 0), (0, size - found.shape[1])), constant_values=fill))
    assert count == np.count_nonzero(x)
    values, count = (v.eval() for v in cg.unique(x, size, fill))
    once = np.unique(x)
    np.testing.assert_array_equal(values, np.pad(once[:size], (0, max(size - len(once), 0)), constant_values=fill))
    assert count == len(once)
    axis, depth = d.axis(x.ndim + 1), d.whole(1, 4)
    index = d.numbers("int64", *x.shape, low=-5, high=5)
    steps = np.moveaxis(np.broadcast_to(np.arange(depth), (*x.shape, depth)), -1, axis)
    hot = np.expand_dims(np.where(index < 0, index + depth, index), axis) == steps
    np.testing.assert_array_equal(cg.one_hot(index, depth, axis).eval(), hot.astype("f4"))
    np.testing.assert_array_equal(cg.one_hot(index, depth, axis, "int16", 7, -2).eval(), np.where(hot, 7, -2))
    axis = d.axis(x.ndim)
    k = d.whole(1, x.shape[axis])
    for largest in (True, False):
        order = np.argsort(-x.astype("f8") if largest else x, axis, kind="stable")
        order = np.take(order, np.arange(k), axis)
        for got, want in zip(cg.top_k(x, k, axis, largest), (np.take_along_axis(x, order, axis), order)):
            np.testing.assert_array_equal(got.eval(), want)
    for batch in range(x.ndim):
        for depth in range(1, x.ndim - batch + 1):
            rows = (*x.shape[:batch], 2)
            at = [d.numbers("int64", *rows, low=0, high=n - 1) for n in x.shape[batch : batch + depth]]
            leading = [
                np.arange(n).reshape([-1 if i == j else 1 for j in range(batch + 1)])
                for i, n in enumerate(x.shape[:batch])
            ]
            np.testing.assert_array_equal(cg.gather_nd(x, np.stack(at, -1), batch).eval(), x[(*leading, *at)])


OUTSIDE = {
    "take": lambda x, i: cg.take(x, i, 1),
    "take_along_axis": lambda x, i: cg.take_along_axis(x, cg.reshape(i, (1, -1)), 1),
    "scatter": lambda x, i: cg.scatter(x, i, 1.0, "add", 1),
    "put_along_axis": lambda x, i: cg.put_along_axis(x, cg.reshape(i, (1, -1)), 1.0, 1, "set"),
}


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("bad", [4, -5, 2**40, -(2**62)])
def test_a_position_outside_ends_a_run_wherever_it_stands_and_the_reference_names_it(bad, name, engine):
    """First, in the middle or last among positions at both ends of the axis, which are right."""
    x, i = cg.Var((3, 4), "float64", "x"), cg.Var((5,), "int64", "i")
    function = cg.compile(OUTSIDE[name](x, i), [x, i], engine=engine)
    places = np.array([3, -4, 0, -1, 2])
    function(np.ones((3, 4)), places)
    for at in (0, 2, 4):
        wrong = np.where(np.arange(5) == at, bad, places)
        with pytest.raises(
            cg.PositionError, match=f"position {bad} is outside" if engine == "reference" else "outside"
        ):
            function(np.ones((3, 4)), wrong)
    function(np.ones((3, 4)), places)


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_a_position_in_an_axis_without_elements_is_outside(engine):
    """Nothing is moved there, and yet the run ends; without positions it does not."""
    x, values = np.ones((3, 0)), np.ones((3, 2))
    for places in (np.zeros((3, 2), int), np.full((3, 2), -1)):
        function = cg.compile(cg.put_along_axis(x, places, values, 1, "add"), engine=engine, passes=False)
        with pytest.raises(cg.PositionError):
            function()
        with pytest.raises(cg.PositionError):
            cg.compile(cg.scatter(x, places[0], values, "add", 1), engine=engine, passes=False)()
    nothing = np.zeros((3, 0), int)
    assert cg.compile(cg.put_along_axis(x, nothing, x, 1), engine=engine, passes=False)().shape == (3, 0)
