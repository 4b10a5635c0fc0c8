"""Convolutions whose filters reach far into the padding: which taps are left, and the same results."""

import numpy as np
import pytest

from cgraph.kernels.conv.clipped import CLIPPED, TapBand, bands_of, clipped_time, halo_read
from cgraph.kernels.target import target_named
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from cgraph.record import replace
from tests.kernels.test_conv import check
from tests.support.kernels import TARGETS

pytestmark = pytest.mark.usefixtures("cuts")

AVX2 = target_named("avx2")
FAR = Window((3, 3), pad=(12, 12, 12, 12), dilation=(12, 12))


def test_rows_that_meet_the_same_taps_are_a_band():
    shape = ConvShape(8, 14, 14, 8, AVX2, FAR)
    assert bands_of(shape, 0) == [TapBand(0, 2, 1, 3), TapBand(2, 10, 1, 2), TapBand(12, 2, 0, 2)]
    uneven = ConvShape(8, 5, 9, 8, AVX2, Window((2, 1), (2, 1), (0, 3, 5, 0), (3, 1)))
    assert bands_of(uneven, 1)[0] == TapBand(0, 12, 0, 1), "columns that no tap meets have one tap"


def test_results_are_cut_where_padding_takes_most_products():
    layer = ConvShape(64, 14, 14, 64, AVX2, FAR)
    assert round(clipped_time(layer), 6) == round(CLIPPED * (18 / 42) ** 2, 6)
    near = Window((3, 3), pad=(1, 1, 1, 1))
    others = replace(layer, window=near), replace(layer, groups=2), replace(layer, h=99, w=99)
    assert all(clipped_time(other) == 1 for other in others)


def test_a_cut_layer_reads_a_halo_only_if_rows_or_columns_meet_no_tap():
    layer = ConvShape(64, 14, 14, 64, AVX2, FAR)
    assert halo_read(layer) == (12, 12, 12, 12)
    assert halo_read(replace(layer, is_clipped=True)) == (0, 0, 0, 0)
    columns = replace(FAR, pad=(12, 26, 12, 12))
    assert halo_read(replace(layer, window=columns, is_clipped=True)) == columns.halo(14, 14)


# n, c, h, w, k, window, groups
CASES = {
    "dilation near the size": (2, 20, 14, 14, 30, FAR, 1),
    "several panels": (1, 9, 11, 10, 72, Window((3, 3), pad=(6, 6, 6, 6), dilation=(6, 6)), 1),
    "strides, uneven padding": (1, 17, 9, 12, 8, Window((3, 2), (2, 1), (7, 0, 3, 5), (5, 6)), 1),
    "rows that meet nothing": (1, 8, 2, 5, 8, Window((3, 1), (1, 1), (9, 0, 9, 0), (4, 1)), 1),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_clipped_convolution_is_what_numpy_computes(case, target):
    options = {"out_halo": (1, 0, 2, 1), "is_clipped": True}
    check(np.random.default_rng(1), case, target_named(target), **options)
    check(np.random.default_rng(1), case, target_named(target), reads_halo=False, **options)
    check(np.random.default_rng(1), case, target_named(target), is_mixed=True, **options)
