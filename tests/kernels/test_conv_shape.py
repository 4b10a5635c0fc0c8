"""The geometry of a convolution: tiles by hand on each processor, panels of groups, the order of the reduction."""

import numpy as np
import pytest

from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.isa.x86 import AVX2, AVX512, PORTABLE
from cgraph.kernels.views.conv_shape import ConvShape, pixels_for, sums, tile_fits
from cgraph.kernels.views.window import Window
from cgraph.record import replace

TALL = Window((3, 2), (2, 1), (1, 0, 2, 3), (1, 2))


def test_groups_divide_both_numbers_of_channels_and_plain_images_have_one():
    for c, k in ((6, 8), (8, 6)):
        with pytest.raises(ValueError, match=f"4 groups do not divide {c} and {k} channels. Choose groups="):
            ConvShape(c, 5, 5, k, AVX2, groups=4)
    with pytest.raises(ValueError, match="plain images need one group, not 2. Convert"):
        ConvShape(4, 5, 5, 4, AVX2, groups=2, is_plain=True)


@pytest.mark.parametrize(
    ("target", "dtype", "lanes"), [(AVX512, "f4", 16), (AVX512, "f8", 8), (AVX2, "f4", 8), (PORTABLE, "f8", 2)]
)
def test_blocks_have_a_registers_channels(target, dtype, lanes):
    shape = ConvShape(20, 5, 7, 33, target, TALL, dtype=dtype)
    assert (shape.lanes, shape.source_lanes, shape.blocks) == (lanes, lanes, -(-33 // lanes))
    assert shape.panel_channels == shape.vectors * lanes and shape.panels * shape.vectors == shape.blocks


def test_rows_and_columns_of_the_result_have_strides_pads_and_dilations_of_their_own():
    """Rows: (5 + 1 + 2 - 3) // 2 + 1. Columns: 7 + 0 + 3 - 3 + 1."""
    shape = ConvShape(4, 5, 7, 6, AVX2, TALL)
    assert shape.result == (3, 8)
    assert shape.flops == 2 * 3 * 8 * 6 * 4 * 6
    assert ConvShape(4, 5, 7, 6, AVX2, TALL, groups=2).flops == shape.flops // 2


@pytest.mark.parametrize(
    ("target", "most"),
    [(AVX512, 28), (AVX2, 12), (PORTABLE, 8), (replace(AVX2, registers=8), 6), (replace(AVX2, registers=1), 1)],
)
def test_sums_leave_room_for_weights_and_a_scalar(target, most):
    assert sums(target) == most


@pytest.mark.parametrize(
    ("columns", "vectors", "target", "pixels"),
    [
        (5, 2, AVX512, 5),  # fewer than the most are one tile
        (0, 2, AVX512, 1),
        (56, 2, AVX512, 14),
        (15, 2, AVX512, 8),  # two tiles of 8 cost 17, two of 14 cost 29
        (100, 1, AVX512, 10),  # 10 tiles of 10 cost 105, 8 of 13 cost 108, 8 of 14 cost 116
        (13, 4, AVX2, 3),  # 5 tiles of 3 cost 17.5, 13 of 1 cost 19.5
        (12, 30, AVX512, 1),
        (15, 2, replace(gpu_target(9, 0), registers=32), 5),  # tiles of a GPU never overlap
    ],
)
def test_the_tile_that_wastes_least_is_chosen(columns, vectors, target, pixels):
    assert pixels_for(columns, vectors, target) == pixels


def test_few_pixels_share_their_scalar_with_many_vectors_and_a_panel_decides_itself():
    wide, point = Window((3, 3), pad=(1, 1, 1, 1)), Window()
    assert ConvShape(64, 28, 28, 64, AVX2, wide).vectors == 2
    assert ConvShape(64, 1, 1, 64, AVX2, point).vectors == 8
    assert ConvShape(64, 28, 28, 40, AVX2, wide).vectors == 1  # 5 blocks
    assert ConvShape(64, 28, 28, 24, AVX2, wide).vectors == 3
    assert ConvShape(64, 28, 28, 64, AVX2, wide, panel=4).vectors == 4
    assert ConvShape(64, 28, 28, 64, replace(AVX2, has_blocks=True), wide, groups=4).vectors == 16
    assert ConvShape(32, 28, 28, 32, AVX2, wide, groups=4).vectors == 1  # two blocks would read those of two groups
    assert ConvShape(64, 28, 28, 64, AVX2, wide, groups=2).vectors == 2
    assert ConvShape(64, 28, 2, 64, AVX2, Window((3, 1))).vectors == 4  # 2 pixels: 12 sums, 6 do not divide 8


@pytest.mark.parametrize(
    ("blocks", "panels", "narrow"),
    [(1, 1, 0), (2, 1, 0), (3, 1, 0), (4, 2, 0), (5, 2, 1), (7, 3, 2), (9, 3, 0), (91, 31, 2)],
)
def test_panels_of_one_block_become_wide_and_narrow_ones(blocks, panels, narrow):
    shape = ConvShape(12, 9, 9, 8 * blocks - 3, AVX2, is_mixed=True)
    assert (shape.panels, shape.narrow) == (panels, narrow)
    assert sum(part.blocks for part in shape.parts) == blocks
    assert sum(part.k for part in shape.parts) == shape.k
    assert [part.vectors for part in shape.parts] == [shape.vectors, shape.vectors - 1][: len(shape.parts)]
    assert sum(part.weights_nbytes for part in shape.parts) == shape.weights_nbytes


def test_panels_stay_equal_for_groups_few_pixels_and_filters_that_are_computed():
    shape = ConvShape(40, 9, 9, 40, AVX2, is_mixed=True)
    assert shape.narrow == 1
    for other in (replace(shape, groups=5), replace(shape, h=1, w=3), replace(shape, is_mixed=False)):
        assert other.narrow == 0 and other.parts == (other,)


def test_panels_of_grouped_filters_read_the_blocks_of_the_groups_that_they_touch():
    """8 channels in and 12 out of each of 4 groups, in blocks of 8: the second panel touches groups 0 and 1."""
    shape = ConvShape(32, 9, 9, 48, AVX2, Window((3, 3)), groups=4, panel=1)
    assert shape.spans(1) == [(0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 4)]
    assert shape.blocks_read(1) == 2
    assert shape.panel_blocks == ((0, 0, 1, 2, 2, 2), 2)  # the last one begins earlier, to stay inside
    assert ConvShape(0, 9, 9, 0, AVX2).blocks_read(1) == 0


def test_the_reduction_goes_by_blocks_then_taps_then_channels_and_leaves_out_unused_lanes():
    shape = ConvShape(12, 9, 9, 16, AVX512, Window((1, 2)))
    assert shape.unroll == 8 and shape.steps == ((0, 0, 0), (8, 0, 0), (0, 0, 1), (8, 0, 1))
    assert ConvShape(7, 9, 9, 16, AVX512, Window((1, 2))).steps == ((0, 0, 0), (0, 0, 1))
    grouped = ConvShape(24, 9, 9, 24, AVX2, Window((2, 1)), groups=2, panel=1)
    assert grouped.steps == tuple((c, i, 0) for c in (0, 8, 16) for i in (0, 1))  # panel 1 touches both groups
    plain = ConvShape(2, 9, 9, 16, AVX2, Window((2, 2)), is_plain=True)
    assert plain.unroll == 1
    assert plain.steps == tuple((c, i, j) for c in range(2) for i in range(2) for j in range(2))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_weights_are_counted_with_their_padding(dtype):
    shape = ConvShape(12, 9, 9, 40, AVX512, Window((3, 2)), dtype=dtype)
    whole = (shape.panels, len(shape.steps), shape.unroll, shape.panel_channels)
    assert shape.panel_weights == np.prod(whole[1:])
    assert shape.weights_nbytes == np.zeros(whole, dtype).nbytes


@pytest.mark.parametrize(
    ("columns", "vectors", "target", "fits"),
    [
        (14, 2, AVX2, True),  # long rows are cut
        (2, 5, AVX2, True),  # 10 sums, 5 weights and a scalar are 16
        (3, 4, AVX2, False),  # 12, 4 and 1 are 17
        (1, 8, PORTABLE, True),  # weights of one pixel are read from memory
        (2, 5, PORTABLE, False),
        (2, 9, AVX512, True),
        (2, 11, AVX512, False),  # 22, 11 and 1 are 34
        (1, 30, AVX512, False),
        (500, 1, replace(PORTABLE, registers=1), True),
    ],
)
def test_a_tile_fits_if_its_sums_weights_and_scalar_do(columns, vectors, target, fits):
    assert tile_fits(columns, vectors, target) is fits
