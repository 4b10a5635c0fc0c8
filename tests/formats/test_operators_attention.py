"""Attention, rotations, linear attention and causal convolution beside NumPy: masks, lengths, pasts and modes."""

import numpy as np
import pytest
from onnx import helper

from cgraph.errors import FormatError
from cgraph.formats.onnx.operators.attention import (
    attention,
    causal_conv,
    join_heads,
    linear_attention,
    rotary_embedding,
    split_heads,
)
from cgraph.ops.leaf import Const, Var
from tests.support.onnx_context import context, holds, length, ragged, value_of
from tests.support.tolerance import assert_near

NEAR = "float32 products"


def node(*operands, results=(True, True, True, False), **attributes):
    listed = [helper.make_attribute(name, v) for name, v in attributes.items()]
    nodes = (None if x is None else Const(np.asarray(x)) for x in operands)
    return context(*nodes, attributes=listed, read_results=results, opset=24)


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_heads_are_the_slow_part_of_an_axis():
    x = np.arange(2 * 3 * 8).reshape(2, 3, 8)
    got = split_heads(Const(x), 4)
    assert value_of(got, {})[1, 2, 0].tolist() == x[1, 0, 4:6].tolist() and got.shape == (2, 4, 3, 2)
    np.testing.assert_array_equal(value_of(join_heads(got), {}), x)


Q, K, V = numbers(0, 2, 4, 3, 6), numbers(1, 2, 2, 5, 6), numbers(2, 2, 2, 5, 4)
MASK = np.array([[1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 1]], bool)  # of 4 of 5 keys


def scores(scale, cap=0.0):
    product = np.einsum("bhqd,bhkd->bhqk", Q, K.repeat(2, 1)) * scale
    return product, cap * np.tanh(product / cap) if cap else product


@pytest.mark.parametrize("mode", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks_lengths_and_a_cap_in_fused_and_decomposed_attention(mode, kind):
    mask = MASK if kind == "bool" else np.where(MASK, np.float32(0.5), np.float32(-np.inf))
    lengths = np.array([5, 2])
    product, capped = scores(0.3, 0.7)
    hidden = ~np.pad(MASK, [(0, 0), (0, 1)]) | (np.arange(5) >= lengths[:, None, None, None])
    masked = np.where(hidden, -np.inf, capped + (0.5 if kind == "float" else 0))
    weights = softmax(masked)
    want = np.einsum("bhqk,bhkd->bhqd", weights, V.repeat(2, 1))
    attributes = {"scale": 0.3, "softcap": 0.7} | ({} if mode is None else {"qk_matmul_output_mode": mode})
    c = node(Q, K, V, mask, None, None, lengths, results=(True, False, False, mode is not None), **attributes)
    y, k, v, shown = attention(c)
    assert_near(value_of(y, {}), want, NEAR)
    np.testing.assert_array_equal(value_of(k, {}), K)
    np.testing.assert_array_equal(value_of(v, {}), V)
    if mode is None:
        assert shown is None
    else:  # with a cap, mode 0 shows capped scores of opset 23, and mode 1 the same
        assert_near(value_of(shown, {}), (capped, capped, masked, weights)[mode], NEAR)


@pytest.mark.parametrize("shown", [False, True])
def test_a_past_comes_first_and_moves_the_causal_mask(shown):
    past = numbers(3, 2, 2, 2, 6), numbers(4, 2, 2, 2, 4)
    keys, values = np.concatenate([past[0], K[:, :, :3]], 2), np.concatenate([past[1], V[:, :, :3]], 2)
    product = np.einsum("bhqd,bhkd->bhqk", Q, keys.repeat(2, 1)) / np.sqrt(6)
    masked = np.where(np.tri(3, 5, 2, bool), product, -np.inf)
    want = np.einsum("bhqk,bhkd->bhqd", softmax(masked), values.repeat(2, 1))
    c = node(Q, K[:, :, :3], V[:, :, :3], None, *past, results=(True, True, True, shown), is_causal=1)
    y, k, v, _ = attention(c)
    for got, expected in ((y, want), (k, keys), (v, values)):
        assert_near(value_of(got, {}), expected, NEAR)


def test_packed_heads_are_split_by_their_own_counts():
    packed = [x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (Q, K, V)]
    want = np.einsum("bhqk,bhkd->bqhd", softmax(scores(1 / np.sqrt(6))[0]), V.repeat(2, 1)).reshape(2, 3, 16)
    y, k, v, _ = attention(node(*packed, q_num_heads=4, kv_num_heads=2))
    assert_near(value_of(y, {}), want, NEAR)
    assert k.shape == K.shape and v.shape == V.shape
    with pytest.raises(FormatError, match="kv_num_heads"):
        attention(node(*packed, q_num_heads=4))


@pytest.mark.parametrize("pairs", [0, 1])
@pytest.mark.parametrize("size", [0, 4])
def test_rotations_are_products_of_complex_numbers(pairs, size):
    x, angles = numbers(5, 2, 3, 5, 6), numbers(6, 9, (size or 6) // 2)
    places = np.array([[0, 3, 8, 1, 2], [4, 4, 5, 6, 7]])
    part, rest = np.split(x.astype("f8"), [size or 6], -1)
    a, b = (part[..., 0::2], part[..., 1::2]) if pairs else np.split(part, 2, -1)
    turned = (a + 1j * b) * np.exp(1j * angles[places].astype("f8"))[:, None]
    want = np.stack([turned.real, turned.imag], -1 if pairs else -2).reshape(part.shape)
    want = np.concatenate([want, rest], -1)
    options = {"interleaved": pairs, "rotary_embedding_dim": size}
    got = rotary_embedding(node(x, np.cos(angles), np.sin(angles), places, **options))
    assert_near(value_of(got, {}), want, NEAR)
    packed = x.transpose(0, 2, 1, 3).reshape(2, 5, 18)
    tables = np.cos(angles)[places], np.sin(angles)[places]
    got = rotary_embedding(node(packed, *tables, num_heads=3, **options))
    assert_near(value_of(got, {}), want.transpose(0, 2, 1, 3).reshape(2, 5, 18), NEAR)
    with pytest.raises(FormatError, match="num_heads is missing: give it for an operand of 3 axes"):
        rotary_embedding(node(packed, *tables))


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_a_state_decays_and_is_corrected_by_the_rule(rule):
    q, k, v = numbers(7, 1, 3, 8), numbers(8, 1, 3, 4), numbers(9, 1, 3, 6)  # heads of 2: 4 of queries, 2 of keys
    decay, beta, state = -np.abs(numbers(10, 1, 3, 4)), np.abs(numbers(11, 1, 3, 2)), numbers(12, 1, 2, 2, 3)
    want, now = np.zeros((1, 3, 12)), state.astype("f8")
    for t in range(3):
        for h in range(2):
            key, value = k[0, t, 2 * h : 2 * h + 2], v[0, t, 3 * h : 3 * h + 3].astype("f8")
            if "gated" in rule:
                now[0, h] *= np.exp(decay[0, t, 2 * h : 2 * h + 2])[:, None]
            if "delta" in rule:
                value = (value - key @ now[0, h]) * beta[0, t, h]
            now[0, h] += np.outer(key, value)
        for h in range(4):
            want[0, t, 3 * h : 3 * h + 3] = q[0, t, 2 * h : 2 * h + 2] @ now[0, h // 2] / np.sqrt(2)
    options = {"q_num_heads": 4, "kv_num_heads": 2, "update_rule": rule}
    y, last = linear_attention(node(q, k, v, state, decay, beta, **options))
    assert_near(value_of(y, {}), want, NEAR)
    assert_near(value_of(last, {}), now, NEAR)
    if rule == "linear":
        doubled, _ = linear_attention(node(q, k, v, state, scale=2 / np.sqrt(2), **options))
        assert_near(value_of(doubled, {}), 2 * want, NEAR)


def test_a_causal_convolution_reads_the_past_and_returns_its_end():
    x, f = np.arange(1, 7, dtype="f4").reshape(1, 2, 3), np.array([[[1, 10, 100]], [[2, 0, 0]]], "f4")
    y, state = causal_conv(node(x, f))
    assert value_of(y, {}).tolist() == [[[100, 210, 321], [0, 0, 8]]]
    assert value_of(state, {}).tolist() == [[[2, 3], [5, 6]]]
    past, bias = np.array([[[7, 8], [9, 1]]], "f4"), np.array([1000, 0.5], "f4")
    y, state = causal_conv(node(x[:, :, :1], f, bias, past))
    assert value_of(y, {}).tolist() == [[[1187], [18.5]]] and value_of(state, {}).tolist() == [[[8, 1], [1, 4]]]
    y, state = causal_conv(node(x, f[:, :, :1]))
    assert value_of(y, {}).tolist() == [[[1, 2, 3], [8, 10, 12]]] and state.shape == (1, 2, 0)
    for kind in ("silu", "swish"):
        y, _ = causal_conv(node(x, f[:, :, :1] / 4, activation=kind))
        plain = x * np.array([[1], [2]]) / 4
        assert_near(value_of(y, {}), plain / (1 + np.exp(-plain)), NEAR)
    with pytest.raises(FormatError, match="activation 'gelu' is not supported. Use none, silu or swish"):
        causal_conv(node(x, f, activation="gelu"))


def spread(x, heads, size):
    """``[batch, length, heads, size]`` of a number for each key, each head, or all heads."""
    x = x.reshape(*x.shape[:2], -1)
    return np.broadcast_to(
        x.reshape(*x.shape[:2], *((heads, -1) if x.shape[2] > 1 else (1, 1))), (*x.shape[:2], heads, size)
    )


@pytest.mark.parametrize("shared", [1, 2, 4])
@pytest.mark.parametrize("heads", [2, 4])
def test_each_sample_has_a_state_that_starts_at_zero(shared, heads):
    """Decays of all heads, of each head or of each key, and shares of all heads or of each."""
    q, k, v = numbers(20, 2, 3, 2 * heads), numbers(21, 2, 3, 4), numbers(22, 2, 3, 6)
    decay, beta = -np.abs(numbers(23, 2, 3, shared)), np.abs(numbers(24, 2, 3, min(shared, 2)))
    want, now = np.zeros((2, 3, 3 * heads)), np.zeros((2, 2, 2, 3))
    for n, t, h in np.ndindex(2, 3, 2):
        key, value = k[n, t, 2 * h : 2 * h + 2], v[n, t, 3 * h : 3 * h + 3].astype("f8")
        now[n, h] *= np.exp(spread(decay, 2, 2)[n, t, h])[:, None]
        value = (value - key @ now[n, h]) * spread(beta, 2, 1)[n, t, h]
        now[n, h] += np.outer(key, value)
        for i in range(heads // 2):
            at = h * heads // 2 + i
            want[n, t, 3 * at : 3 * at + 3] = q[n, t, 2 * at : 2 * at + 2] @ now[n, h] / np.sqrt(2)
    c = node(q, k, v, None, decay, beta, q_num_heads=heads, kv_num_heads=2)
    y, last = linear_attention(c)
    assert_near(value_of(y, {}), want, NEAR)
    assert_near(value_of(last, {}), now, NEAR)


def test_each_sample_and_channel_of_a_causal_convolution_has_its_past_and_bias():
    x, f, bias, past = numbers(30, 2, 3, 4), numbers(31, 3, 1, 3), numbers(32, 3), numbers(33, 2, 3, 2)
    whole = np.concatenate([past, x], 2).astype("f8")
    plain = sum(whole[:, :, i : i + 4] * f[:, 0, i : i + 1] for i in range(3)) + bias[:, None]
    y, state = causal_conv(node(x, f, bias, past, activation="silu"))
    assert_near(value_of(y, {}), plain / (1 + np.exp(-plain)), NEAR)
    np.testing.assert_array_equal(value_of(state, {}), x[:, :, 2:])


HIDERS = {
    "none": None,
    "bool": MASK,
    "numbers": np.where(MASK, np.float32(0.5), np.float32(-np.inf)),
    "one row": MASK[:1],
}


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("hider", HIDERS)
def test_keys_of_an_open_length_are_hidden_by_masks_lengths_and_later_places(hider, causal, lengths):
    """Four of five keys, whose length a run decides; so does the mask's."""
    k, v, count = Var(K.shape, "float32", "k"), Var(V.shape, "float32", "v"), np.array([4, 2])
    mask = HIDERS[hider]
    held = None if mask is None else Var((len(mask), 5), mask.dtype, "mask")
    attributes = [helper.make_attribute("is_causal", causal), helper.make_attribute("scale", 0.3)]
    operands = [Const(Q), k, v, held, None, None, Const(count) if lengths else None]
    c = context(*operands, attributes=attributes, read_results=(True, True, True, False), opset=24)
    n = length(c, "n", 5)
    opened = {1: ragged(k, {2: n}), 2: ragged(v, {2: n})} | ({} if held is None else {3: ragged(held, {1: n})})
    y, keys, values, shown = attention(c.reading(opened))
    given = {k: K, v: V, n.node: 4} | ({} if held is None else {held: np.pad(mask, [(0, 0), (0, 1)])})
    product = np.einsum("bhqd,bhkd->bhqk", Q, K[:, :, :4].repeat(2, 1)) * 0.3
    if hider != "none":
        product = product + mask if mask.dtype != bool else np.where(mask, product, -np.inf)
    if causal:
        product = np.where(np.tri(3, 4, dtype=bool), product, -np.inf)
    if lengths:
        product = np.where(np.arange(4) < count[:, None, None, None], product, -np.inf)
    want = np.einsum("bhqk,bhkd->bhqd", softmax(product), V[:, :, :4].repeat(2, 1))
    assert_near(value_of(y, given), want, NEAR)
    np.testing.assert_array_equal(value_of(keys, given), K[:, :, :4])
    np.testing.assert_array_equal(value_of(values, given), V[:, :, :4])
    assert shown is None and (held is None or holds(c, given))


def test_open_lengths_of_packed_heads_under_a_cap():
    q, k, v = (Var((2, n, size), "float32", name) for name, n, size in (("q", 3, 24), ("k", 5, 12), ("v", 5, 8)))
    names = {"q_num_heads": 4, "kv_num_heads": 2, "softcap": 0.7}
    c = context(q, k, v, attributes=[helper.make_attribute(*x) for x in names.items()], opset=24)
    n, m = length(c, "n", 5), length(c, "m", 3)
    y, _, _, _ = attention(c.reading({0: ragged(q, {1: m}), 1: ragged(k, {1: n}), 2: ragged(v, {1: n})}))
    packed = [x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (Q, K, V)]
    given = dict(zip((q, k, v), packed)) | {n.node: 4, m.node: 2}
    _, capped = scores(1 / np.sqrt(6), 0.7)
    want = np.einsum("bhqk,bhkd->bqhd", softmax(capped[:, :, :2, :4]), V[:, :, :4].repeat(2, 1)).reshape(2, 2, 16)
    assert_near(value_of(y, given), want, NEAR)


def test_a_query_after_an_open_past_sees_it_and_the_keys_up_to_its_place():
    """Two of three past keys and three new ones; all of the past is before the first query."""
    k, v, past_k, past_v = (
        Var((2, 2, 3, size), "float32", name) for name, size in (("k", 6), ("v", 4), ("past k", 6), ("past v", 4))
    )
    c = context(Const(Q), k, v, None, past_k, past_v, attributes=[helper.make_attribute("is_causal", 1)], opset=24)
    n = length(c, "n", 3)
    y, keys, values, _ = attention(c.reading({4: ragged(past_k, {2: n}), 5: ragged(past_v, {2: n})}))
    padding = [(0, 0), (0, 0), (0, 1), (0, 0)]
    given = {k: K[:, :, 2:], v: V[:, :, 2:], past_k: np.pad(K[:, :, :2], padding), past_v: np.pad(V[:, :, :2], padding)}
    given |= {n.node: 2}
    product, _ = scores(1 / np.sqrt(6), 0)
    weights = softmax(np.where(np.tri(3, 5, 2, dtype=bool), product, -np.inf))
    assert_near(value_of(y, given), np.einsum("bhqk,bhkd->bhqd", weights, V.repeat(2, 1)), NEAR)
    np.testing.assert_array_equal(value_of(keys, given), K)
    np.testing.assert_array_equal(value_of(values, given), V)


@pytest.mark.parametrize("precision", [None, 1, 11])
@pytest.mark.parametrize("shown", [False, True])
def test_weights_may_be_computed_in_another_precision(precision, shown):
    """Of as many heads of keys as of queries, too; the result keeps its dtype."""
    keys, values = K.repeat(2, 1), V.repeat(2, 1)
    want = np.einsum("bhqk,bhkd->bhqd", softmax(scores(0.3)[0]), values)
    options = {"scale": 0.3} | ({} if precision is None else {"softmax_precision": precision})
    for k, v in ((K, V), (keys, values)):
        y, _, _, weights = attention(node(Q, k, v, results=(True, False, False, shown), **options))
        assert y.dtype == np.float32 and (weights is None or weights.dtype == np.float32)
        assert_near(value_of(y, {}), want, NEAR)
    with pytest.raises(FormatError, match="softmax_precision has ONNX's dtype STRING"):
        attention(node(Q, K, V, softmax_precision=8))


@pytest.mark.parametrize("results", [(True, False, False, True), (True, True, True, False)])
def test_results_and_precisions_need_fixed_lengths(results):
    k, v = Var(K.shape, "float32", "k"), Var(V.shape, "float32", "v")
    attributes = [] if results[3] else [helper.make_attribute("softmax_precision", 1)]
    c = context(Const(Q), k, v, attributes=attributes, read_results=results, opset=24)
    n = length(c, "n", 5)
    with pytest.raises(FormatError, match="result 3 and softmax_precision are not supported with a length known only"):
        attention(c.reading({1: ragged(k, {2: n}), 2: ragged(v, {2: n})}))


@pytest.mark.parametrize("shown", [False, True])
def test_lengths_of_samples_hide_keys_without_a_mask(shown):
    lengths = np.array([5, 2])
    product = np.where(np.arange(5) < lengths[:, None, None, None], scores(0.3)[0], -np.inf)
    want = np.einsum("bhqk,bhkd->bhqd", softmax(product), V.repeat(2, 1))
    c = node(Q, K, V, None, None, None, lengths, results=(True, False, False, shown), scale=0.3)
    assert_near(value_of(attention(c)[0], {}), want, NEAR)


def test_samples_and_queries_of_packed_heads_may_both_have_open_lengths():
    q, k, v = (Var((2, n, size), "float32", name) for name, n, size in (("q", 3, 24), ("k", 5, 12), ("v", 5, 8)))
    names = {"q_num_heads": 4, "kv_num_heads": 2}
    c = context(q, k, v, attributes=[helper.make_attribute(*x) for x in names.items()], opset=24)
    b, n, m = length(c, "b", 2), length(c, "n", 5), length(c, "m", 3)
    opened = {0: ragged(q, {0: b, 1: m}), 1: ragged(k, {0: b, 1: n}), 2: ragged(v, {0: b, 1: n})}
    y, keys, values, _ = attention(c.reading(opened))
    packed = [x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (Q, K, V)]
    for count in (1, 2):
        given = dict(zip((q, k, v), packed)) | {b.node: count, n.node: 4, m.node: 2}
        weights = softmax(scores(1 / np.sqrt(6))[0][:count, :, :2, :4])
        want = np.einsum("bhqk,bhkd->bqhd", weights, V[:count, :, :4].repeat(2, 1)).reshape(count, 2, 16)
        assert_near(value_of(y, given), want, NEAR)
        np.testing.assert_array_equal(value_of(keys, given), K[:count, :, :4])
        np.testing.assert_array_equal(value_of(values, given), V[:count, :, :4])
