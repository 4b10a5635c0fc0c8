"""Register tiles of matrix products by hand, and the portions that are cut for the caches."""

import pytest

from cgraph.kernels.isa.ptx import gpu_target
from cgraph.kernels.isa.x86 import AVX2, AVX512, PORTABLE
from cgraph.kernels.views.gemm_tile import GPU_ROWS, NEAR_A, evenly, gemm_tile, is_near, spans
from cgraph.record import replace


@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "target", "rows", "vectors"),
    [
        (1, 64, 100, "f4", AVX512, 1, 4),
        (1, 80, 100, "f4", AVX512, 1, 1),  # 5 vectors: panels of 4 would read 8, of 2 read 6
        (1, 96, 100, "f4", AVX512, 1, 2),
        (1, 3, 100, "f4", AVX512, 1, 1),
        (2, 1000, 100, "f4", AVX512, 2, 8),  # 8 * 3 of 31 registers
        (3, 1000, 100, "f4", AVX512, 4, 6),
        (4, 1000, 100, "f4", AVX2, 4, 2),  # 2 * 5 of 15
        (4, 1000, 100, "f4", PORTABLE, 4, 2),  # 2 * 5 of 14: one holds a product
        (2, 8, 100, "f4", AVX2, 2, 1),
        (2, 1000, 100, "f4", replace(AVX2, registers=19), 2, 6),
        (2, 1000, 100, "f4", replace(PORTABLE, registers=19), 2, 4),
        (24, 1000, 10**6, "f4", AVX512, 12, 2),  # packed: 2 tiles of 12 cost 25, of 14 cost 29
        (24, 1000, 100, "f4", AVX512, 8, 2),  # rows that are near: at most 8, and 3 tiles cost 25.5
        (28, 1000, 10**6, "f4", AVX512, 14, 2),
        (28, 10, 10**6, "f8", AVX512, 14, 1),
        (9, 1000, 100, "f4", AVX512, 5, 2),  # 2 tiles of 5 cost 11, 2 of 8 cost 17
        (6, 1000, 10**6, "f4", PORTABLE, 4, 2),
    ],
)
def test_tiles_by_hand(m, n, k, dtype, target, rows, vectors):
    tile = gemm_tile(m, n, k, dtype, target)
    assert (tile.rows, tile.vectors, tile.lanes) == (rows, vectors, target.lanes_of(dtype))
    assert tile.width == vectors * target.lanes_of(dtype)


@pytest.mark.parametrize(("m", "rows"), [(1, 1), (3, 3), (100, GPU_ROWS)])
def test_a_gpus_thread_has_a_column_of_few_rows(m, rows):
    tile = gemm_tile(m, 50, 60, "f4", gpu_target(9, 0))
    assert (tile.rows, tile.vectors, tile.width) == (rows, 1, 1)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_are_near_up_to_a_number_of_bytes(dtype):
    k = NEAR_A // 128 // int(dtype[1])
    assert is_near(128, k, dtype) and not is_near(128, k + 1, dtype)


@pytest.mark.parametrize(
    ("total", "most", "multiple", "size"),
    [
        (100, 30, 1, 25),
        (100, 30, 8, 32),
        (100, 200, 1, 100),
        (100, 4, 16, 16),
        (0, 10, 4, 0),
        (1, 10, 4, 4),
        (64, 32, 32, 32),
    ],
)
def test_portions_are_even_multiples(total, most, multiple, size):
    assert evenly(total, most, multiple) == size


def test_the_last_portion_has_the_rest_and_nothing_is_one_empty_portion():
    assert spans(10, 4) == [(0, 4), (4, 4), (8, 2)]
    assert spans(8, 4) == [(0, 4), (4, 4)]
    assert spans(0, 4) == spans(0, 0) == [(0, 0)]
