"""Estimates of kernel times: in proportion to the work, and longer without fused multiply-add; sizes of tasks."""

import numpy as np

from cgraph.kernels.expression import Trace
from cgraph.kernels.isa.x86 import AVX2, PORTABLE
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import host_target
from cgraph.kernels.views.layout import TASK_ELEMENTS
from cgraph.kernels.views.timing import task_elements, tile_ns
from tests.support.kernels import view_of
from tests.support.tolerance import near


def test_a_multiply_and_an_addition_take_twice_as_long_as_both_in_one():
    assert tile_ns(AVX2, 1000) == near(300, "float64 formulas")
    assert tile_ns(PORTABLE, 1000) == near(600, "float64 formulas")
    assert tile_ns(AVX2, 0) == 0


def test_a_task_of_functions_has_fewer_elements_and_one_of_doubles_half_as_many():
    def program(dtype, *names):
        return (("load", dtype, 0), *((name, dtype, i) for i, name in enumerate(names)))

    assert task_elements(program("f4")) == task_elements(program("f8", "neg")) == TASK_ELEMENTS
    some, double = task_elements(program("f4", *20 * ["exp"])), task_elements(program("f8", *20 * ["exp"]))
    assert TASK_ELEMENTS > some == 2 * double + some % 128 and some % 64 == 0
    assert task_elements(program("f4", *20 * ["neg"])) > some
    assert task_elements(program("f8", *9999 * ["exp"])) == 64


def test_threads_share_an_array_of_medium_size():
    x = np.ones(20_000)
    out = np.empty_like(x)
    m = Trace()
    (call,) = pointwise_calls(host_target(), m.program(m.exp(m.load(0, "f8"))), view_of(out), view_of(x))
    assert call.tasks >= 4
