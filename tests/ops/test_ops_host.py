"""Ops computed by NumPy: one result and several, operands of any strides, warnings kept quiet, failures kept loud."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.ir.spec import Bundle, Spec
from cgraph.kernels.kernel import Callback
from cgraph.kernels.target import host_target
from cgraph.ops.host import OnHost
from cgraph.ops.shape import items
from tests.support.ops import kernel_result, own_views, scattered, work_of


class Ratio(OnHost):
    """x / y in NumPy."""

    def infer(self, x: Spec, y: Spec) -> Spec:
        return x

    def meaning(self, x, y):
        if (y == 77).any():
            raise ZeroDivisionError("77 is refused")
        return x / y


class Parts(OnHost):
    """x + 1 and the sum of x."""

    uses_blas = False

    def infer(self, x: Spec) -> Bundle:
        return Bundle((x, Spec((), x.dtype)))

    def meaning(self, x):
        return x + 1, np.sum(x)


X, Y = np.array([[1.0, -6.0], [0.0, 8.0]]), np.array([[2.0, 3.0], [0.0, 0.0]])


@pytest.mark.filterwarnings("error")
def test_the_kernel_writes_what_the_meaning_says_and_warns_of_nothing():
    node = apply(Ratio(), cg.Var((2, 2), "float64"), cg.Var((2, 2), "float64"))
    for xs in ([X, Y], [scattered(X), scattered(Y)]):
        np.testing.assert_array_equal(kernel_result(node, xs, "all")[0], [[0.5, -2], [np.nan, np.inf]])


def test_several_results_are_written_each_to_its_place():
    node = apply(Parts(), cg.Var((2, 2), "float64"))
    first, second = kernel_result(node, [X], "all")
    np.testing.assert_array_equal(first, X + 1)
    assert second == 3
    assert [y.shape for y in items(node)] == [(2, 2), ()]


def test_a_call_holds_the_threads_of_blas_back_only_where_it_is_used():
    target = host_target()
    for op, specs in ((Ratio(), (2, 2)), (Parts(), (2, 2))):
        count = 2 if isinstance(op, Ratio) else 1
        node = apply(op, *(cg.Var(specs, "float64") for _ in range(count)))
        work = work_of(node, target)
        (call,) = work.placed(own_views(node), tuple(own_views(x) for x in node.operands), None)
        assert isinstance(call.kernel, Callback) and call.kernel.blas == op.uses_blas


def test_a_failure_reaches_the_caller():
    assert Ratio().can_fail and Ratio().takes_complex
    x, y = cg.Var((1,), "float64"), cg.Var((1,), "float64")
    f = cg.compile(apply(Ratio(), x, y), [x, y])
    assert f(np.array([3.0]), np.array([2.0])).tolist() == [1.5]
    with pytest.raises(ZeroDivisionError, match="77 is refused"):
        f(np.array([3.0]), np.array([77.0]))
