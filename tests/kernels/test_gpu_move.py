"""Copies in blocks of threads: transposes through tiles, walks, which of the two, items of every size."""

import numpy as np
import pytest

from cgraph.kernels.move.calls import copy_calls
from cgraph.kernels.move.gpu_calls import turned_axis
from cgraph.kernels.move.gpu_signature import SIDE
from tests.support.gpu import BLOCKS, run_on_gpu
from tests.support.kernels import view_of


def draw(*shape):
    return np.random.default_rng(0).uniform(-3, 3, shape).astype("f4")


SHAPES = [
    ((40, 70), (1, 0)), ((3, 33, 20), (0, 2, 1)), ((34, 2, 40), (2, 1, 0)), ((5, 6), (1, 0)),
    ((17, 2, 3, 18), (3, 1, 2, 0)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
@pytest.mark.parametrize("shape, order", SHAPES)
def test_copies_and_transposes(shape, order, dtype):
    x = (draw(*shape) * 50).astype(dtype)
    out = np.zeros(tuple(shape[i] for i in order), dtype)
    (call,) = copy_calls(BLOCKS, view_of(out), view_of(x.transpose(order)))
    run_on_gpu([call])
    assert call.kernel.is_block
    np.testing.assert_array_equal(out, x.transpose(order))


def test_copies_of_flipped_and_repeated_items():
    x, out = draw(6, 50), np.zeros((4, 6, 50), "f4")
    run_on_gpu(copy_calls(BLOCKS, view_of(out), view_of(x[::-1, ::-1])))
    np.testing.assert_array_equal(out, np.broadcast_to(x[::-1, ::-1], out.shape))
    run_on_gpu(copy_calls(BLOCKS, view_of(out[:, ::2, 1:]), view_of(x[:3, :1])))
    np.testing.assert_array_equal(out[:, ::2, 1:], np.broadcast_to(x[:3, :1], (4, 3, 49)))


def copied(x, out, family):
    (call,) = copy_calls(BLOCKS, view_of(out), view_of(x))
    assert call.kernel.family == family
    run_on_gpu([call])
    np.testing.assert_array_equal(out, x)
    return call


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16"])
@pytest.mark.parametrize("ni, nj", [(SIDE, SIDE), (SIDE + 1, 2 * SIDE - 1), (17, 3 * SIDE), (2 * SIDE + 1, 17)])
def test_edges_of_tiles_in_every_size_of_items(ni, nj, dtype):
    """Nothing is written beside the result."""
    x = np.arange(3 * nj * ni).reshape(3, ni, nj).astype(dtype)
    room = np.full((3, nj + 2, ni + 3), 99, dtype)
    call = copied(x.transpose(0, 2, 1), room[:, 1:-1, 2:-1], "move.gpu.transposed")
    assert call.tasks == 3 * -(-ni // SIDE) * -(-nj // SIDE)
    room[:, 1:-1, 2:-1] = 99
    assert (room == 99).all()


def test_axes_outside_the_tile_keep_their_places():
    """Two outer axes, of which one is flipped and one repeats."""
    x = draw(5, 40, 33)
    turned = np.broadcast_to(x[::-1, None].transpose(0, 1, 3, 2), (5, 2, 33, 40))
    copied(turned, np.zeros((5, 2, 33, 40), "f4"), "move.gpu.transposed")
    wide = draw(2, 3, 40, 33)
    copied(wide.transpose(1, 3, 0, 2), np.zeros((3, 33, 2, 40), "f4"), "move.gpu.transposed")


HALF = SIDE // 2
FILLED = [(40, 40, 0), (40, HALF, None), (HALF, 40, None), (HALF + 1, HALF + 1, 0)]


@pytest.mark.parametrize("rows, columns, axis", FILLED)
def test_tiles_more_than_half_full_are_turned(rows, columns, axis):
    x, out = np.zeros((columns, rows), "f4").T, np.zeros((rows, columns), "f4")
    assert turned_axis(view_of(out), view_of(x)) == axis


def test_items_side_by_side_on_both_sides_or_on_neither_are_not_turned():
    x, out = np.zeros((40, 40), "f4"), np.zeros((40, 80), "f4")
    assert turned_axis(view_of(out[:, :40]), view_of(x)) is None
    assert turned_axis(view_of(out[:, ::2]), view_of(x.T)) is None
    assert turned_axis(view_of(out[:, :40]), view_of(np.zeros((40, 80), "f4")[:, ::2].T)) is None
    x = np.zeros((3, 40, 40), "f4")
    assert turned_axis(view_of(x), view_of(x.transpose(0, 2, 1))) == 1


def test_copies_of_many_axes_have_the_other_kernels():
    x = draw(*[4] * 6)[::2, ::2, ::2, ::2, ::2, ::2]
    out = np.zeros(x.shape, "f4")
    (call,) = copy_calls(BLOCKS, view_of(out), view_of(x))
    run_on_gpu([call])
    assert not call.kernel.is_block
    np.testing.assert_array_equal(out, x)
