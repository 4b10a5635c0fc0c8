"""Products with numbers of 4 bits: rows and columns on both sides of every cut, portions, strides of the left side."""

import numpy as np
import pytest

from cgraph.kernels.nibbles import calls
from cgraph.kernels.target import target_named
from cgraph.ops.blocks import BlockMatmul
from tests.support.images import workspace
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "size",
    [(1, 1, 5), (1, 9, 64), (3, 8, 33), (4, 5, 16), (5, 3, 100), (15, 7, 40), (16, 7, 40), (33, 10, 65)],
    ids=str,
)
def test_products_of_any_size(size, target, order, monkeypatch):
    (m, n, k), rng, block = size, np.random.default_rng(0), 16
    blocks = -(-k // block)
    monkeypatch.setattr(calls, "PORTION", 3 * 4 * blocks * block)  # three columns
    x = rng.standard_normal((m, 2 * k)).astype("f4")[:, ::2]
    y = rng.integers(0, 256, (n, blocks, block // 2)).astype("u1")
    scales, zeros = rng.random((n, blocks)).astype("f4"), rng.integers(0, 16, (n, blocks)).astype("u1")
    out, target = np.full((m, n), np.nan, "f4"), target_named(target)
    room = workspace(calls.nibbles_nbytes(target, m, n, blocks, block))
    views = [view_of(v) for v in (out, x, y, scales, zeros)]
    run_calls(calls.nibbles_calls(target, *views, room), target, order)
    want = BlockMatmul().meaning(x.astype("f8"), y, scales, zeros)
    bound = np.abs(x).sum(1).max() * 15 * scales.max()
    assert np.abs(out - want).max() <= 1e-6 * bound


def test_a_workspace_that_is_too_small_is_refused():
    x, y = np.ones((1, 16), "f4"), np.ones((2, 1, 8), "u1")
    views = [view_of(v) for v in (np.ones((1, 2), "f4"), x, y, np.ones((2, 1), "f4"), np.ones((2, 1), "u1"))]
    with pytest.raises(ValueError, match="the workspace has"):
        calls.nibbles_calls(target_named("host"), *views, None)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("block", "blocks", "m"), [(32, 1, 1), (32, 3, 5), (64, 2, 17), (128, 1, 3), (256, 2, 16)])
def test_blocks_of_any_size_have_their_own_scales_and_zeros(block, blocks, m, target):
    """The left side ends inside the last block; all sums are exact in float32."""
    rng, n, k = np.random.default_rng(1), 5, block * blocks - block // 2 + 1
    x, y = rng.integers(-3, 4, (m, k)).astype("f4"), rng.integers(0, 256, (n, blocks, block // 2)).astype("u1")
    scales, zeros = rng.choice(np.float32([0.25, 1, 2]), (n, blocks)), rng.integers(0, 16, (n, blocks)).astype("u1")
    out, target = np.full((m, n), np.nan, "f4"), target_named(target)
    room = workspace(calls.nibbles_nbytes(target, m, n, blocks, block))
    run_calls(calls.nibbles_calls(target, *(view_of(v) for v in (out, x, y, scales, zeros)), room), target)
    numbers = np.stack([y & 15, y >> 4], -1).reshape(n, blocks, block).astype("f8") - zeros[..., None]
    want = x.astype("f8") @ (numbers * scales[..., None]).reshape(n, -1)[:, :k].T
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("m", [1, 5, 16, 20])
def test_no_blocks_give_zeros_and_no_rows_or_columns_no_calls(m):
    target = target_named("host")

    def views(m, n, blocks):
        out, x = np.full((m, n), np.nan, "f4"), np.ones((m, 16 * blocks), "f4")
        y, zeros = np.ones((n, blocks, 8), "u1"), np.ones((n, blocks), "u1")
        return out, [view_of(v) for v in (out, x, y, np.ones((n, blocks), "f4"), zeros)]

    assert calls.nibbles_nbytes(target, m, 3, 0, 16) == 0
    out, arguments = views(m, 3, 0)
    run_calls(calls.nibbles_calls(target, *arguments, None), target)
    assert not out.any()
    for rows, columns in ((0, 3), (m, 0)):
        assert calls.nibbles_calls(target, *views(rows, columns, 2)[1], None) == []


def test_portions_have_as_many_columns_as_fit_and_one_at_least():
    most = calls.PORTION // 4
    sizes = (7, 16, 7), (7, most // 7, 7), (8, most // 7, 7), (5, most, 1), (5, most + 1, 1), (5, 9 * most, 1)
    for n, k, count in sizes:
        assert calls.portion_of(n, k) == count


def test_a_workspace_is_counted_in_bytes():
    """One of float64 numbers, of which an eighth are as many."""
    target, (m, n, k), block = target_named("host"), (20, 5, 40), 16
    rng = np.random.default_rng(0)
    x, y = rng.integers(-3, 4, (m, k)).astype("f4"), rng.integers(0, 256, (n, 3, block // 2)).astype("u1")
    scales, zeros = np.ones((n, 3), "f4"), np.full((n, 3), 7, "u1")
    out, views = np.full((m, n), np.nan, "f4"), [view_of(v) for v in (x, y, scales, zeros)]
    room = np.full(-(-calls.nibbles_nbytes(target, m, n, 3, block) // 8), np.nan)
    run_calls(calls.nibbles_calls(target, view_of(out), *views, view_of(room)), target)
    np.testing.assert_array_equal(out, BlockMatmul().meaning(x.astype("f8"), y, scales, zeros))
