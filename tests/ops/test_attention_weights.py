"""The weights of attention and their gradients: bands of queries give what one band gives, for every kind of mask."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.traverse import post_order
from cgraph.kernels.attention.calls import Rule
from cgraph.ops import attention_weights
from cgraph.ops.attention import positions
from cgraph.ops.attention_weights import (
    LEAST_QUERIES,
    QueryRows,
    attention_gradients,
    causal_gradients,
    gradients_at_once,
    join_bands,
    repeat_heads,
    split_bands,
    sum_heads,
    weights,
)
from tests.autodiff.differences import check_first
from tests.support.computed import computed
from tests.support.tolerance import assert_near

B, H, G, M, N, D, E = 2, 4, 2, 5, 6, 3, 2
RNG = np.random.default_rng(0)
MASKS = {
    "none": None,
    "bool by row": (M, "bool"),
    "bool for all rows": (1, "bool"),
    "floats by row": (M, "float64"),
    "floats for all rows": (1, "float64"),
}


def drawn(*shape):
    return cg.Var(RNG.normal(size=shape))


def mask_of(kind):
    if kind is None:
        return None
    rows, dtype = kind
    values = RNG.normal(size=(1, H, rows, N))
    return cg.Var(values if dtype != "bool" else (values > -0.5) | (np.arange(N) == 0))


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("rule", [Rule(0.5, False, 0, 0.0), Rule(0.5, True, 3, 2.0)], ids=["plain", "causal"])
def test_bands_of_queries_add_up_to_the_gradients_at_once(name, rule):
    q, g, inner, k, v = drawn(B, H, M, D), drawn(B, H, M, E), drawn(B, H, M, 1), drawn(B, G, N, D), drawn(B, G, N, E)
    rows, mask = QueryRows(q, g, inner, positions(M, None)), mask_of(MASKS[name])
    want = gradients_at_once(rule, rows, k, v, mask)
    for queries in (1, 2, M - 1):  # two bands of 4 and 1: the last one is padded
        got = attention_gradients(rule, rows, k, v, mask, most=queries * B * H * N)
        for a, b in zip(got, want, strict=True):
            assert (a is None) == (b is None) == (a is None or a.shape != b.shape)
            if a is not None:
                assert_near(computed(a), computed(b), "float64")


@pytest.mark.parametrize("window", [0, 5, 70], ids="window {}".format)
@pytest.mark.parametrize("shape", [None, (1, 1, 1, 1), (1, H, 1, 0), (B, 1, 0, 1), (1, 1, 0, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "float64"])
def test_causal_queries_read_the_keys_that_they_see(shape, dtype, window):
    m, n = 3 * LEAST_QUERIES + 2, 3 * LEAST_QUERIES + 9  # three segments of unequal length, and keys that none sees
    q, k, v = drawn(B, H, m, D), drawn(B, G, n, D), drawn(B, G, n, E)
    rows = QueryRows(q, drawn(B, H, m, E), drawn(B, H, m, 1), positions(m, None))
    mask = None
    if shape is not None:
        values = RNG.normal(size=[size or (n if axis == 3 else m) for axis, size in enumerate(shape)])
        mask = cg.Var(values if dtype == "float64" else values > -3)
    rule = Rule(0.5, True, window, 2.0, safe=True)
    got, want = causal_gradients(rule, rows, k, v, mask), gradients_at_once(rule, rows, k, v, mask)
    for a, b in zip(got, want, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.shape == b.shape
            assert_near(computed(a), computed(b), "float64")


@pytest.mark.parametrize(("m", "n", "is_cut"), [(64, 64, True), (63, 63, False), (128, 127, False), (128, 128, True)])
def test_hidden_keys_cost_no_products_in_causal_gradients(m, n, is_cut):
    q, k, v = drawn(1, 1, m, D), drawn(1, 1, n, D), drawn(1, 1, n, E)
    rows, rule = QueryRows(q, drawn(1, 1, m, E), drawn(1, 1, m, 1), positions(m, None)), Rule(0.5, True)

    def products(gradients):
        return sum(x.op.multiply_adds(*[y.spec for y in x.operands]) for x in post_order(gradients[:3]))

    cut, whole = (products(f(rule, rows, k, v, None)) for f in (causal_gradients, gradients_at_once))
    assert cut <= 0.75 * whole if is_cut else cut == whole


@pytest.mark.parametrize("window", [0, 1, 5, 40, 200])
def test_a_segment_of_queries_reads_the_keys_from_its_first_visible_one_to_its_last_query(window, monkeypatch):
    m, read = 160, []

    def counted(rule, rows, k, v, mask, most=None):
        read.append((rows.q.shape[2], k.shape[2], v.shape[2]))
        return gradients_at_once(rule, rows, k, v, mask)

    monkeypatch.setattr(attention_weights, "attention_gradients", counted)
    q, k, v = drawn(1, 1, m, D), drawn(1, 1, m, D), drawn(1, 1, m, E)
    rows = QueryRows(q, drawn(1, 1, m, E), drawn(1, 1, m, 1), positions(m, None))
    causal_gradients(Rule(0.5, True, window), rows, k, v, None)
    want = []
    for first in range(0, m, 40):
        low = max(0, first - window + 1) if window else 0
        want.append((40, first + 40 - low, first + 40 - low))
    assert read == want


def test_queries_with_positions_of_their_own_read_all_keys():
    q, k, v = drawn(1, 1, 64, D), drawn(1, 1, 64, D), drawn(1, 1, 64, D)
    plain, later = (cg.scaled_dot_product_attention(q, k, v, causal=True, start=s) for s in (None, cg.Var(np.array(0))))
    for a, b in zip(cg.gradient(plain.sum(), [q, k, v]), cg.gradient(later.sum(), [q, k, v])):
        assert_near(computed(a), computed(b), "float64")


def test_split_and_joined_bands_are_the_rows():
    x = cg.Var(np.arange(2 * 1 * 5 * 3.0).reshape(2, 1, 5, 3))
    bands = split_bands(x, 2)
    assert bands.shape == (3, 2, 1, 2, 3)
    np.testing.assert_array_equal(computed(bands)[2, 1, 0], [[27, 28, 29], [0, 0, 0]])
    np.testing.assert_array_equal(computed(join_bands(bands, 5)), x.value)
    truth = split_bands(cg.Var(np.zeros((1, 1, 1, 2), bool)), 2, filler=True)
    assert computed(truth).reshape(2, 2).tolist() == [[False, False], [True, True]]


def test_a_head_of_keys_serves_adjacent_heads_of_queries():
    keys, q = cg.Var(np.array([1.0, 2.0]).reshape(1, 2, 1, 1)), cg.Var((1, 4, 1, 1), "float64")
    assert computed(repeat_heads(keys, q)).ravel().tolist() == [1, 1, 2, 2]
    assert repeat_heads(q, q) is q
    by_head = cg.Var(np.array([1.0, 10, 100, 1000]).reshape(1, 4, 1, 1))
    assert computed(sum_heads(by_head, keys)).ravel().tolist() == [11, 1100]
    assert sum_heads(by_head, q) is by_head


def test_weights_of_a_causal_window_are_of_the_last_keys():
    zeros = [cg.Var(np.zeros((1, 1, n, 1))) for n in (3, 4)]
    got = computed(weights(Rule(1.0, True, 2, 0.0), *zeros, positions(3, None), None))
    np.testing.assert_array_equal(got[0, 0], [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0]])
    later = positions(3, cg.Var(np.array([1])))
    got = computed(weights(Rule(1.0, True, 0, 0.0), *zeros, later, None))
    assert_near(got[0, 0], [[1 / 2, 1 / 2, 0, 0], [1 / 3] * 3 + [0], [1 / 4] * 4], "float64 formulas")


def test_a_softcap_bends_the_products_before_the_mask_is_added():
    q, k = cg.Var(np.array([[[[8.0]]]])), cg.Var(np.array([[[[1.0], [0.0]]]]))
    mask = cg.Var(np.array([[[[0.0, 1.0]]]]))
    got = computed(weights(Rule(0.5, False, 0, 2.0), q, k, positions(1, None), mask))
    scores = np.array([2 * np.tanh(8 * 0.5 / 2), 1.0])
    assert_near(got.ravel(), np.exp(scores) / np.exp(scores).sum(), "float64 formulas")


@pytest.mark.parametrize("softcap", [0.0, 1.5])
def test_gradients_agree_with_differences(softcap):
    arrays = [RNG.normal(size=s) for s in ((1, 4, 3, 2), (1, 2, 4, 2), (1, 2, 4, 3), (1, 1, 1, 4))]
    check_first(lambda q, k, v, m: cg.scaled_dot_product_attention(q, k, v, m, softcap=softcap, scale=0.7), arrays)


def test_weights_of_exactly_the_limit_are_computed_at_once():
    q, g, inner, k, v = drawn(B, H, M, D), drawn(B, H, M, E), drawn(B, H, M, 1), drawn(B, G, N, D), drawn(B, G, N, E)
    rows, rule = QueryRows(q, g, inner, positions(M, None)), Rule(0.5, False, 0, 0.0)
    at_once = gradients_at_once(rule, rows, k, v, None)
    for most, same in ((B * H * M * N, True), (B * H * M * N - 1, False)):
        got = attention_gradients(rule, rows, k, v, None, most)
        assert (got[0] is at_once[0]) is same
