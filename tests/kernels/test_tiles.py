"""How work is cut: tiles that fit the registers and chunks that cover the tasks."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cgraph.kernels.conv.calls import extend_offsets
from cgraph.kernels.isa.arm import NEON
from cgraph.kernels.isa.wasm import WASM
from cgraph.kernels.isa.x86 import AVX2, AVX512, PORTABLE
from cgraph.kernels.target import Target, target_named
from cgraph.kernels.views.conv_shape import ConvShape, pixels_for
from cgraph.kernels.views.gemm_tile import evenly, gemm_tile, spans
from cgraph.kernels.views.kernel_calls import chunk_of
from cgraph.kernels.views.window import Window
from tests.support.kernels import TARGETS

SAME = Window((3, 3), pad=(1, 1, 1, 1))


def registers(rows: int, vectors: int, target: Target) -> int:
    """Sums, weights that are used more than once, the spread scalar and, without fused multiply-add, a product."""
    return rows * vectors + (vectors if rows > 1 else 1) + 1 + (not target.fma)


@pytest.mark.parametrize("target", [AVX512, AVX2, PORTABLE, NEON, WASM], ids=lambda x: x.name)
@given(columns=st.integers(1, 4000), blocks=st.integers(1, 40), kernel=st.sampled_from([1, 3]))
@example(columns=2, blocks=18, kernel=1)
@example(columns=3, blocks=16, kernel=1)
def test_conv_tiles_fit_the_registers(columns, blocks, kernel, target):
    shape = ConvShape(16, 1, columns + kernel - 1, blocks * target.lanes, target, Window((1, kernel)))
    pixels = shape.pixels(columns)
    assert 1 <= pixels <= columns
    assert shape.blocks % shape.vectors == 0
    assert registers(pixels, shape.vectors, target) <= target.registers


@pytest.mark.parametrize("name", TARGETS)
@given(
    m=st.integers(1, 300),
    n=st.integers(1, 300),
    k=st.sampled_from([1, 300, 10**6]),
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_gemm_tiles_fit_the_registers(m, n, k, dtype, name):
    target = target_named(name)
    tile = gemm_tile(m, n, k, dtype, target)
    assert registers(tile.rows, tile.vectors, target) <= target.registers
    assert tile.vectors == 1 or tile.width <= n


@pytest.mark.parametrize("name", TARGETS)
@given(n=st.integers(1, 3000))
def test_a_row_reads_no_more_columns_than_from_panels_of_one_vector_or_two(n, name):
    tile, lanes = gemm_tile(1, n, 100, "f4", target_named(name)), target_named(name).lanes_of("f4")
    assert -(-n // tile.width) * tile.width <= -(-n // (2 * lanes)) * 2 * lanes


def test_whole_widths_of_common_networks_are_tiled_without_repetition():
    target = target_named("host")
    if target.name != "avx512":
        pytest.skip("widths of other targets repeat some pixels")
    assert [columns % pixels_for(columns, 2, target) for columns in (7, 14, 28, 56, 112, 196, 784, 3136)] == [0] * 8


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=9), st.integers(0, 8), st.integers(-300, 300))
def test_what_a_tile_asks_for_early_is_what_it_and_the_next_tiles_read(offsets, early, tile):
    found = extend_offsets(np.array(offsets), early, tile).tolist()
    read = [offset + tile * t for t in range(early + 1) for offset in offsets]
    assert found == read[: len(offsets) + early]


@given(st.integers(0, 10**6), st.floats(0, 1e6))
def test_chunks_are_few_and_at_most_all_tasks(tasks, nanoseconds):
    chunk = chunk_of(tasks, nanoseconds)
    assert 1 <= chunk <= max(tasks, 1)
    assert -(-tasks // chunk) <= 64


@given(st.integers(1, 10**6), st.floats(0, 1e6))
def test_chunks_are_about_equal(tasks, nanoseconds):
    chunk = chunk_of(tasks, nanoseconds)
    assert (chunk - 1) * -(-tasks // chunk) < tasks


@pytest.mark.parametrize(("tasks", "nanoseconds", "chunk"), [(16, 300, 8), (64, 100, 32), (15, 1000, 4), (3, 100, 3)])
def test_two_threads_get_as_many_chunks_each(tasks, nanoseconds, chunk):
    assert chunk_of(tasks, nanoseconds) == chunk


@given(st.integers(0, 5000), st.integers(1, 700), st.integers(1, 40))
def test_spans_of_even_blocks_cover_everything_once(total, most, multiple):
    parts = spans(total, evenly(total, most, multiple))
    assert parts[0][0] == 0 and sum(length for _, length in parts) == total
    assert all(start + length == after for (start, length), (after, _) in zip(parts, parts[1:]))
    assert all(length <= max(most, multiple) + multiple for _, length in parts)
