"""Reductions and scans by halves keep the order of operands, for every number of elements."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.numpy.folds import by_halves, by_steps
from tests.numpy.evaluated import values


def join(x, y):
    """The first of the first pair and the last of the last one: associative, and not commutative."""
    return cg.concat([x[..., :1], y[..., 1:]], -1)


@pytest.mark.parametrize("count", range(1, 10))
def test_the_first_operand_stays_the_first(count):
    x = cg.Const(np.arange(2 * count).reshape(count, 2))
    ends, steps = values([by_halves(join, x, 0, False, None), by_steps(join, x, 0)])
    assert ends.tolist() == [0, 2 * count - 1]
    assert steps.tolist() == [[0, 2 * i + 1] for i in range(count)]


@pytest.mark.parametrize("count", range(1, 10))
def test_every_element_counts_once(count):
    x = np.arange(1.0, 3 * count + 1).reshape(3, count)
    sums, scans = values([by_halves(cg.add, cg.Const(x), 1, False, 0), by_steps(cg.add, cg.Const(x), 1)])
    np.testing.assert_array_equal(sums, x.sum(1))
    np.testing.assert_array_equal(scans, x.cumsum(1))


def test_the_nodes_grow_with_the_logarithm():
    calls = []

    def counted(x, y):
        calls.append(x.shape)
        return x + y

    by_halves(counted, cg.Var((1024,)), 0, False, 0)
    by_steps(counted, cg.Var((1024,)), 0)
    assert len(calls) == 22  # one of each only asks for the dtype


def test_no_elements_give_the_neutral_one_or_are_refused():
    x = cg.Var((2, 0, 3), "int32")
    (got,) = values([by_halves(cg.add, x, (1, 2), True, 7)])
    assert got.tolist() == [[[7]], [[7]]] and got.dtype == "int32"
    assert by_halves(cg.add, x, 1, False, 7).shape == (2, 3)
    with pytest.raises(ShapeError, match="along axis 1"):
        by_halves(cg.add, x, 1, False, None)


def test_one_element_has_the_dtype_of_two():
    x = cg.Const(np.array([[0.75], [0.0]]))
    once, steps = values([by_halves(cg.logical_xor, x, 1, False, False), by_steps(cg.logical_or, x, 0)])
    assert once.tolist() == [True, False] and once.dtype == bool
    assert steps.tolist() == [[True], [True]] and steps.dtype == bool
