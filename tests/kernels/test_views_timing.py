"""Estimates of kernel times: in proportion to the work, and longer without fused multiply-add."""

from cgraph.kernels.isa.x86 import AVX2, PORTABLE
from cgraph.kernels.views.timing import tile_ns
from tests.support.tolerance import near


def test_a_multiply_and_an_addition_take_twice_as_long_as_both_in_one():
    assert tile_ns(AVX2, 1000) == near(300, "float64 formulas")
    assert tile_ns(PORTABLE, 1000) == near(600, "float64 formulas")
    assert tile_ns(AVX2, 0) == 0
