"""Tiles for halves of words: the sums of pairs of channels at once or in turn, turns of any number of taps, clips."""

import pytest

from cgraph.kernels.conv8.calls import MOST_TAPS, ByteShape, Result
from cgraph.kernels.conv8.halves_emit import Tile
from cgraph.kernels.depthwise8.halves_emit import Tile as DepthwiseTile
from cgraph.kernels.views.window import Window
from tests.kernels.test_conv8 import check, form

ANY = ("u1", "", False, False, False, False)


@pytest.mark.parametrize("fixed", ["once", "twice"])
@pytest.mark.parametrize("low", [0, 9])
def test_rows_of_one_pixel_sum_all_channels_at_once(fixed, low):
    result = Result("u1", 9, low, fixed=fixed, bounded=True)
    for c, k, h in ((3, 5, 1), (16, 8, 4)):
        case = 1, c, h, 1, k, Window(), 1
        assert ByteShape(c, h, 1, k, form("halves")).pairs == 2
        check(case, form("halves"), result)
    assert ByteShape(3, 1, 2, 5, form("halves")).pairs == 1
    assert [Tile(1, pairs, 1, 4, 1, 4, *ANY, False, False, False).channels for pairs in (1, 2)] == [2, 4]


@pytest.mark.parametrize("s", [1, MOST_TAPS, MOST_TAPS + 1])
@pytest.mark.parametrize("c", [4, 12, 20])
def test_turns_of_few_taps_and_of_single_ones(s, c):
    check((1, c, 2, s + 2, 6, Window((1, s), (1, 1), (0, 1, 0, 0)), 1), form("halves"), Result("i4"))


def test_depthwise_tiles_have_the_params_of_their_signature():
    tile = DepthwiseTile(4, 3, 1, *ANY, False)
    assert (tile.pixels, tile.s, tile.stride, tile.result, tile.is_rows) == (4, 3, 1, "u1", False)
