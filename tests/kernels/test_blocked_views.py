"""Channel-blocked images: where each pixel lies, parts of the channels, what may share a block."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.blocked_views import BlockedView, require_first_lane, require_whole_blocks
from cgraph.record import replace

HALO = (1, 2, 3, 4)  # top, left, bottom, right


def image(dtype="f4", **fields):
    """A buffer and its view: 2 images of 20 channels in blocks of 8, 5 rows and 6 columns."""
    buffer = np.zeros((2, 3, 5 + 1 + 3, 6 + 2 + 4, 8), dtype)
    return buffer, BlockedView(Pointer(buffer), 2, 20, 5, 6, 8, HALO, dtype=dtype, **fields)


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
def test_steps_and_sizes_are_those_of_the_buffer(dtype):
    buffer, x = image(dtype)
    elements = [s // buffer.itemsize for s in buffer.strides]
    assert [x.image, x.plane, x.row, x.lanes] == elements[:4]
    assert x.nbytes == buffer.nbytes and x.width == 12 * 8 and (x.blocks, x.buffer_blocks) == (3, 3)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (4, 5), (2, 3), (-1, -2), (7, 9)])
def test_a_pixel_lies_behind_the_halo_above_and_left_of_it(row, column):
    buffer, x = image("f8")
    place = buffer[0, 0, 1 + row :, 2 + column :].ctypes.data - buffer.ctypes.data
    assert x.pixel(row, column) == Pointer(buffer, place)
    assert x.origin == x.pixel(0, 0)


def test_other_steps_take_the_place_of_contiguous_ones():
    buffer, x = image()
    x = replace(x, steps=(10_000, 1000, 100))
    assert (x.image, x.plane, x.row, x.width) == (10_000, 1000, 100, 96)
    assert x.pixel(1, 1).offset == (2 * 100 + 3 * 8) * 4
    assert x.nbytes == 2 * 10_000 * 4 and not replace(x, halo=(0, 0, 0, 0)).is_flat


def test_a_part_begins_at_its_channel_of_the_same_buffer():
    buffer, x = image()
    part = x.part(8, 12)
    assert (part.c, part.channel_offset, part.channels, part.blocks) == (12, 8, 20, 2)
    assert part.origin.offset == buffer[0, 1, 1:, 2:].ctypes.data - buffer.ctypes.data
    assert (part.buffer_blocks, part.image, part.nbytes) == (x.buffer_blocks, x.image, x.nbytes)
    inner = part.part(8, 4)
    assert (inner.channel_offset, inner.channels, inner.c) == (16, 20, 4)
    assert inner.at == x.at


@pytest.mark.parametrize(
    ("first", "count", "starts", "ends"),
    [(0, 8, True, True), (8, 12, True, True), (0, 5, True, False), (5, 3, False, True), (16, 4, True, True)]
    + [(3, 2, False, False), (16, 3, True, False), (10, 10, False, True)],
)
def test_a_part_may_share_its_first_and_its_last_block(first, count, starts, ends):
    part = image()[1].part(first, count)
    assert (part.starts_a_block, part.ends_a_block) == (starts, ends)
    if starts and ends:
        require_whole_blocks(None, image()[1], part)
    else:
        with pytest.raises(ValueError, match=f"channels {first} to {first + count} do not fill whole blocks of 8. Use"):
            require_whole_blocks(image()[1], None, part)
    if starts:
        require_first_lane(part)
    else:
        with pytest.raises(ValueError, match=f"channel offset {first} is not a multiple of 8 lanes. Use copy_channels"):
            require_first_lane(part)


@pytest.mark.parametrize("side", range(4))
def test_a_halo_covers_another_only_if_each_side_does(side):
    x = image()[1]
    assert x.has_halo and x.covers(HALO) and x.covers((0, 0, 0, 0)) and not x.is_flat
    wider = tuple(n + (i == side) for i, n in enumerate(HALO))
    assert not x.covers(wider)
    assert replace(x, halo=tuple(int(i == side) for i in range(4))).has_halo


def test_rows_without_a_halo_are_flat():
    x = replace(image()[1], halo=(0, 0, 0, 0))
    assert x.is_flat and not x.has_halo and x.plane == 5 * 6 * 8
