"""Views before a call: broadcasting, merged axes, directions, the order in which elements are walked, tasks."""

import numpy as np
import pytest

from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.isa.x86 import AVX2
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.layout import (
    CHAIN,
    Walk,
    access_of,
    ascending,
    block_columns,
    block_lanes,
    broadcast,
    by_rows,
    cut,
    merge_axes,
    outer_table,
    permute_axes,
    pointwise_walk,
    streams,
    without,
)
from cgraph.record import replace
from tests.support.kernels import TARGETS, view_of


def array_of(view):
    """The NumPy view of the same elements."""
    base = view.at.base
    while isinstance(base.base, np.ndarray):
        base = base.base
    start = view.at.base.ctypes.data + view.at.offset - base.ctypes.data
    return np.ndarray(view.shape, np.dtype(view.dtype), base.data, start, view.strides)


def draw(*shape, dtype="f4"):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


@pytest.mark.parametrize("shape", [(4, 3, 5), (2, 4, 3, 5), (4, 3, 1)])
@pytest.mark.parametrize("own", [(4, 3, 1), (3, 1), (1, 1), (1,), ()])
def test_views_broadcast_as_arrays_do(own, shape):
    x = draw(*own) if own else np.array(7, "f4")
    got = broadcast(view_of(x), shape)
    np.testing.assert_array_equal(array_of(got), np.broadcast_to(x, shape))


@pytest.mark.parametrize(("own", "shape"), [((2,), (3,)), ((3, 1), (3,)), ((2, 3), (2, 4)), ((0,), (3,))])
def test_other_shapes_do_not_broadcast(own, shape):
    with pytest.raises(ValueError, match="does not broadcast to .* an axis must be equal or 1"):
        broadcast(view_of(np.zeros(own, "f4")), shape)


def walked(walk):
    """The elements of each view in the order of a walk; repeated vectors are written out."""
    lists = []
    for i, v in enumerate(walk.views):
        x = array_of(v)
        if i in walk.repeated:  # a vector, again and again along the row
            vector = np.lib.stride_tricks.as_strided(x, (*x.shape[:-1], walk.period), (*x.strides[:-1], x.itemsize))
            x = np.concatenate([vector] * (x.shape[-1] // walk.period), -1)
        lists.append(x.ravel())
    return lists


SHAPES = {
    "contiguous": lambda x, y: (x, y),
    "transposed": lambda x, y: (x.T, y.T),
    "one transposed": lambda x, y: (x.transpose(1, 0, 2), y.transpose(1, 0, 2)[:, :, ::-1]),
    "turned round": lambda x, y: (x[::-1, :, ::-1], y[:, ::-1]),
    "cut": lambda x, y: (x[:, ::2, 1:], y[:, ::2, 1:]),
    "short rows": lambda x, y: (x[:, :, :2], y[:, :, :2]),
    "one element": lambda x, y: (x[:1, :1, :1], y[:1, :1, :1]),
    "a value for each channel": lambda x, y: (np.broadcast_to(x[:, :1], x.shape), y),
    "a scalar": lambda x, y: (np.broadcast_to(x[:1, :1, :1], x.shape), y),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_walk_visits_the_same_pairs_once_along_the_leaders_memory(name):
    x, y = SHAPES[name](draw(6, 8, 4), draw(6, 8, 4) + 1000)
    walk = pointwise_walk((view_of(x), view_of(y)), 1, 4)
    pairs = list(zip(*walked(walk)))
    assert sorted(pairs) == sorted(zip(x.ravel(), y.ravel()))
    assert walk.rows * walk.columns == x.size and walk.rank == len(walk.views[0].shape) - 1 >= 1
    assert all(s >= 0 for s in walk.views[1].strides)


def test_a_vector_for_each_channel_is_repeated_along_rows():
    """The case of channel-blocked images: rows of 4 lanes become one row of 32, also if they are two vectors."""
    x, y = np.broadcast_to(draw(6, 1, 4), (6, 8, 4)), draw(6, 8, 4)
    walk = pointwise_walk((view_of(x), view_of(y)), 1, 4)
    assert walk.repeated == {0} and walk.access == "pv" and (walk.rows, walk.columns) == (6, 32)
    wide = pointwise_walk((view_of(x), view_of(y)), 1, 2)
    assert wide.repeated == {0} and (wide.period, wide.rows, wide.columns) == (4, 6, 32)
    for lanes in (1, 8):
        assert not pointwise_walk((view_of(x), view_of(y)), 1, lanes).repeated
    three = np.broadcast_to(draw(6, 1, 48), (6, 8, 48)), draw(6, 8, 48)
    for lanes in (16, 24, 48):  # of three vectors, or not a part of a block of columns
        assert not pointwise_walk(tuple(map(view_of, three)), 1, lanes).repeated
    both = pointwise_walk((view_of(x), view_of(x), view_of(y)), 2, 4)
    assert both.repeated == {0, 1} and both.access == "ppv"


def test_the_leader_is_never_a_repeated_vector():
    x, y = draw(6, 8, 4), np.broadcast_to(draw(6, 1, 4), (6, 8, 4))
    walk = pointwise_walk((view_of(x), view_of(y)), 1, 4)
    assert 1 not in walk.repeated


def test_a_last_axis_shorter_than_a_vector_gives_way_to_the_longest():
    x = draw(40, 8)[:, :2]
    walk = pointwise_walk((view_of(x),), 0, 16)
    assert walk.columns == 40 and walk.access == "g"
    assert pointwise_walk((view_of(x),), 0, 64).columns == 2  # neither fills a vector


def test_every_axis_ascends_for_the_leader_and_all_views_turn_with_it():
    x, y = draw(5, 6)[::-1, ::2], draw(5, 3)[:, ::-1]
    first, second = ascending((view_of(x), view_of(y)), 0)
    np.testing.assert_array_equal(array_of(first), x[::-1])
    np.testing.assert_array_equal(array_of(second), y[::-1])
    first, second = ascending((view_of(x), view_of(y)), 1)
    np.testing.assert_array_equal(array_of(first), x[:, ::-1])
    np.testing.assert_array_equal(array_of(second), y[:, ::-1])


def test_axes_merge_only_where_all_views_allow_it_and_two_are_left():
    x, y = draw(2, 3, 4), draw(2, 3, 4)
    assert [v.shape for v in merge_axes((view_of(x), view_of(y)))] == [(1, 24)] * 2
    assert merge_axes((view_of(x), view_of(draw(2, 6, 4)[:, ::2])))[0].shape == (6, 4)
    assert merge_axes((view_of(x), view_of(draw(4, 3, 4)[::2])))[1].shape == (2, 12)
    assert merge_axes((view_of(x[:1, :1, :1]),))[0].shape == (1, 1)


def test_tables_have_extents_and_strides_of_all_views_the_last_outer_axis_first():
    x, y = draw(2, 3, 4), draw(2, 3, 8)[:, :, ::2]
    views = (view_of(x), view_of(y))
    assert outer_table(views, 2) == [3, 16, 32, 2, 48, 96]
    assert Walk(views).table() == outer_table(views, 2) and (Walk(views).rows, Walk(views).columns) == (6, 4)
    assert outer_table(views, 0) == []
    assert streams(views) == [views[0].at, 4, views[1].at, 8]
    assert [access_of(v) for v in (*views, view_of(np.broadcast_to(x[:, :, :1], x.shape)))] == ["v", "g", "s"]


def test_axes_are_permuted_and_left_out_with_their_strides():
    x = draw(2, 3, 4)
    (got,) = permute_axes((view_of(x),), [2, 0, 1])
    np.testing.assert_array_equal(array_of(got), x.transpose(2, 0, 1))
    for axis in range(3):
        np.testing.assert_array_equal(array_of(without(view_of(x), axis)), x.take(0, axis))


def test_images_by_rows_have_a_row_of_all_planes_after_the_other():
    memory = draw(5, 2, 3, 7)  # rows, images, planes, columns
    view = by_rows(Pointer(memory), (2, 3, 5, 7), "f4")
    np.testing.assert_array_equal(array_of(view), memory.transpose(1, 2, 0, 3))


@pytest.mark.parametrize(
    ("rows", "columns", "elements", "grid"),
    [
        (10, 100, 1000, (100, 1, 10, 1)),
        (11, 100, 1000, (100, 1, 10, 2)),
        (3, 1999, 1000, (1999, 1, 1, 3)),
        (3, 2000, 1000, (1024, 2, 1, 6)),  # multiples of 64
        (1, 10_000, 1000, (1024, 10, 1, 10)),
        (1, 2048, 64, (64, 32, 1, 32)),
        (5, 0, 1000, (0, 1, 1000, 1)),
        (0, 10, 1000, (10, 1, 100, 0)),
    ],
)
def test_tasks_have_about_as_many_elements(rows, columns, elements, grid):
    got = cut(rows, columns, elements)
    assert (got.block, got.blocks, got.rows_each, got.tasks) == grid
    assert got.block * got.blocks >= columns > got.block * (got.blocks - 1) or not columns


@pytest.mark.parametrize(
    ("columns", "most", "block"),
    [
        (100, 1 << 62, 1024),  # all of them in one
        (2048, 1 << 62, 1024),
        (1025, 1 << 62, 960),  # the last block has 65 columns, not 1
        (1088, 1 << 62, 1024),  # 64 are enough
        (100, 64, 64),
        (65, 64, 49),  # 16 are enough in small blocks
        (3100, 256, 253),  # 28 remain after blocks of 64, 128, 192 and 256
    ],
)
def test_the_last_block_is_whole_or_has_many_columns(columns, most, block):
    assert block_columns(columns, AVX2, most) == block
    assert block_columns(columns, gpu_target(9, 0), most) == 1
    assert block_columns(5056, replace(AVX2, block_columns=64)) == 64


def test_each_number_of_columns_has_blocks():
    for columns in range(1, 4000):
        block = block_columns(columns, AVX2, 256)
        assert columns <= block or columns % block == 0 or columns % block >= 64


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
def test_blocks_of_rows_have_one_register_or_two(dtype, name):
    """Two for rows of more than a chain; as few as rows have elements, but no fewer than the rows of a block."""
    target = target_named(name)
    lanes = target.lanes_of(dtype)
    for length in (0, 1, 3, 4, 7, 8, 15, 16, 17, 31, CHAIN * lanes, CHAIN * lanes + 1, 10**6):
        most = lanes if length <= CHAIN * lanes else 2 * lanes
        fitting = [n for n in (1 << i for i in range(10)) if n <= min(most, max(length, 1))]
        assert block_lanes(target, dtype, length) == (fitting[-1] if fitting[-1] >= 4 else 0)


@pytest.mark.parametrize(("most", "width"), [(64, 64), (65, 65), (63, 63), (129, 129), (1, 1)])
def test_a_limit_on_columns_of_a_block_is_kept(most, width):
    target = host_target()
    assert block_columns(most, target, most) == width
    for columns in (1, most, most + 1, 1000, 1001, 4095):
        block = block_columns(columns, target, most)
        assert 1 <= block <= min(most, target.block_columns)
        least = 64 if most > 64 else 16
        assert columns <= block or columns % block == 0 or columns % block >= least
