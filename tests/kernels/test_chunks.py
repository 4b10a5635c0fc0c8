"""The times of tasks that decide how many a thread takes at once: in proportion to the work of one task."""

import sys
from collections.abc import Callable

import pytest

from cgraph.kernels.blocked_copy.calls import copy_channels_calls, fill_halo_calls, to_blocked_calls
from cgraph.kernels.conv.calls import conv_calls
from cgraph.kernels.conv8.calls import ByteShape, ByteWeights, Result, conv8_calls
from cgraph.kernels.depthwise.calls import depthwise_calls
from cgraph.kernels.filter_grad.calls import FilterGrad, filter_grad_calls
from cgraph.kernels.gemm.matmul_calls import matmul_calls, matmul_nbytes
from cgraph.kernels.isa.x86 import AVX2
from cgraph.kernels.kernel import Pointer, View, contiguous
from cgraph.kernels.nibbles.calls import nibbles_calls, nibbles_nbytes
from cgraph.kernels.plain.calls import pad_plain_calls
from cgraph.kernels.pool.calls import max_pool_calls
from cgraph.kernels.resize.calls import nearest_calls, weighted_calls
from cgraph.kernels.rows.calls import rows_calls
from cgraph.kernels.rows.signature import SET
from cgraph.kernels.tile_products.calls import TileSize, ns_of
from cgraph.kernels.views.blocked_views import BlockedView
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from tests.support.tolerance import near

AT = Pointer(None)
SAME = Window((3, 3), pad=(1, 1, 1, 1))


def view(*shape: int, dtype: str = "f4") -> View:
    return contiguous(AT, shape, dtype)


def images(n: int, c: int, h: int, w: int, halo: int = 0, dtype: str = "f4", lanes: int = 8) -> BlockedView:
    return BlockedView(AT, n, c, h, w, lanes, (halo,) * 4, dtype=dtype)


def room(nbytes: int) -> View:
    return contiguous(AT, (nbytes,), "u1")


def product(m: int, n: int, k: int, dtype: str, turned: bool = False) -> None:
    """A product of matrices; `turned`: the left side lies by columns, so it is packed."""
    a = View(AT, (m, k), (4, 4 * m), dtype) if turned else view(m, k, dtype=dtype)
    views = view(m, n, dtype=dtype), a, view(k, n, dtype=dtype)
    matmul_calls(AVX2, *views, workspace=room(matmul_nbytes(AVX2, *views)))


def convolve(c: int, h: int, w: int, k: int, window: Window = SAME) -> None:
    shape = ConvShape(c, h, w, k, AVX2, window)
    conv_calls(shape, images(2, k, *shape.result), images(2, c, h, w, 1), AT)


def convolve8(c: int, h: int, w: int, k: int) -> None:
    shape = ByteShape(c, h, w, k, AVX2, SAME)
    out, x = images(2, k, h, w, dtype="u1"), images(2, c, h, w, 1, "u1", shape.source_lanes)
    conv8_calls(shape, out, x, ByteWeights(AT, AT, AT), Result())


def each_channel(c: int, h: int, w: int, window: Window) -> None:
    shape = ConvShape(c, h, w, c, AVX2, window, c)
    depthwise_calls(shape, images(2, c, *shape.result), images(2, c, h, w, 3), AT)


def gradient(n: int, c: int, h: int, w: int, k: int) -> None:
    plan = FilterGrad(ConvShape(c, h, w, k, AVX2, SAME), n)
    filter_grad_calls(plan, view(k, c, 3, 3), images(n, c, h, w, 1), images(n, k, h, w), room(plan.nbytes))


def pooled(h: int, w: int, window: Window) -> None:
    max_pool_calls(AVX2, images(2, 8, *window.result(h, w)), images(2, 8, h, w), window)


def resized(h: int, w: int) -> None:
    nearest_calls(AVX2, images(2, 8, h, w), images(2, 8, 4, 4))


def weighted(rows: int, width: int, taps: int) -> None:
    weighted_calls(view(2, rows, width), view(2, 9, width), view(rows, dtype="i8"), view(rows, taps))


def nibbled(m: int, n: int, blocks: int) -> None:
    views = (
        view(m, n),
        view(m, 32 * blocks),
        view(n, blocks, 16, dtype="u1"),
        view(n, blocks),
        view(n, blocks, dtype="u1"),
    )
    nibbles_calls(AVX2, *views, room(nibbles_nbytes(AVX2, m, n, blocks, 32)))


def written(rows: int, items: int) -> None:
    rows_calls(AVX2, SET, view(2, 9, items), view(2, rows, items), View(AT, (), (), "i8"), 1)


# what is done, sizes of two calls, and the second task's time over the first one's
TIMES: dict[str, tuple[Callable[..., None], tuple, tuple, float]] = {
    "simple, columns": (product, (5, 7, 9, "i4"), (5, 21, 9, "i4"), 3),
    "simple, terms": (product, (5, 7, 9, "i4"), (5, 7, 18, "i4"), 2),
    "simple, rows": (product, (5, 7, 9, "i4"), (50, 7, 9, "i4"), 1),
    "dot, terms": (product, (40, 1, 100, "f4"), (40, 1, 300, "f4"), 3),
    "dot, rows": (product, (40, 1, 100, "f4"), (80, 1, 100, "f4"), 1),
    "dot, bytes": (product, (40, 1, 100, "f4"), (40, 1, 100, "f8"), 2),
    "row, terms": (product, (1, 512, 100, "f4"), (1, 512, 300, "f4"), 3),
    "row, columns": (product, (1, 256, 100, "f4"), (1, 512, 100, "f4"), 2),
    "tiles, terms": (product, (800, 64, 50, "f4"), (800, 64, 100, "f4"), 2),
    "tiles, rows": (product, (800, 64, 50, "f4"), (1600, 64, 50, "f4"), 1),
    "convolution, channels": (convolve, (8, 20, 20, 16), (16, 20, 20, 16), 2),
    "convolution, rows": (convolve, (8, 20, 20, 16), (8, 40, 20, 16), 1),
    "convolution, taps": (convolve, (8, 20, 20, 16, Window((3, 2), pad=(1, 0, 1, 1))), (8, 20, 20, 16), 1.5),
    "bytes, channels": (convolve8, (32, 20, 20, 16), (64, 20, 20, 16), 2),
    "bytes, rows": (convolve8, (32, 20, 20, 16), (32, 60, 20, 16), 1),
    "depthwise, columns": (each_channel, (8, 9, 20, SAME), (8, 9, 60, SAME), 3),
    "depthwise, taps": (each_channel, (8, 9, 20, SAME), (8, 9, 20, Window((5, 3), pad=(2, 1, 2, 1))), 5 / 3),
    "depthwise, rows": (each_channel, (8, 9, 20, SAME), (8, 27, 20, SAME), 1),
    "gradient, images": (gradient, (1, 8, 10, 10, 8), (3, 8, 10, 10, 8), 3),
    "gradient, rows": (gradient, (1, 8, 10, 10, 8), (1, 8, 20, 10, 8), 2),
    "gradient, columns": (gradient, (1, 8, 10, 10, 8), (1, 8, 10, 30, 8), 3),
    "pool, columns": (pooled, (9, 20, Window((2, 2))), (9, 58, Window((2, 2))), 3),
    "pool, rows": (pooled, (9, 20, Window((2, 2))), (18, 20, Window((2, 2))), 1),
    "resize, columns": (resized, (9, 20), (9, 60), 3),
    "resize, rows": (resized, (9, 20), (27, 20), 1),
    "weighted rows, columns": (weighted, (5, 20, 3), (5, 40, 3), 2),
    "weighted rows, taps": (weighted, (5, 20, 3), (5, 20, 9), 3),
    "weighted rows, rows": (weighted, (5, 20, 3), (8, 20, 3), 1),
    "nibbles, rows": (nibbled, (2, 30, 4), (4, 30, 4), 2),
    "nibbles, terms": (nibbled, (2, 30, 4), (2, 30, 12), 3),
    "nibbles, columns": (nibbled, (2, 30, 4), (2, 90, 4), 1),
    "rows, items": (written, (3, 20), (3, 80), 4),
    "rows, rows": (written, (3, 20), (6, 20), 1),
    "to blocks, columns": (
        lambda w: to_blocked_calls(AVX2, images(2, 8, 9, w, 1), view(2, 8, 9, w)), (20,), (60,), 3,
    ),
    "channels, columns": (lambda w: copy_channels_calls(images(2, 8, 9, w), images(2, 8, 9, w)), (20,), (60,), 3),
    "a halo, rows": (lambda h: fill_halo_calls(images(2, 8, h, 20, 1)), (9,), (90,), 1),
    "padding, columns": (
        lambda w: pad_plain_calls(view(2, 3, 9, w + 2), view(2, 3, 7, w), (1, 1, 1, 1)), (18,), (58,), 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TIMES)
def test_a_task_of_so_many_times_the_work_takes_as_many_times_as_long(name, monkeypatch):
    build, first, second, ratio = TIMES[name]
    times: list[float] = []

    def noted(tasks: int, nanoseconds: float) -> int:
        times.append(nanoseconds)
        return 1

    for module in [m for key, m in sys.modules.items() if key.startswith("cgraph.kernels.")]:
        if "chunk_of" in vars(module):
            monkeypatch.setattr(module, "chunk_of", noted)
    build(*first)
    count = len(times)
    build(*second)
    assert count and len(times) == 2 * count
    assert times[-1] / times[count - 1] == near(ratio, "float64 formulas")


def test_a_group_of_tiles_takes_longer_with_more_steps_and_tiles():
    assert ns_of(TileSize(64, 32, 2), 2) - ns_of(TileSize(32, 32, 2), 2) == near(21.2, "float64 formulas")
    assert ns_of(TileSize(32, 32, 1), 1) == ns_of(TileSize(16, 32, 2), 1)
