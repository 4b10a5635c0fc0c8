"""The kernels of the peak rate compute what their count of operations says: 48 vectors for each task."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.peak.emit import CHAINS
from cgraph.kernels.peak.signature import ADD_PRODUCTS, MULTIPLY_ADD
from cgraph.kernels.target import target_named
from tests.kernels.test_conv8 import FORMS, form
from tests.support.kernels import TARGETS, run_calls


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("tasks", [1, 5])
def test_each_chain_adds_four_squares_for_a_task(name, dtype, tasks):
    """The lanes of the first vector are small whole numbers, whose sums are exact."""
    target = target_named(name)
    lanes = target.lanes_of(dtype)
    x = np.full((CHAINS + 1, lanes), 77, dtype)
    x[0] = first = np.arange(1, lanes + 1)
    run_calls([MULTIPLY_ADD.call((dtype,), tasks, x=Pointer(x))], target)
    np.testing.assert_array_equal(x[:CHAINS], np.broadcast_to(first + tasks * 4 * first**2, (CHAINS, lanes)))
    assert (x[CHAINS] == 77).all()


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("tasks", [1, 5])
def test_each_chain_adds_four_sums_of_four_products_of_bytes(name, tasks):
    target = form(name)
    x = np.full((CHAINS + 1, target.lanes), 77, "i4")
    x[0] = first = np.frombuffer(bytes(i % 23 for i in range(4 * target.lanes)), "i4")
    run_calls([ADD_PRODUCTS.call((), tasks, x=Pointer(x))], target)
    squares = (first.copy().view("u1").astype("i4") ** 2).reshape(-1, 4).sum(1)
    np.testing.assert_array_equal(x[:CHAINS], np.broadcast_to(first + tasks * 4 * squares, (CHAINS, target.lanes)))
    assert (x[CHAINS] == 77).all()
