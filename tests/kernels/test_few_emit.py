"""Attention of few queries: every query has its own row of operands, mask and result; widths at the ends of vectors."""

import numpy as np
import pytest

from cgraph.kernels.attention.calls import FEW, AttentionViews, Rule, attention_calls, attention_nbytes
from cgraph.kernels.attention.signature import KEYS
from cgraph.kernels.target import host_target, target_named
from tests.kernels.test_attention import assert_agrees, computed, draw, formula
from tests.support.kernels import TARGETS, run_calls, view_of

SHARING = [(4, 1, 1), (2, 1, 2), (1, 1, 4), (3, 1, 1), (4, 2, 2), (6, 3, 1)]  # heads, heads of keys, queries of a head


def few(calls, target, order):
    """Run calls, which are those of the kernel of few queries."""
    assert [call.kernel.family for call in calls] == ["attention.few.queries"]
    run_calls(calls, target, order)


def every_width(target, dtype):
    """Columns of queries and of values: one, and those around one vector and around four."""
    lanes = target.lanes_of(dtype)
    return [(1, 1), (lanes - 1, 4 * lanes - 1), (lanes, 4 * lanes), (2 * lanes + 1, 5 * lanes + 1), (3, lanes + 2)]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_widths_at_the_ends_of_vectors(name, dtype):
    target = target_named(name)
    for d, e in every_width(target, dtype):
        q, k, v = draw(dtype, 1, 2, 1, 2, 2 * target.lanes_of(dtype) + 1, max(d, 1), e)
        assert_agrees(computed(target, q, k, v, run=few), formula(q, k, v, None, None, False, 0))


@pytest.mark.parametrize("heads, groups, m", SHARING)
@pytest.mark.parametrize("kind", ["f4", "bool"])
def test_each_query_has_its_own_row_of_every_operand(heads, groups, m, kind):
    """All rows differ, in a mask of heads by queries by keys, and rows and columns of the result are apart."""
    q, k, v = draw("f4", 2, heads, groups, m, KEYS + 3, 9, 7)
    mask = np.random.default_rng(1).standard_normal((2, heads, m, KEYS + 3)).astype("f4")
    mask = mask if kind == "f4" else mask > 0
    room = np.full((2, m, heads, 14), np.nan, "f4")
    out = room[..., ::2].swapaxes(1, 2)
    turned = np.ascontiguousarray(q[..., ::-1])[..., ::-1]
    assert_agrees(computed(host_target(), turned, k, v, mask, out=out, run=few), formula(q, k, v, mask, None, False, 0))
    assert np.isnan(room[..., 1::2]).all()


@pytest.mark.parametrize("window", [0, 2])
def test_a_query_sees_keys_up_to_its_own_position_in_its_picture(window):
    """Two queries of each of two heads; the second begins elsewhere and both see few of all keys."""
    q, k, v = draw("f4", 3, 2, 1, 2, 2 * KEYS, 5, 6)
    start = np.array([0, KEYS - 1, 2 * KEYS - 2])
    got = computed(host_target(), q, k, v, None, start, True, window, run=few)
    assert_agrees(got, formula(q, k, v, None, start, True, window))


def test_a_key_that_is_no_number_reaches_only_the_queries_that_see_it():
    q, k, v = draw("f4", 1, 4, 2, 2, 20, 6, 5)
    k[0, 1, 7, 3] = np.nan
    mask = np.ones((1, 4, 2, 20), bool)
    mask[0, 3, 1, 7] = False
    got = computed(host_target(), q, k, v, mask, run=few)
    is_nan = np.zeros((4, 2), bool)
    is_nan[2:], is_nan[3, 1] = True, False
    np.testing.assert_array_equal(np.isnan(got[0]), np.broadcast_to(is_nan[:, :, None], got[0].shape))


def test_the_factor_of_earlier_keys_is_that_of_each_query():
    """The largest score lies in the first block for one query, in the second or the third for others."""
    q, k, v = draw("f4", 1, 3, 1, 1, 3 * KEYS, 4, 4)
    for head in range(3):
        k[0, 0, head * KEYS + 5] = 20 * q[0, head, 0]
    assert_agrees(computed(host_target(), q, k, v, run=few), formula(q, k, v, None, None, False, 0))


@pytest.mark.parametrize("m", [1, FEW, FEW + 1, 40])
@pytest.mark.parametrize("shift", [-200, -110, 110, 200])
def test_weights_depend_on_the_differences_of_scores_only(shift, m):
    """Scores of few queries and of many, all far below or above zero, whose exponentials are 0 or infinite."""
    q, k, v = draw("f4", 1, 2, 1, m, 2 * KEYS + 3, 4, 5)
    mask = np.full((1, 1, m, k.shape[-2]), np.float32(shift))
    got = computed(host_target(), q, k, v, mask)
    assert_agrees(got, formula(q, k, v, mask, None, False, 0))
    assert np.isfinite(got).all()


@pytest.mark.parametrize(
    "m, side, family",
    [
        (FEW, None, "few.queries"),
        (FEW + 1, None, "bands"),
        (1, "k", "bands"),
        (1, "v", "bands"),
        (1, "q", "few.queries"),
    ],
)
def test_few_queries_with_contiguous_keys_and_values_have_this_kernel(m, side, family):
    x = {name: np.zeros((1, 1, n, 4), "f4") for name, n in (("q", m), ("k", 9), ("v", 9))}
    if side:
        x[side] = np.asfortranarray(x[side])
    target, out = host_target(), np.zeros((1, 1, m, 4), "f4")
    room = np.zeros(attention_nbytes(target, "f4", x["q"].shape, 1, 4), "u1")
    views = AttentionViews(*(view_of(x[name]) for name in "qkv"))
    (call,) = attention_calls(target, view_of(out), views, Rule(1.0), view_of(room))
    assert call.kernel.family == f"attention.{family}"
