"""How work is cut: tiles that fit the registers, chunks that cover the tasks, the rule that chooses Winograd."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgraph.kernels.conv.calls import extend_offsets
from cgraph.kernels.gemm.matmul_calls import LINE, lines_of, share_of
from cgraph.kernels.gemm.signature import unroll
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import Target, host_target, target_named
from cgraph.kernels.views.conv_shape import ConvShape, pixels_for
from cgraph.kernels.views.gemm_tile import evenly, gemm_tile, spans
from cgraph.kernels.views.kernel_calls import chunk_of
from cgraph.kernels.views.matrices import Operand
from cgraph.kernels.views.window import Window
from cgraph.kernels.winograd.rule import winograd_rule
from tests.support.kernels import TARGETS

SAME = Window((3, 3), pad=(1, 1, 1, 1))


def registers(rows: int, vectors: int, target: Target) -> int:
    """Sums, weights that are used more than once, the spread scalar and, without fused multiply-add, a product."""
    return rows * vectors + (vectors if rows > 1 else 1) + 1 + (not target.fma)


@pytest.mark.parametrize("name", TARGETS)
@given(columns=st.integers(1, 4000), k=st.integers(1, 600), kernel=st.sampled_from([1, 3]))
def test_conv_tiles_fit_the_registers(columns, k, kernel, name):
    target = target_named(name)
    shape = ConvShape(16, 1, columns + kernel - 1, k, target, Window((1, kernel)))
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


@pytest.mark.parametrize("name", TARGETS)
@given(m=st.integers(1, 500), n=st.integers(1, 300), k=st.integers(1, 2000), is_packed=st.booleans())
def test_all_rows_together_ask_for_all_of_the_next_panel(m, n, k, is_packed, name):
    tile = gemm_tile(m, n, k, "f4", target_named(name))
    row_panels, panel = -(-m // tile.rows), tile.width * k
    share = share_of(tile, k, row_panels, is_packed)
    asked = share * (k // unroll(is_packed)) * row_panels
    if row_panels == 1:
        assert share == tile.width * unroll(is_packed)
    elif k < unroll(is_packed):
        assert share == 0
    else:
        assert panel <= asked < panel + (k // unroll(is_packed)) * row_panels


@given(st.integers(0, 10**5), st.sampled_from(["f2", "f4", "f8"]))
def test_lines_hold_what_a_round_asks_for(elements, dtype):
    x = Operand(Pointer(None), 0, 0, 0, dtype)
    lines = lines_of(elements, x)
    nbytes = elements * x.itemsize
    assert lines == 0 if elements == 0 else nbytes <= lines * LINE < 2 * (nbytes + LINE)


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


@pytest.mark.parametrize(
    "shape",
    [
        ConvShape(64, 56, 56, 64, host_target()),
        ConvShape(64, 56, 56, 64, host_target(), Window((3, 3), (2, 2), (1, 1, 1, 1))),
        ConvShape(64, 56, 56, 64, host_target(), Window((3, 3), (1, 1), (2, 2, 2, 2), (2, 2))),
        ConvShape(64, 56, 56, 64, host_target(), SAME, groups=2),
        ConvShape(3, 56, 56, 64, host_target(), SAME, is_plain=True),
        ConvShape(64, 2, 2, 64, host_target(), Window((3, 3))),
    ],
    ids=["1x1", "stride", "dilated", "grouped", "plain", "no result"],
)
def test_rule_is_direct_where_winograd_does_not_apply(shape):
    assert winograd_rule(shape, 1) == 0


def test_rule_takes_large_tiles_for_large_images_and_none_for_tiny_ones():
    assert winograd_rule(ConvShape(64, 56, 56, 64, host_target(), SAME), 1) == 4
    assert winograd_rule(ConvShape(512, 7, 7, 512, host_target(), SAME), 1) == 2
    assert winograd_rule(ConvShape(64, 1, 1, 64, host_target(), SAME), 1) == 0
