"""Prefix: the promise that rows beyond a count do not matter."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, NoGradientError, ShapeError
from cgraph.ops.leaf import Var
from cgraph.ops.prefix import Prefix, prefix


def test_rows_that_count_stay_and_the_others_become_nan_in_the_reference():
    x, n = Var((4, 2), name="x"), Var((), "int64", "n")
    f = cg.compile(prefix(x, n), [x, n], engine="reference")
    value = np.arange(8, dtype="f4").reshape(4, 2)
    for count in (0, 3, 4, 9):
        y = f(value, np.int64(count))
        assert np.array_equal(y[:count], value[:count])
        assert np.isnan(y[count:]).all()


def test_integers_stay_whole():
    assert np.array_equal(Prefix().meaning(np.arange(3), np.int64(1)), np.arange(3))


def test_the_same_prefix_again_is_the_value_itself():
    x, n = Var((4, 2), name="x"), Var((), "int64", "n")
    y = prefix(x, n)
    assert prefix(y, n) is y


def test_refusals():
    x, n = Var((4, 2), name="x"), Var((), "int64", "n")
    with pytest.raises(ShapeError, match="has no rows"):
        prefix(n, n)
    with pytest.raises(DTypeError, match="pass an int64 scalar"):
        prefix(x, Var((), "int32", "m"))
    with pytest.raises(NoGradientError, match="not computed"):
        cg.gradient(cg.sum(prefix(x, n)), [x])
