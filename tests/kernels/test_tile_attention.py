"""Attention on tile registers is near its formula of rounded operands, in float64: every size, mask and stride."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgraph.kernels.attention.calls import AttentionViews, Rule
from cgraph.kernels.tile_attention.calls import TileSizes, suits_tile_attention, tile_attention_calls
from cgraph.kernels.tile_attention.signature import BLOCK
from cgraph.ops.physical.pairs import round_to_bfloat16
from tests.kernels.test_attention import draw, formula, with_rows_without_weights
from tests.support.emulated import TILES, tiles_on
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of

every_target = pytest.mark.parametrize("name", TILES)
WEIGHTS = 2.0**-8  # what rounding weights may cost, of the mean of the values' magnitudes
ADDING = 2.0**-18  # what scores in float32 may cost, of the same
ORDER = ("all",)


def computed(target, q, k, v, mask=None, causal=False, window=0, softcap=0.0, safe=False, out=None, orders=ORDERS):
    """The same bits for every order of tasks, in a workspace of NaNs."""
    results = []
    for order in orders:
        result = np.full((*q.shape[:3], v.shape[3]), np.nan, "f4") if out is None else out
        result[...] = np.nan
        workspace = np.full(TileSizes.of(target, q.shape, k.shape, v.shape).nbytes, 0xFF, np.uint8)
        operands = AttentionViews(*map(view_of, (q, k, v)), None if mask is None else view_of(mask))
        rule = Rule(1 / 3, causal, window, softcap, safe)
        run_calls(tile_attention_calls(target, view_of(result), operands, rule, view_of(workspace)), target, order)
        results.append(result.copy())
    assert len({x.tobytes() for x in results}) == 1
    return results[0]


def check(name, q, k, v, mask=None, causal=False, window=0, softcap=0.0, safe=False, **how):
    got = computed(tiles_on(name), q, k, v, mask, causal, window, softcap, safe, **how)
    scaled = round_to_bfloat16((q * np.float32(1 / 3)).astype("f4"))
    left, right, values = scaled * np.float32(3), round_to_bfloat16(k), round_to_bfloat16(v)
    rest = mask, None, causal, window, softcap, safe
    want, most = formula(left, right, values, *rest), formula(left, right, np.abs(values), *rest)
    assert got.dtype == np.float32
    same = np.isnan(want)
    assert (np.isnan(got) == same).all()
    assert (np.abs(got - want)[~same] <= (WEIGHTS + ADDING) * most[~same]).all()


SIZES = [
    (2, 4, 2, 9, 16, 16, 5),
    (1, 3, 3, 65, BLOCK, 17, 33),
    (2, 2, 1, 33, BLOCK + 1, 32, 16),
    (1, 6, 2, 16, 2 * BLOCK + 35, 64, 12),
    (2, 4, 2, 20, BLOCK - 1, 37, 70),
]


@every_target
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_all_keys(name, sizes):
    check(name, *draw("f4", *sizes))


@every_target
@pytest.mark.parametrize("window", [0, 1, 7, 100])
def test_keys_up_to_the_own_position(name, window):
    check(name, *draw("f4", 2, 4, 2, 170, 150, 16, 8), causal=True, window=window)


@every_target
@pytest.mark.parametrize("kind", ["f4", "bool"])
@pytest.mark.parametrize("shape", [(2, 4, 19, 140), (1, 1, 19, 140), (2, 1, 1, 140), (1, 4, 1, 1)])
@pytest.mark.parametrize("causal", [False, True])
def test_masks_of_any_shape(name, kind, shape, causal):
    q, k, v = draw("f4", 2, 4, 2, 19, 140, 16, 5)
    mask = np.random.default_rng(1).standard_normal(shape).astype("f4")
    check(name, q, k, v, mask if kind == "f4" else mask > -0.5, causal)


@every_target
def test_scores_under_a_cap(name):
    check(name, *draw("f4", 2, 4, 2, 19, BLOCK + 7, 18, 5), causal=True, softcap=0.7)


@every_target
@pytest.mark.parametrize("kind", ["f4", "bool"])
@pytest.mark.parametrize("n", [35, BLOCK + 3])
def test_safe_queries_have_weights_of_zero_where_their_softmax_is_nan(name, kind, n):
    q, k, v, mask = with_rows_without_weights("f4", 40, n, kind)
    check(name, q, k, np.where(np.isinf(v), np.nan, v), mask, safe=True)


@every_target
def test_operands_and_results_of_any_strides(name):
    q, k, v = draw("f4", 2, 3, 3, 37, 41, 20, 18)
    mask = np.random.default_rng(1).random((2, 3, 41, 37)).astype("f4").transpose(0, 1, 3, 2)
    turned = [np.asfortranarray(x) for x in (q[:, :, ::-1], k)]
    check(name, *turned, v[..., ::2], mask, out=np.empty((2, 37, 3, 18), "f4")[..., ::2].swapaxes(1, 2))


sizes = st.tuples(
    *[st.integers(1, 2)] * 3, st.integers(1, 90), st.integers(1, 300), st.integers(1, 70), st.integers(1, 70)
)


@settings(max_examples=20, deadline=None)
@given(sizes, st.sampled_from(TARGETS), st.booleans())
def test_any_sizes(sizes, name, causal):
    batch, groups, repeats, *rest = sizes
    check(name, *draw("f4", batch, groups * repeats, groups, *rest), causal=causal, orders=ORDER)


def test_a_query_has_the_same_bits_in_any_band():
    q, k, v = draw("f4", 1, 1, 1, 80, 300, 32, 32)
    whole = computed(tiles_on("host"), q, k, v)
    np.testing.assert_array_equal(computed(tiles_on("host"), q[:, :, 20:53], k, v), whole[:, :, 20:53])


def test_few_queries_and_short_keys_use_no_tiles():
    assert suits_tile_attention((1, 4, 8, 16), (1, 2, 16, 16))
    assert not suits_tile_attention((1, 4, 7, 16), (1, 2, 16, 16))
    assert not suits_tile_attention((1, 1, 64, 15), (1, 1, 64, 15))
    assert not suits_tile_attention((1, 1, 64, 64), (1, 1, 15, 64))


@every_target
@pytest.mark.parametrize(
    "sizes", [(3, 8, 4, 20, 40, 16, 5), (1, 70, 70, 16, 33, 17, 16), (2, 4, 2, 300, 40, 16, 8)], ids=str
)
def test_tasks_of_several_bands(name, sizes):
    """Of heads and batches, with as many tasks as there may be, or fewer."""
    check(name, *draw("f4", *sizes), causal=True)


def test_many_keys_of_few_queries_have_a_workspace_for_the_values_as_rows():
    """They take more bytes than the scratch of the only task."""
    q, k, v = draw("f4", 1, 1, 1, 16, 5000, 16, 16)
    sizes = TileSizes.of(tiles_on("host"), q.shape, k.shape, v.shape)
    rows = 2 * 5000 * 16
    assert sizes.rooms[2] == rows > sizes.tasks * sizes.size * 4
    check("host", q, k, v, orders=ORDER)


def test_sizes_of_bands_tasks_and_rounded_operands():
    of = lambda *sizes: TileSizes(*sizes, 16)  # noqa: E731 batch, heads, groups, m, n, d, e
    one = of(2, 6, 3, 16, 33, 17, 20)
    assert (one.queries, one.width, one.bands, one.units, one.each, one.tasks) == (32, 32, 1, 6, 1, 6)
    more = of(5, 8, 8, 33, 64, 32, 32)
    assert (more.queries, more.width, more.bands, more.units, more.each, more.tasks) == (33, 64, 1, 40, 2, 20)
    assert one.keys == (2, 3, 64, 32) and one.values == (2, 3, 32, 64) and more.keys == (5, 8, 64, 32)
    for each in (one, more):
        assert each.rooms[:2] == (2 * np.prod(each.keys), 2 * np.prod(each.values))
        assert each.nbytes == sum(-(-room // 64) * 64 for room in each.rooms)
