"""Attention in bands agrees with its formula in float64: sizes on both sides of every cut, masks, any strides."""

import numpy as np
import pytest

from cgraph.kernels.attention.calls import (
    AttentionViews,
    Rule,
    attention_calls,
    attention_nbytes,
    band_shape,
    rows_of,
    steps,
    vectors_of,
)
from cgraph.kernels.attention.gpu_signature import DEPTHS
from cgraph.kernels.attention.signature import KEYS
from cgraph.kernels.kernel import Pointer, View
from cgraph.kernels.target import host_target, target_named
from cgraph.kernels.views.conv_shape import sums
from cgraph.record import replace
from tests.support.gpu import BLOCKS, GPU
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near

DEEP = DEPTHS[-1]
every_target = pytest.mark.parametrize("target", TARGETS)


def formula(q, k, v, mask, start, causal, window, softcap=0.0, safe=False):
    repeats = q.shape[1] // k.shape[1]
    q, k, v = (x.astype("f8") for x in (q, np.repeat(k, repeats, 1), np.repeat(v, repeats, 1)))
    scores = q @ k.swapaxes(2, 3) / 3
    scores = np.tanh(scores / softcap) * softcap if softcap else scores
    if causal:
        own = np.arange(q.shape[2])[:, None] + (0 if start is None else start[:, None, None, None])
        key = np.arange(k.shape[2])
        scores = np.where((key <= own) & (key > own - (window or 10**9)), scores, -np.inf)
    if mask is not None:
        with np.errstate(invalid="ignore"):
            scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(3, keepdims=True))
        weights = weights / weights.sum(3, keepdims=True)
        return (np.where(np.isnan(weights), 0, weights) if safe else weights) @ v


def computed(
    target, q, k, v, mask=None, start=None, causal=False, window=0, out=None, softcap=0.0, safe=False,
    run=run_calls, orders=ORDERS,
):  # fmt: skip
    """The same bits for every order of tasks, in a workspace of NaNs."""
    dtype, found = f"f{q.itemsize}", []
    for order in orders:
        result = np.full((*q.shape[:3], v.shape[3]), np.nan, dtype) if out is None else out
        result[...] = np.nan
        workspace = np.full(attention_nbytes(target, dtype, q.shape, k.shape[1], v.shape[3]), 0xFF, np.uint8)
        views = [None if x is None else view_of(x) for x in (mask, start)]
        operands, rule = AttentionViews(*map(view_of, (q, k, v)), *views), Rule(1 / 3, causal, window, softcap, safe)
        calls = attention_calls(target, view_of(result), operands, rule, view_of(workspace))
        run(calls, target, order)
        found.append(result.copy())
    assert len({x.tobytes() for x in found}) == 1
    return found[0]


def draw(dtype, b, h, g, m, n, d, e, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in ((b, h, m, d), (b, g, n, d), (b, g, n, e))]


def assert_agrees(got, want):
    assert_near(got, want, "attention", 1)


SIZES = [
    (1, 1, 1, 1, 1, 1, 1),
    (2, 4, 2, 5, KEYS - 1, 3, 5),
    (1, 3, 3, 65, KEYS, 17, 33),
    (2, 2, 1, 33, KEYS + 1, 16, 16),
    (1, 6, 2, 1, 3 * KEYS, 64, 12),
    (2, 4, 2, 2, KEYS + 7, 37, 150),
]


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_all_keys(target, dtype, sizes):
    q, k, v = draw(dtype, *sizes)
    assert_agrees(computed(target_named(target), q, k, v), formula(q, k, v, None, None, False, 0))


@every_target
@pytest.mark.parametrize("window", [0, 1, 7, 100])
@pytest.mark.parametrize("starts", [None, (0, 5), (119, 60)])
def test_keys_up_to_the_own_position(target, window, starts):
    q, k, v = draw("f4", 2, 4, 2, 70, 150, 8, 8)
    start = None if starts is None else np.array(starts)
    want = formula(q, k, v, None, start, True, window)
    assert_agrees(computed(target_named(target), q, k, v, None, start, True, window), want)


@every_target
@pytest.mark.parametrize("kind", ["f4", "bool"])
@pytest.mark.parametrize("shape", [(2, 4, 9, 70), (1, 1, 9, 70), (2, 1, 1, 70), (1, 4, 1, 1)])
@pytest.mark.parametrize("m", [2, 9])
@pytest.mark.parametrize("causal", [False, True])
def test_masks_of_any_shape(target, kind, shape, m, causal):
    q, k, v = draw("f4", 2, 4, 2, m, 70, 8, 5)
    mask = np.random.default_rng(1).standard_normal(shape).astype("f4")[:, :, :m]
    mask = mask if kind == "f4" else mask > -0.5
    want = formula(q, k, v, mask, None, causal, 0)
    assert_agrees(computed(target_named(target), q, k, v, mask, None, causal), want)


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("m", [1, 2, 9])
@pytest.mark.parametrize("causal", [False, True])
def test_scores_under_a_cap(target, dtype, m, causal):
    """Before the mask, in both kernels; the last keys of a block lie beyond those that are there."""
    q, k, v = draw(dtype, 2, 4, 2, m, KEYS + 7, 8, 5)
    mask = np.random.default_rng(1).standard_normal((1, 4, m, KEYS + 7)).astype(dtype)
    want = formula(q, k, v, mask, None, causal, 0, 0.7)
    assert_agrees(computed(target_named(target), q, k, v, mask, None, causal, softcap=0.7), want)


@every_target
def test_operands_and_results_of_any_strides(target):
    q, k, v = draw("f4", 2, 3, 3, 37, 41, 20, 18)
    mask = np.random.default_rng(1).random((2, 3, 41, 37)).astype("f4").transpose(0, 1, 3, 2)
    want = formula(q[:, :, ::-1], k, v[..., ::2], mask, None, False, 0)
    turned = [np.asfortranarray(x) for x in (q[:, :, ::-1], k)]
    got = computed(
        target_named(target), *turned, v[..., ::2], mask, out=np.empty((2, 37, 3, 18), "f4")[..., ::2].swapaxes(1, 2)
    )
    assert_agrees(got, want)


@every_target
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("m", [5, 16, 33, 49])
def test_queries_and_results_may_be_columns(target, heads, m):
    """As a convolution has them: all pixels of a channel are adjacent; two heads that share their keys, or one."""
    q, k, v = draw("f4", 2, heads, 1, m, KEYS + 1, 11, 9)
    columns = [np.ascontiguousarray(x.swapaxes(2, 3)).swapaxes(2, 3) for x in (q, k, v)]
    around = np.full((2, heads, 9, m), np.nan, "f4")
    got = computed(target_named(target), *columns, out=around.swapaxes(2, 3))
    assert_agrees(got, formula(q, k, v, None, None, False, 0))
    np.testing.assert_array_equal(got, computed(target_named(target), q, k, v))


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [1, 9])
def test_a_last_band_of_fewer_queries_has_the_same_bits(target, dtype, size):
    """Each number of queries: bands of one vector, of several, and a narrow one beside them."""
    own, n = target_named(target), KEYS + 3
    q, k, v = draw(dtype, 1, 1, 1, 16 * own.lanes_of(dtype) // 4 + size, n, 7, 5)
    whole = computed(own, q, k, v)
    assert_agrees(whole, formula(q, k, v, None, None, False, 0))
    for m in range(size, q.shape[2], 3):
        np.testing.assert_array_equal(computed(own, q[:, :, :m], k, v, orders=ORDERS[:1]), whole[:, :, :m])


@every_target
@pytest.mark.parametrize("m", [2, 9])
@pytest.mark.parametrize("bits", [0x7FC00001, 0x7FC001FF, 0xFFC00123])
def test_a_nan_of_any_bits_gives_nan(target, m, bits):
    q, k, v = draw("f4", 1, 1, 1, m, KEYS + 3, 4, 4)
    q.view("u4")[0, 0, 1, 2] = bits
    got = computed(target_named(target), q, k, v)
    assert np.isnan(got[0, 0, 1]).all() and np.isfinite(np.delete(got, 1, 2)).all()


def test_a_mask_that_is_broadcast_by_strides_is_read_once_for_all_queries():
    q, k, v = draw("f4", 2, 4, 2, 9, 70, 8, 5)
    base = np.random.default_rng(1).random((2, 70)) > 0.3
    mask = View(Pointer(base), (2, 4, 9, 70), (70, 0, 0, 1), "b1")
    out, target = np.empty((2, 4, 9, 5), "f4"), host_target()
    workspace = np.empty(attention_nbytes(target, "f4", q.shape, 2, 5), np.uint8)
    operands = AttentionViews(view_of(q), view_of(k), view_of(v), mask)
    (call,) = attention_calls(target, view_of(out), operands, Rule(1 / 3), view_of(workspace))
    assert call.kernel.params[4]
    run_calls([call], target)
    assert_agrees(out, formula(q, k, v, base[:, None, None], None, False, 0))


def with_rows_without_weights(dtype, m, n, kind="f4"):
    """Operands with a NaN, infinities and masked rows, at both ends of the keys: scores, and values that spread."""
    q, k, v = draw(dtype, 3, 4, 2, m, n, 16, 5)
    rng = np.random.default_rng(2)
    visible = rng.random((3, 1, m, n)) > 0.3
    visible[0, 0, -1] = visible[2, 0, : m // 2] = False
    mask = visible if kind == "bool" else np.where(visible, rng.standard_normal(visible.shape), -np.inf).astype(dtype)
    q[0, 1, 0, 2], k[1, 0, n - 1, 3], k[1, 1, 0, 1] = np.nan, np.inf, -np.inf
    k[2, 0, n // 2, 0] = np.nan
    v[0, 0, n - 1, 2], v[0, 1, 0, 1], v[1, 1, 0, 0], v[2, 1, n - 1, 4] = np.inf, np.nan, -np.inf, np.nan
    return q, k, v, mask


def assert_same_and_near(got, want):
    """What is not finite is equal."""
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    assert_agrees(got[finite], want[finite])


@every_target
@pytest.mark.parametrize("kind", ["f4", "bool"])
@pytest.mark.parametrize("m", [1, 2, 9, 40])
@pytest.mark.parametrize("n", [3, KEYS + 1, 2 * KEYS + 9])
def test_safe_queries_have_weights_of_zero_where_their_softmax_is_nan(target, kind, m, n):
    """In both kernels; a weight of 0 times a value that is not finite is NaN, as in the product."""
    operands = with_rows_without_weights("f4", m, n, kind)
    want = formula(*operands, None, False, 0, safe=True)
    assert (want == 0).any()
    assert_same_and_near(computed(target_named(target), *operands, safe=True), want)


def test_bands_have_three_vectors_where_fewer_lanes_are_empty():
    """On AVX2, with the bits of bands of two vectors: all 24 queries in one band."""
    target = target_named("avx2")
    widths = {m: band_shape(target, "f4", (1, 1, m, 16), 1, 16).width for m in (16, 20, 24, 32, 48, 49, 64)}
    assert widths == {16: 16, 20: 24, 24: 24, 32: 16, 48: 24, 49: 24, 64: 16}
    q, k, v, mask = with_rows_without_weights("f4", 24, KEYS + 1)
    whole = computed(target, q, k, v, mask, safe=True)
    assert_same_and_near(whole, formula(q, k, v, mask, None, False, 0, safe=True))
    np.testing.assert_array_equal(computed(target, q[:, :, :16], k, v, mask[:, :, :16], safe=True), whole[:, :, :16])


@every_target
@pytest.mark.parametrize("m", [2, 9])
def test_safe_queries_see_only_their_keys(target, m):
    """A query before all keys, and one of a whole masked window."""
    q, k, v, mask = with_rows_without_weights("f8", m, 70)
    start, v = np.array([-1, 3, 66]), np.nan_to_num(v, posinf=1, neginf=-1)
    want = formula(q, k, v, mask, start, True, 4, 0.7, True)
    assert_same_and_near(computed(target_named(target), q, k, v, mask, start, True, 4, softcap=0.7, safe=True), want)


def test_a_query_that_sees_no_key_is_nan_and_the_others_are_not():
    q, k, v = draw("f4", 1, 1, 1, 40, 130, 4, 4)
    mask = np.ones((1, 1, 40, 130), bool)
    mask[0, 0, 3], mask[0, 0, 7, :KEYS] = False, False  # 7 sees none in its first block
    got = computed(host_target(), q, k, v, mask)
    assert np.isnan(got[0, 0, 3]).all() and np.isfinite(np.delete(got, 3, 2)).all()
    assert_agrees(got, formula(q, k, v, mask, None, False, 0))


@every_target
@pytest.mark.parametrize("kind", ["f4", "bool"])
@pytest.mark.parametrize("m", [1, 2, 5, 40])
def test_blocks_of_keys_that_are_hidden_wholly_count_for_nothing(m, kind, target):
    """Every choice of the blocks that a query sees, by both kernels: the first, the middle, the last, all, none."""
    heads, n = 8, 2 * KEYS + 5
    q, k, v = draw("f4", 1, heads, 2, m, n, 6, 5)
    sees = (np.arange(heads)[:, None] >> (np.arange(n) // KEYS)) & 1 > 0  # a head's bits are the blocks that it sees
    mask = np.broadcast_to(sees[None, :, None], (1, heads, m, n))
    mask = np.ascontiguousarray(mask) if kind == "bool" else np.where(mask, 0, -np.inf).astype("f4")
    want = formula(q, k, v, mask, None, False, 0)
    assert np.isnan(want[:, 0]).all() and np.isfinite(want[:, 1:]).all()
    assert_agrees(computed(target_named(target), q, k, v, mask), want)


def test_large_scores_neither_overflow_nor_lose_what_came_before():
    q, k, v = draw("f4", 1, 1, 1, 3, 200, 4, 4)
    k[0, 0, 150] = 300 * q[0, 0, 1]
    assert_agrees(computed(host_target(), q * 30, k, v), formula(q * 30, k, v, None, None, False, 0))


@every_target
@pytest.mark.parametrize("window", [0, 50])
def test_the_bits_of_a_query_are_the_same_whatever_is_computed_with_it(target, window):
    """One query after the other, as a decoder does with its cache, and all at once."""
    q, k, v = draw("f4", 1, 4, 2, 150, 150, 16, 16)
    target = target_named(target)
    whole = computed(target, q, k, v, None, None, True, window)
    for i in (0, 1, 59, 60, 61, 149):
        one = computed(target, q[:, :, i : i + 1], k, v, None, np.array([i]), True, window)
        assert one.tobytes() == whole[:, :, i : i + 1].tobytes()


def test_scratch_is_that_of_tasks_whatever_the_length():
    target = host_target()
    short, long = (band_shape(target, "f4", (1, 8, m, 64), 8, 64) for m in (4096, 65536))
    assert short.size == long.size and short.tasks == long.tasks == 32


@every_target
@pytest.mark.parametrize("m", [2, 9])
def test_starts_may_lie_apart(target, m):
    q, k, v = draw("f4", 3, 4, 2, m, 70, 8, 5)
    starts = np.array([3, 99, 40, 99, 61, 99])
    for start in (starts[::2], starts[::-2][::1], starts[-2::-2]):
        want = formula(q, k, v, None, start, True, 7)
        assert_agrees(computed(target_named(target), q, k, v, None, start, True, 7), want)


def wasted(vectors: int, rest: bool, queries: int, lanes: int) -> float:
    """The lanes of all bands; a last band of one vector costs a quarter more."""
    width = vectors * lanes
    whole, left = divmod(queries, width)
    return whole * width + (0 if not left else 1.25 * lanes if rest else width)


@every_target
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_bands_have_as_many_vectors_as_leave_fewest_lanes_empty(target, dtype):
    """No more than fit beside four rows, and none that has no query; the widest of several that are as good."""
    own = target_named(target)
    lanes, limit = own.lanes_of(dtype), sums(own)
    for queries in range(1, 9 * lanes + 2):
        vectors, rest = vectors_of(own, queries, lanes)
        choices = [v for v in range(4, 1, -1) if 4 * v <= limit and (v - 1) * lanes < queries] or [1]
        costs = {v: wasted(v, v > 1 and 0 < queries % (v * lanes) <= lanes, queries, lanes) for v in choices}
        assert vectors == next(v for v in choices if costs[v] == min(costs.values()))
        assert rest == (vectors > 1 and 0 < queries % (vectors * lanes) <= lanes)


@pytest.mark.parametrize(("queries", "vectors", "more"), [(1, 1, 1), (2, 2, 2), (3, 2, 4), (4, 2, 4), (100, 2, 4)])
def test_threads_of_a_gpu_have_few_queries(queries, vectors, more):
    """As many as their registers hold; a band of half as many would not hold all."""
    assert vectors_of(GPU, queries, 1) == (vectors, False)
    assert vectors_of(replace(GPU, registers=32), queries, 1) == (more, False)


@pytest.mark.parametrize(
    ("vectors", "limit", "rows"), [(1, 12, 12), (1, 11, 6), (2, 12, 6), (2, 24, 12), (3, 12, 4), (4, 8, 4), (2, 8, 4)]
)
def test_rows_of_a_tile_are_as_many_as_fit(vectors, limit, rows):
    assert rows_of(vectors, limit) == rows


@every_target
@pytest.mark.parametrize("q, groups, e", [((2, 6, 9, 16), 2, 24), ((1, 4, 1, 8), 4, 8), ((5, 8, 100, 64), 1, 32)])
def test_bands_of_all_heads_are_shared_out_among_at_most_32_tasks(target, q, groups, e):
    own = target_named(target)
    shape = band_shape(own, "f4", q, groups, e)
    queries = q[1] // groups * q[2]
    assert (shape.bands - 1) * shape.width < queries <= shape.bands * shape.width
    assert shape.units == q[0] * groups * shape.bands and shape.tasks <= 32
    assert (shape.tasks - 1) * shape.each < shape.units <= shape.tasks * shape.each
    has_rest = vectors_of(own, queries, own.lanes_of("f4"))[1]
    assert shape.each == -(-shape.units // 32) and shape.rest == (6 if has_rest else 0)
    columns = max(shape.width, min(queries, 4))
    assert shape.size == columns * (q[3] + KEYS + 2 * shape.rows + 4 + e)
    assert attention_nbytes(own, "f4", q, groups, e) == shape.tasks * shape.size * 4


@pytest.mark.parametrize(
    ("d", "e", "has_room"), [(1, 1, False), (DEEP, DEEP, False), (DEEP + 1, 4, True), (4, DEEP + 1, True)]
)
def test_blocks_of_threads_need_no_workspace_up_to_their_depth(d, e, has_room):
    assert (attention_nbytes(BLOCKS, "f4", (2, 4, 9, d), 2, e) > 0) == has_room
    assert attention_nbytes(GPU, "f4", (2, 4, 9, d), 2, e) > 0


def test_steps_along_axes_of_one_element_are_none():
    x = View(Pointer(None), (2, 1, 5, 1), (800, 40, 8, 4), "f4")
    assert steps("q", x) == {"q_batch": 200, "q_head": 0, "q_row": 2, "q_step": 0}
