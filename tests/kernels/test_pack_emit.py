"""Panels of matrices: every element at its place, lines beyond the last repeat it, nothing beyond a panel."""

import numpy as np
import pytest

from cgraph.kernels.gemm.matmul_calls import packed_side
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import target_named
from cgraph.kernels.views.matrices import Operand
from tests.support.kernels import ORDERS, TARGETS, run_calls


def operand(x, is_shared=False):
    batch, row, column = (step // x.itemsize for step in x.strides)
    return Operand(Pointer(x), 0 if is_shared else batch, row, column, x.dtype.str[1:])


def panels(x, width, target="host", order="all", is_shared=False):
    """The panels ``[matrices, panels, k, width]``, and the family that packs them."""
    count, lines, k = x.shape
    blocks = -(-lines // width)
    matrices = 1 if is_shared else count
    room = np.full(matrices * blocks * k * width + 64, 77, x.dtype)
    side, call = packed_side(operand(x, is_shared), Pointer(room), count, lines, k, width)
    assert side == Operand(Pointer(room), 0 if is_shared else blocks * k * width, 0, 0, x.dtype.str[1:])
    run_calls([call], target_named(target), order)
    assert (room[-64:] == 77).all()
    return room[:-64].reshape(matrices, blocks, k, width), call.kernel.family.rpartition(".")[2]


def by_numpy(x, width):
    lines = np.minimum(np.arange(-(-x.shape[1] // width) * width), x.shape[1] - 1)
    return x[:, lines].reshape(len(x), -1, width, x.shape[2]).transpose(0, 1, 3, 2)


def drawn(shape, dtype="f4"):
    return np.random.default_rng(0).permutation(np.prod(shape)).reshape(shape).astype(dtype)


def laid(x, way):
    """The same numbers with neighbours along k, along the lines, or neither."""
    if way == "along_lines":
        return np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
    return np.repeat(x, 2, 2)[..., ::2] if way == "any_stride" else x


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("way", ["along_k", "along_lines", "any_stride"])
def test_panels_of_every_width(way, dtype, target):
    """Widths of tiles' rows and of vectors, depths around a vector, lines around whole panels."""
    lanes = target_named(target).lanes_of(dtype)
    for width in (1, 2, 6, 8, 14, lanes, 2 * lanes, 3 * lanes):
        for lines in (1, width, 2 * width + 1):
            for k in (1, lanes, 2 * lanes + 1):
                x = laid(drawn((2, lines, k), dtype), way)
                got, family = panels(x, width, target)
                np.testing.assert_array_equal(got, by_numpy(x, width))
                assert family == (way if min(lines, k) > 1 else family)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("way", ["along_k", "along_lines", "any_stride"])
def test_panels_in_any_order_of_tasks(way, order):
    """A store of a whole vector must not reach into the next panel."""
    x = laid(drawn((3, 40, 70)), way)
    for width in (5, 12, 32):
        np.testing.assert_array_equal(panels(x, width, order=order)[0], by_numpy(x, width))


def test_equal_matrices_are_packed_once():
    x = drawn((1, 9, 20))
    got, _ = panels(np.broadcast_to(x, (4, 9, 20)), 4, is_shared=True)
    np.testing.assert_array_equal(got, by_numpy(x, 4))


def test_lines_and_depths_read_backwards():
    x = drawn((2, 11, 13))[:, ::-1, ::-1]
    got, family = panels(x, 4)
    np.testing.assert_array_equal(got, by_numpy(x, 4))
    assert family == "any_stride"
