"""Portions of products and panels of constants: what is packed, how large, in which order the numbers lie."""

import mmap

import numpy as np
import pytest

from cgraph.kernels.gemm import portions
from cgraph.kernels.gemm.matmul_calls import all_products
from cgraph.kernels.gemm.portions import (
    DIRECT_COLUMNS,
    DIRECT_ROWS,
    FEW_ROWS,
    PackedB,
    Portions,
    direct_rows,
    join_panels,
    pack_b,
    take_panels,
    to_panels,
)
from cgraph.kernels.kernel import Pointer
from cgraph.kernels.target import host_target
from cgraph.kernels.views.gemm_tile import PORTION_A, PORTION_B, PORTION_K, GemmTile
from tests.support.kernels import view_of

TARGET = host_target()
LANES = TARGET.lanes_of("f4")


def matrices(m, n, k, count=1, a_order="C", b_order="C", shared=False):
    """Products whose operands are views of no memory of their own."""

    def side(rows, columns, order, is_shared=False):
        x = np.broadcast_to(np.zeros(1, "f4"), (count, rows, columns))
        steps = (columns, 1) if order == "C" else (1, rows)
        strides = (0 if is_shared else rows * columns * 4, steps[0] * 4, steps[1] * 4)
        return np.lib.stride_tricks.as_strided(x, (count, rows, columns), strides)

    out, a, b = side(m, n, "C"), side(m, k, a_order), side(k, n, b_order, shared)
    (x,) = all_products(view_of(out), view_of(a), view_of(b), None)
    return x


def test_few_rows_read_b_in_place_and_more_rows_its_panels():
    """Rows of 4000 bytes: 1500 of them need 48000 places of L2, so 128 rows read them in place."""
    for m, is_packed in ((FEW_ROWS, False), (DIRECT_ROWS, False), (DIRECT_ROWS + 1, True)):
        x = Portions.of(matrices(m, 1000, 1500), TARGET)
        assert bool(x.b_nbytes) == is_packed
        assert (x.n, x.k) == ((1000, 1500) if not is_packed else (x.n, 750))


def test_rows_of_b_a_power_of_two_apart_share_places_in_the_cache():
    assert direct_rows(4096, 128) == DIRECT_ROWS and direct_rows(4096, 129) == FEW_ROWS
    assert direct_rows(4096 + 64, 8192) == DIRECT_ROWS and direct_rows(4096 + 64, 8193) == FEW_ROWS
    assert direct_rows(1 << 20, 8) == DIRECT_ROWS and direct_rows(1 << 20, 9) == FEW_ROWS  # 64 KiB is the most


@pytest.mark.parametrize("change", [{"b_order": "F"}, {"n": LANES - 1}, {"adds": True}])
def test_b_is_packed_where_it_cannot_be_read_in_place(change):
    sizes = {"m": 6, "n": 64, "k": 20} | {k: v for k, v in change.items() if k == "n"}
    x = matrices(**sizes, b_order=change.get("b_order", "C"))
    assert not Portions.of(matrices(6, 64, 20), TARGET).b_nbytes
    assert Portions.of(x, TARGET, change.get("adds", False)).b_nbytes


def test_a_is_packed_where_its_rows_are_not_contiguous_or_many_columns_share_them():
    near = (2 << 20) // 4 // 1024  # rows of 1024 numbers in 2 MiB
    for m, n, order, is_packed in (
        (near, 500, "C", False), (near + 1, 500, "C", True), (near + 1, DIRECT_COLUMNS, "C", False), (9, 500, "F", True)
    ):  # fmt: skip
        assert bool(Portions.of(matrices(m, n, 1024, a_order=order), TARGET).a_nbytes) == is_packed


@pytest.mark.parametrize("m, n, k", [(3000, 3000, 3000), (200, 5000, 2100), (5000, 200, 1025), (129, 129, 129)])
def test_portions_are_even_and_within_their_bounds(m, n, k):
    x = Portions.of(matrices(m, n, k, a_order="F"), TARGET)
    assert x.k <= PORTION_K and x.n % x.tile.width == x.m % x.tile.rows == 0
    assert x.n * x.k <= PORTION_B + x.tile.width * x.k and x.m * x.k <= PORTION_A + x.tile.rows * x.k
    for total, part, most in ((k, x.k, PORTION_K), (n, x.n, PORTION_B // x.k), (m, x.m, PORTION_A // x.k)):
        assert -(-total // part) <= -(-total // most) + 1 and part < total + max(x.tile.width, x.tile.rows)
    assert x.a_nbytes >= x.m * x.k * 4 and x.b_nbytes >= x.n * x.k * 4 and x.nbytes == x.a_nbytes + x.b_nbytes
    assert x.a_nbytes % 64 == x.b_nbytes % 64 == 0 and x.count == 1


def test_several_small_matrices_share_a_workspace_and_equal_ones_a_panel():
    x = Portions.of(matrices(200, 30, 40, 7, b_order="F"), TARGET)
    assert x.count == 7
    one = Portions.of(matrices(200, 30, 40, 1, b_order="F"), TARGET)
    assert x.b_nbytes >= 7 * (one.b_nbytes - 63)
    shared = Portions.of(matrices(200, 30, 40, 7, a_order="F", b_order="F", shared=True), TARGET)
    assert shared.b_nbytes == one.b_nbytes and shared.a_nbytes > 6 * Portions.of(
        matrices(200, 30, 40, a_order="F"), TARGET).a_nbytes  # fmt: skip
    many = Portions.of(matrices(512, 512, 512, 9, a_order="F", b_order="F"), TARGET)
    assert many.count == (PORTION_A + PORTION_B) // (
        round_to(512, many.tile.rows) * 512 + round_to(512, many.tile.width) * 512
    )


def round_to(n, multiple):
    return -(-n // multiple) * multiple


@pytest.mark.parametrize("k, n", [(5, 7), (20, 16), (1, 1), (2049, 3), (2050, 9), (2048, 17)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_constants_lie_in_portions_of_k_by_panels_by_k(k, n, dtype):
    """2049 rows are three portions of 683, 2050 two of 684 and one of 682; beyond the last column are zeros."""
    tile = GemmTile(4, 2, 4)
    b = (np.arange(k * n) % 2039 + 1).reshape(k, n).astype(dtype)
    packed, padded = to_panels(b, tile), round_to(n, 8)
    depth = {2049: 683, 2050: 684, 2048: 1024}.get(k, k)
    wide = np.pad(b, ((0, 0), (0, padded - n)))
    want = [wide[i : i + depth].reshape(-1, padded // 8, 8).swapaxes(0, 1).ravel() for i in range(0, k, depth)]
    np.testing.assert_array_equal(packed, np.concatenate(want))
    at = PackedB(Pointer(packed), k, n, tile, dtype)
    assert at.padded == padded and at.nbytes == packed.nbytes and packed.dtype == dtype


@pytest.mark.parametrize(("k", "n"), [(2049, 27), (3, 70_000), (1, 1), (0, 5), (5, 0)])
def test_columns_of_any_strides_in_a_mapped_file_are_packed_like_those_in_memory(k, n, tmp_path):
    tile, b = GemmTile(4, 1, 8), (np.arange(k * n, dtype="f4") % 9973).reshape(k, n)
    want = to_panels(b, tile)
    path = tmp_path / "x"
    path.write_bytes(b"odd" + b.T.tobytes() + b"end")
    with path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    stored = np.frombuffer(mapping, "f4", b.size, 3).reshape(n, k).T
    reverse = np.ascontiguousarray(b[::-1, ::-1].T).T[::-1, ::-1]
    for same in (stored, np.asfortranarray(b), reverse, np.repeat(b, 2, 0)[::2]):
        np.testing.assert_array_equal(same, b)
        np.testing.assert_array_equal(to_panels(same, tile), want)


def test_panels_that_are_taken_and_joined_are_those_of_their_columns():
    tile, b = GemmTile(4, 1, 8), np.arange(2049 * 27, dtype="f4").reshape(2049, 27)
    packed = to_panels(b, tile)
    parts = [take_panels(packed, 2049, tile, first, stop) for first, stop in ((0, 1), (1, 3), (3, 4))]
    for part, columns in zip(parts, (slice(0, 8), slice(8, 24), slice(24, 27))):
        np.testing.assert_array_equal(part, to_panels(np.ascontiguousarray(b[:, columns]), tile))
    np.testing.assert_array_equal(join_panels(parts, 2049, tile), packed)


def test_the_tile_of_a_constant_is_that_of_the_rows_that_it_meets():
    b = np.ones((20, 64), "f4")
    for m in (1, 3, 50):
        array, tile = pack_b(TARGET, b, m)
        assert tile == portions.gemm_tile(m, 64, 20, "f4", TARGET) and array.size == 20 * round_to(64, tile.width)
    assert pack_b(TARGET, b.astype("f8"), 3)[1].lanes == TARGET.lanes_of("f8")
    assert pack_b(TARGET, b.astype("f2"), 3)[1].lanes == LANES


def test_a_packed_constant_needs_no_room_for_its_side():
    tile = GemmTile(4, 1, LANES)
    x = Portions.of_packed(matrices(6, 40, 1500), PackedB(Pointer("b"), 1500, 40, tile))
    assert (x.b_nbytes, x.k, x.n, x.tile) == (0, 750, 40, tile) and x.packed is not None


@pytest.mark.parametrize("piece", [1, 100, 8 * 37 * 4, 20 * 37 * 4, 40 * 37 * 4])
@pytest.mark.parametrize("n", [1, 8, 15, 16, 41])
def test_columns_are_copied_a_piece_at_a_time(n, piece, monkeypatch):
    """Pieces of less than a panel, of one and of several; the last one may be narrower."""
    b = np.arange(1, 37 * n + 1, dtype="f4").reshape(37, n)
    for tile in (GemmTile(4, 1, 8), GemmTile(4, 1, 32), GemmTile(1, 4, 16)):
        want = to_panels(b, tile)
        with monkeypatch.context() as patch:
            patch.setattr(portions, "PIECE", piece)
            np.testing.assert_array_equal(to_panels(np.asfortranarray(b), tile), want)
