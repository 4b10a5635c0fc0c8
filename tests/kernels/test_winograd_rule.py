"""The rule that chooses Winograd: where it applies, which gain it asks for, and the three terms of its costs."""

import numpy as np
import pytest

from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from cgraph.kernels.winograd import rule
from cgraph.kernels.winograd.calls import Winograd
from cgraph.kernels.winograd.rule import FILTER_BYTE_NS, MOVE_NS, MULTIPLY_ADD_NS, direct_ns, winograd_ns, winograd_rule
from tests.support.kernels import TARGETS
from tests.support.tolerance import assert_near

SAME = Window((3, 3), pad=(1, 1, 1, 1))


@pytest.mark.parametrize(
    "shape",
    [
        ConvShape(64, 56, 56, 64, host_target()),
        ConvShape(64, 56, 56, 64, host_target(), Window((3, 3), (2, 2), (1, 1, 1, 1))),
        ConvShape(64, 56, 56, 64, host_target(), SAME, groups=2),
        ConvShape(3, 56, 56, 64, host_target(), SAME, is_plain=True),
        ConvShape(64, 2, 2, 64, host_target(), Window((3, 3))),
    ],
    ids=["1x1", "stride", "grouped", "plain", "no result"],
)
def test_rule_is_direct_where_winograd_does_not_apply(shape):
    assert winograd_rule(shape, 1) == 0


def test_rule_takes_large_tiles_for_large_images_and_none_for_tiny_ones():
    assert winograd_rule(ConvShape(64, 56, 56, 64, host_target(), SAME), 1) == 4
    assert winograd_rule(ConvShape(512, 7, 7, 512, host_target(), SAME), 1) == 2
    assert winograd_rule(ConvShape(64, 1, 1, 64, host_target(), SAME), 1) == 0


def test_dilation_divides_the_image_into_smaller_ones():
    def tile(size, dilation):
        window = Window((3, 3), (1, 1), (dilation,) * 4, (dilation, dilation))
        return winograd_rule(ConvShape(256, size, size, 256, host_target(), window), 1)

    assert tile(32, 2) == 4
    assert tile(12, 6) == 2  # 36 images of 2 x 2 pixels
    assert tile(12, 12) == 0  # of one pixel each


def test_filters_whose_error_is_too_large_take_smaller_tiles():
    """32 channels are a short sum, whose direct error is small; a smooth filter's points cancel."""
    filters = np.random.default_rng(0).standard_normal((32, 64, 3, 3)).astype("f4")
    large, small = (ConvShape(c, 112, 112, 32, host_target(), SAME) for c in (64, 32))
    assert winograd_rule(large, 1) == winograd_rule(large, 1, filters) == winograd_rule(small, 1) == 4
    assert winograd_rule(small, 1, filters[:, :32]) == 2
    assert winograd_rule(large, 1, np.ones_like(filters)) == 2


def test_no_images_need_no_tiles():
    assert winograd_rule(ConvShape(64, 56, 56, 64, host_target(), SAME), 0) == 0


@pytest.mark.parametrize("costs, m", [
    ({2: 85.0, 4: 85.0}, 0),
    ({2: 84.9, 4: 200.0}, 2),
    ({2: 80.0, 4: 68.0}, 2),
    ({2: 80.0, 4: 67.9}, 4),
    ({2: 90.0, 4: 84.0}, 4),
    ({2: 1.0, 4: 0.9}, 2),
])  # fmt: skip
def test_each_step_to_larger_tiles_must_gain_a_seventh(costs, m, monkeypatch):
    """A direct convolution of 100 ns: below 85 % of that, and then below 85 % of the smaller tiles."""
    monkeypatch.setattr(rule, "direct_ns", lambda shape, n: 100.0)
    monkeypatch.setattr(rule, "winograd_ns", lambda plan: costs[plan.m])
    assert winograd_rule(ConvShape(64, 56, 56, 64, host_target(), SAME), 1) == m


@pytest.mark.parametrize("name", TARGETS)
def test_costs_are_multiply_adds_moved_values_and_bytes_of_filters(name):
    """Whole blocks of 32 channels into 64, for 3 images of 4 x 8, which no tile exceeds."""
    shape, n = ConvShape(32, 4, 8, 64, target_named(name), SAME), 3
    multiply_adds = n * 4 * 8 * 9 * 32 * 64
    assert_near(
        direct_ns(shape, n), MULTIPLY_ADD_NS * multiply_adds + FILTER_BYTE_NS * 9 * 32 * 64 * 4, "float64 formulas"
    )
    for m, tiles in ((2, n * 2 * 4), (4, n * 2)):
        points = (m + 2) ** 2
        products, moved, nbytes = tiles * points * 32 * 64, tiles * points * (32 + 64), points * 32 * 64 * 4
        want = MULTIPLY_ADD_NS * products + MOVE_NS[m] * moved + FILTER_BYTE_NS * nbytes
        assert_near(winograd_ns(Winograd(shape, n, m)), want, "float64 formulas")


def test_many_channels_of_a_small_image_keep_smaller_tiles_than_few_channels_of_a_large_one():
    """Reading four times the filters costs more than the products that larger tiles save."""
    assert winograd_rule(ConvShape(512, 4, 4, 512, host_target(), SAME), 1) < 4
    assert winograd_rule(ConvShape(512, 4, 4, 512, host_target(), SAME), 64) == 4
